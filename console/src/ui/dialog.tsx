/** A dialog, and the confirmation before a change. */
import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { toApiError } from '../api/client.ts';
import { FieldProblem } from './fields.tsx';

interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}

export function Dialog({ title, onClose, children }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  const name = useId();
  useEffect(() => {
    element.current?.showModal();
  }, []);
  return (
    <dialog ref={element} aria-labelledby={name} onClose={onClose}>
      <h2 id={name}>{title}</h2>
      {children}
    </dialog>
  );
}

interface ConfirmProps {
  readonly title: string;
  /** The text of the button. */
  readonly verb: string;
  readonly danger?: boolean;
  /** Disables the button because there is nothing to do. */
  readonly disabled?: boolean;
  readonly run: () => Promise<void>;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}

export function Confirm({ title, verb, danger = false, disabled = false, run, onClose, children }: ConfirmProps) {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string>();
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setProblem(undefined);
    try {
      await run();
      onClose();
    } catch (error) {
      setProblem(toApiError(error).message);
      setBusy(false);
    }
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <form onSubmit={(event) => void submit(event)}>
        <div class="dialog-body">{children}</div>
        <FieldProblem of={problem} />
        <footer class="dialog-end">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class={danger ? 'danger' : 'primary'} disabled={busy || disabled}>
            {busy ? 'Working …' : verb}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}
