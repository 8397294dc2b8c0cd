/** The history of one thing, as a timeline. */
import { useState } from 'preact/hooks';
import type { HistoryRecord } from '../api/types.ts';
import { link } from '../shared/router.ts';
import { may } from '../shared/session.ts';
import { type Fact, Facts, Moment, Panel } from '../ui/bits.tsx';
import { type Loaded, useRecord } from '../ui/load.ts';
import { Show } from '../ui/states.tsx';
import { certificateLink } from './certificate-link.ts';
import { type Happened, inWords } from './history-words.ts';

interface Happening {
  readonly id: string;
  readonly at: string;
  readonly what: string;
  readonly failed: boolean;
  readonly href?: string | undefined;
  /** Its identifiers in the API and the log. */
  readonly raw: readonly Fact[];
}

/** Newest first, in sentences. A button shows the identifiers. */
export function Timeline({ of }: { readonly of: Loaded<HistoryRecord> }) {
  const [isRaw, setRaw] = useState(false);
  return (
    <Panel
      title="History"
      actions={
        <button type="button" class="quiet" aria-pressed={isRaw} onClick={() => setRaw(!isRaw)}>
          Identifiers
        </button>
      }
    >
      <Show of={of} lines={3}>
        {(history) => <Happenings of={story(history)} isRaw={isRaw} />}
      </Show>
    </Panel>
  );
}

function Happenings({ of: all, isRaw }: { readonly of: readonly Happening[]; readonly isRaw: boolean }) {
  if (all.length === 0) return <p class="fine">No records.</p>;
  return (
    <ol class="timeline">
      {all.map(({ id, at, what, failed, href, raw }) => (
        <li key={id} class={failed ? 'bad' : ''}>
          <p>{href === undefined ? <strong>{what}</strong> : <a href={href}>{what}</a>}</p>
          <p class="fine">
            <Moment at={at} />
          </p>
          {isRaw && <Facts of={raw} />}
        </li>
      ))}
    </ol>
  );
}

/** Adds records of the store that have no audit event, because the audit log may be shorter. */
function story({ certificates, tokens, requests, events }: HistoryRecord): Happening[] {
  const has = (type: string, of: Partial<Happened>) =>
    events.some(
      (event) => event.type === type && Object.entries(of).every(([name, value]) => Reflect.get(event, name) === value),
    );
  const certificateOnly = certificates.filter(({ serial }) => !has('certificate.issued', { serial }));
  const tokenOnly = tokens.filter(({ id }) => !has('otp.created', { token: id }));
  const requestOnly = requests.filter(({ id }) => !has('request.queued', { request_id: id }));
  return [
    ...events.map((event) => happening(event, requests)),
    ...certificateOnly.map((certificate): Happening => ({
      id: `certificate ${certificate.ca} ${certificate.serial}`,
      at: certificate.not_before,
      what: `Certificate issued until ${certificate.not_after.slice(0, 10)}`,
      failed: false,
      href: certificateLink(certificate),
      raw: [
        ['Subject', certificate.subject],
        ['Serial number', <code>{certificate.serial}</code>],
        ['Request', <code>{certificate.request_id}</code>],
      ],
    })),
    ...tokenOnly.map((token): Happening => ({
      id: `token ${token.id}`,
      at: token.created_at,
      what: `Token created until ${token.expires_at.slice(0, 10)}: ${token.status}`,
      failed: false,
      href: tokenLink(token.client_id),
      raw: [
        ['Token', <code>{token.id}</code>],
        ['Client', token.client_id],
      ],
    })),
    ...requestOnly.map((request): Happening => ({
      id: `request ${request.id}`,
      at: request.created_at,
      what: `Request waits for approval: ${request.status}`,
      failed: false,
      href: link(['requests', request.id]),
      raw: [
        ['Request', <code>{request.id}</code>],
        ['Subject', request.subject],
      ],
    })),
  ].sort((a, b) => Date.parse(b.at) - Date.parse(a.at));
}

const tokenLink = (client_id: string): string | undefined => (may('ra') ? link(['tokens'], { client_id }) : undefined);

/** Leads to the certificate or the request, otherwise to the record. */
function hrefOf(
  { type, serial, ca, request_id = '', seq, time }: Happened,
  requests: HistoryRecord['requests'],
): string | undefined {
  if (type.startsWith('certificate.') && serial !== undefined) return link(['certificates', serial], { ca });
  if (type.startsWith('request.') && requests.some(({ id }) => id === request_id))
    return link(['requests', request_id]);
  return may('auditor') ? link(['audit', String(seq)], { at: time }) : undefined;
}

function happening(of: Happened, requests: HistoryRecord['requests']): Happening {
  const { seq, node, time, type, outcome, subject, ca, serial, request_id, token, address, detail } = of;
  return {
    id: `audit ${node ?? ''} ${seq}`,
    at: time,
    what: inWords(of),
    failed: outcome === 'failure',
    href: hrefOf(of, requests),
    raw: [
      ['Record', `${seq}: ${type}`],
      subject !== undefined && ['Who', subject],
      ca !== undefined && ['CA', ca],
      serial !== undefined && ['Serial number', <code>{serial}</code>],
      request_id !== undefined && ['Request', <code>{request_id}</code>],
      token !== undefined && ['Token', <code>{token}</code>],
      address !== undefined && ['From', address],
      detail !== undefined && ['Detail', detail],
    ],
  };
}

/** A request and its certificate, from the first record to a revocation. */
export function History({ request }: { readonly request: string }) {
  const query = { request_id: request };
  const { loaded } = useRecord<HistoryRecord>('/admin/history', ['certificate.*', 'request.*'], query);
  return <Timeline of={loaded} />;
}
