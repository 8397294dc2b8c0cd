/** Counts as bars. The list behind a link has as many records as its bar shows. */

interface BarsProps {
  readonly of: readonly {
    readonly name: string;
    readonly count: number;
    readonly href?: string;
    readonly kind?: string;
  }[];
}

export function Bars({ of }: BarsProps) {
  const most = Math.max(1, ...of.map(({ count }) => count));
  return (
    <ul class="bars">
      {of.map(({ name, count, href, kind }) => (
        <li key={name}>
          <span>{href === undefined ? name : <a href={href}>{name}</a>}</span>
          <svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
            <rect class={kind ?? ''} width={(100 * count) / most} height="8" rx="1" />
          </svg>
          <strong>{count.toLocaleString('en')}</strong>
        </li>
      ))}
    </ul>
  );
}
