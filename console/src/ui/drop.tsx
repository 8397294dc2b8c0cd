/** A button that opens a panel below it. Escape, or a click or focus elsewhere, closes the panel. */
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';

interface DropProps {
  readonly label: ComponentChildren;
  readonly children: ComponentChildren;
  /** Aligns the panel with the right end of the button. */
  readonly end?: boolean;
}

export function Drop({ label, children, end = false }: DropProps) {
  const element = useRef<HTMLDetailsElement>(null);
  const [isOpen, setOpen] = useState(false);
  useEffect(() => {
    const close = (event: Event) => {
      const box = element.current;
      if (box?.open !== true) return;
      if (event instanceof KeyboardEvent) {
        if (event.key !== 'Escape') return;
        box.querySelector('summary')?.focus();
      } else if (event.target instanceof Node && box.contains(event.target)) return;
      box.open = false;
    };
    for (const type of ['pointerdown', 'keydown', 'focusin']) document.addEventListener(type, close);
    return () => {
      for (const type of ['pointerdown', 'keydown', 'focusin']) document.removeEventListener(type, close);
    };
  }, []);
  return (
    <details class={end ? 'drop end' : 'drop'} ref={element} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary class="button">{label}</summary>
      {isOpen && <div class="drop-panel">{children}</div>}
    </details>
  );
}
