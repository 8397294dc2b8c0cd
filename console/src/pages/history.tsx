/** What is known to have happened to one thing, on a time line. */
import { call } from '../api/client.ts';
import type { HistoryRecord } from '../api/types.ts';
import { link } from '../router.ts';
import { may } from '../session.ts';
import { Badge, Moment, Panel } from '../ui/bits.tsx';
import { useEvents } from '../ui/events.ts';
import { useLoad } from '../ui/load.ts';
import { Show } from '../ui/states.tsx';
import { certificateLink } from './certificate-link.ts';

interface Happening {
  readonly id: string;
  readonly at: string;
  readonly what: string;
  readonly outcome?: string;
  readonly detail: string;
  readonly href?: string;
}

/** The newest first. */
export function Timeline({ of }: { readonly of: HistoryRecord }) {
  const all = story(of);
  if (all.length === 0) return <p class="fine">Nothing is on record.</p>;
  return (
    <ol class="timeline">
      {all.map(({ id, at, what, outcome, detail, href }) => (
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

function story({ certificates, tokens, requests, events }: HistoryRecord): Happening[] {
  return [
    ...events.map(happening),
    ...certificates.map((one) => ({
      id: `certificate ${one.ca} ${one.serial}`,
      at: one.not_before,
      what: 'certificate',
      detail: `${one.subject}, until ${one.not_after.slice(0, 10)}: ${one.status}`,
      href: certificateLink(one),
    })),
    ...tokens.map((one) => ({
      id: `token ${one.id}`,
      at: one.created_at,
      what: 'token',
      detail: `for ${one.client_id}, ${one.uses} of ${one.max_uses} uses: ${one.status}`,
      ...(may('ra') ? { href: link(['tokens'], { client_id: one.client_id }) } : {}),
    })),
    ...requests.map((one) => ({
      id: `request ${one.id}`,
      at: one.created_at,
      what: 'request',
      detail: `${one.operation}, ${one.subject}: ${one.status}`,
      href: link(['requests', one.id]),
    })),
  ].sort((a, b) => Date.parse(b.at) - Date.parse(a.at));
}

/** An audit record as something that happened. */
function happening({ seq, node, time, type, outcome, subject, detail }: HistoryRecord['events'][number]): Happening {
  const who = subject === undefined ? [] : [subject];
  return {
    id: `audit ${node ?? ''} ${seq}`,
    at: time,
    what: type,
    outcome,
    detail: [...who, ...(detail === undefined || detail === '' ? [] : [detail])].join(': '),
    ...(may('auditor') ? { href: link(['audit', String(seq)]) } : {}),
  };
}

/** Of a request, and so of the certificate that it came to: everything from the first look at it to a revocation. */
export function History({ request }: { readonly request: string }) {
  const { loaded, again } = useLoad(`history ${request}`, (signal) =>
    call<HistoryRecord>('/admin/history', { query: { request_id: request }, signal }),
  );
  useEvents(['certificate.*', 'request.*'], again);
  return (
    <Panel title="History">
      <Show of={loaded} again={again} lines={3}>
        {(history) => <Timeline of={history} />}
      </Show>
    </Panel>
  );
}
