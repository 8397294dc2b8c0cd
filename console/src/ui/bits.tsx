/** Small components: badges, facts, panels, headings. */
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';

export { Moment, Time } from './clock.tsx';

const GOOD = new Set(['valid', 'active', 'issued', 'success', 'ok', 'issue', 'enabled', 'current', 'alive']);
const WAITING = new Set(['pending', 'approved', 'queue', 'degraded', 'overdue']);
const BAD = new Set(['revoked', 'rejected', 'failed', 'failure', 'down', 'refuse', 'disabled', 'failing']);

/** A state as a word, with a color. */
export function Badge({ of, kind = kindOf(of) }: { readonly of: string; readonly kind?: string | undefined }) {
  return <span class={`badge ${kind}`}>{of}</span>;
}

const kindOf = (of: string): string =>
  GOOD.has(of) ? 'good' : WAITING.has(of) ? 'waiting' : BAD.has(of) ? 'bad' : 'plain';

export function Names({ of }: { readonly of: readonly string[] }) {
  if (of.length === 0) return <span class="fine">none</span>;
  return (
    <ul class="names">
      {of.map((name, n) => (
        <li key={n}>{name}</li>
      ))}
    </ul>
  );
}

export type Fact = readonly [name: string, value: ComponentChildren] | false;

/** Names and values as a list. */
export function Facts({ of }: { readonly of: readonly Fact[] }) {
  return (
    <dl class="facts">
      {of.map((fact) =>
        fact === false ? null : (
          <div key={fact[0]}>
            <dt>{fact[0]}</dt>
            <dd>{fact[1] === '' || fact[1] === null || fact[1] === false ? <span class="fine">—</span> : fact[1]}</dd>
          </div>
        ),
      )}
    </dl>
  );
}

export function Panel({
  title,
  children,
  actions,
}: {
  readonly title: string;
  readonly children: ComponentChildren;
  readonly actions?: ComponentChildren;
}) {
  return (
    <section class="panel">
      <header>
        <h2>{title}</h2>
        {actions !== undefined && <div class="actions">{actions}</div>}
      </header>
      {children}
    </section>
  );
}

export function Heading({
  title,
  children,
  lead,
}: {
  readonly title: ComponentChildren;
  readonly children?: ComponentChildren;
  readonly lead?: ComponentChildren;
}) {
  return (
    <header class="heading">
      <div>
        <h1 tabIndex={-1}>{title}</h1>
        {lead !== undefined && <p class="lead">{lead}</p>}
      </div>
      {children !== undefined && <div class="actions">{children}</div>}
    </header>
  );
}

/** Text with a button that copies it. */
export function CopyLine({
  label,
  text,
  secret,
}: {
  readonly label: string;
  readonly text: string;
  readonly secret?: boolean;
}) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text).then(
      () => setCopied(true),
      () => setCopied(false),
    );
    setTimeout(() => setCopied(false), 2000);
  };
  return (
    <div class="copy-line">
      <span class="label">{label}</span>
      <pre class={secret === true ? 'secret' : ''} tabIndex={0} aria-label={label}>
        {text}
      </pre>
      <button type="button" class="quiet" onClick={() => void copy()} aria-label={`Copy: ${label}`}>
        {copied ? 'Copied' : 'Copy'}
      </button>
    </div>
  );
}

/** Downloads a file that the page made. */
export function saveFile(name: string, type: string, content: BlobPart): void {
  const url = URL.createObjectURL(new Blob([content], { type }));
  const anchor = document.createElement('a');
  anchor.href = url;
  anchor.download = name;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
