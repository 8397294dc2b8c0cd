/** What the audit log tells of one thing, on a time line. */
import { call, type Query } from '../api/client.ts';
import type { AuditRecord, Page } from '../api/types.ts';
import { link } from '../router.ts';
import { Badge, Moment, Panel } from '../ui/bits.tsx';
import { useLoad } from '../ui/load.ts';
import { Show } from '../ui/states.tsx';

export interface Happening {
  readonly id: string;
  readonly at: string;
  readonly what: string;
  readonly outcome?: string;
  readonly detail: string;
  readonly href?: string;
}

/** The newest first. */
export function Timeline({ of }: { readonly of: readonly Happening[] }) {
  if (of.length === 0) return <p class="fine">Nothing is on record.</p>;
  return (
    <ol class="timeline">
      {of.map(({ id, at, what, outcome, detail, href }) => (
        <li key={id} class={outcome === 'failure' ? 'bad' : ''}>
          <p>
            {href === undefined ? <strong>{what}</strong> : <a href={href}>{what}</a>}{' '}
            {outcome === 'failure' && <Badge of="failure" />}
          </p>
          {detail !== '' && <p class="detail">{detail}</p>}
          <p class="fine">
            <Moment at={at} />
          </p>
        </li>
      ))}
    </ol>
  );
}

/** An audit record as something that happened. */
export function happening({ seq, time, type, outcome, subject, detail }: AuditRecord): Happening {
  const who = subject === undefined ? [] : [subject];
  return {
    id: `audit ${seq}`,
    at: time,
    what: type,
    outcome,
    detail: [...who, ...(detail === undefined || detail === '' ? [] : [detail])].join(': '),
    href: link(['audit', String(seq)]),
  };
}

export function History({ title, query }: { readonly title: string; readonly query: Query }) {
  const { loaded, again } = useLoad(`history ${JSON.stringify(query)}`, (signal) =>
    call<Page<AuditRecord>>('/admin/audit', { query: { order: 'desc', limit: 50, ...query }, signal }),
  );
  return (
    <Panel title={title}>
      <Show of={loaded} again={again} lines={3}>
        {({ items }) => <Timeline of={items.map(happening)} />}
      </Show>
    </Panel>
  );
}
