/** Searches certificates, devices, tokens, requests and audit records, each for its roles. */
import type { ComponentChildren } from 'preact';
import { call, type Query } from '../api/client.ts';
import type { AuditRecord, Certificate, Device, QueuedRequest, Role, Token } from '../api/types.ts';
import { fingerprintOf, forgetSearches, isUuid, recentSearches, serialOf } from '../shared/find.ts';
import { PLACES } from './places.tsx';
import { link, route } from '../shared/router.ts';
import { may } from '../shared/session.ts';
import { Badge, Heading, Panel, Time } from '../ui/bits.tsx';
import { useLoad } from '../ui/load.ts';
import { Empty, Show } from '../ui/states.tsx';
import { pageOf } from '../ui/table.tsx';
import { certificateLink } from './certificate-link.ts';
import { deviceLink } from './device.tsx';
import { inWords } from './history-words.ts';

interface Hit {
  readonly id: string;
  readonly name: string;
  readonly href: string;
  readonly about: ComponentChildren;
}

interface Group {
  readonly title: string;
  readonly roles: readonly Role[];
  readonly find: (text: string, signal: AbortSignal) => Promise<readonly Hit[]>;
  /** The list with all matches. */
  readonly all: (text: string) => string;
}

/** Hits shown per group. */
const MOST = 8;

export function Find() {
  const text = (route.value.query['q'] ?? '').trim();
  return (
    <>
      <Heading
        title={text === '' ? 'Find anything' : `Results for “${text}”`}
        {...(text === ''
          ? { lead: 'A part of a name, an ID, a serial number or a fingerprint (SHA-256), with or without colons.' }
          : {})}
      />
      {text === '' ? <Recent /> : <Results text={text} />}
    </>
  );
}

function Recent() {
  const searches = recentSearches.value;
  if (searches.length === 0)
    return <Empty title="No recent searches">This browser keeps searches until you sign out.</Empty>;
  return (
    <Panel
      title="Recent searches"
      actions={
        <button type="button" class="quiet" onClick={forgetSearches}>
          Clear
        </button>
      }
    >
      <ul class="hits">
        {searches.map((search) => (
          <li key={search}>
            <a href={link(['find'], { q: search })}>{search}</a>
          </li>
        ))}
      </ul>
    </Panel>
  );
}

function Results({ text }: { readonly text: string }) {
  const key = `find ${text}`;
  const groups = GROUPS.filter(({ roles }) => may(...roles));
  const { loaded, again } = useLoad(key, (signal) => Promise.all(groups.map(({ find }) => find(text, signal))));
  return (
    <Show of={loaded} again={again}>
      {(found) => {
        const pages = PLACES.filter(
          ({ title, roles }) => may(...roles) && title.toLowerCase().includes(text.toLowerCase()),
        );
        if (pages.length === 0 && found.every((hits) => hits.length === 0))
          return (
            <Empty title="Nothing found">
              No record that your role can see has this name, ID, serial number or fingerprint.
            </Empty>
          );
        return (
          <>
            {groups.map(({ title, all }, n) => (
              <Hits key={title} title={title} all={all(text)} of={found[n] ?? []} />
            ))}
            <Hits
              title="Pages"
              of={pages.map(({ path, title }) => ({
                id: path,
                name: title,
                href: link(path === '' ? [] : [path]),
                about: '',
              }))}
            />
          </>
        );
      }}
    </Show>
  );
}

function Hits({ title, of, all }: { readonly title: string; readonly of: readonly Hit[]; readonly all?: string }) {
  if (of.length === 0) return null;
  return (
    <Panel
      title={title}
      actions={
        all !== undefined && (
          <a href={all} aria-label={`${title}: show in the list`}>
            Show in the list
          </a>
        )
      }
    >
      <ul class="hits">
        {of.slice(0, MOST).map(({ id, name, href, about }) => (
          <li key={id}>
            <a href={href}>{name}</a> <span class="fine">{about}</span>
          </li>
        ))}
      </ul>
    </Panel>
  );
}

const list = async <T,>(path: string, query: Query, signal: AbortSignal): Promise<readonly T[]> =>
  (await pageOf<T>(path, { limit: MOST, order: 'desc', ...query }, signal)).items;

async function certificates(text: string, signal: AbortSignal): Promise<readonly Hit[]> {
  const [serial, fingerprint] = [serialOf(text), fingerprintOf(text)];
  const queries: readonly Query[] = [
    ...(serial === undefined ? [] : [{ serial }]),
    ...(fingerprint === undefined ? [] : [{ fingerprint_sha256: fingerprint }]),
    { subject: text },
    { san: text },
    { requester: text },
    { device: text },
  ];
  const [ofRequest, ...found] = await Promise.all([
    isUuid(text)
      ? call<{ certificates: readonly Certificate[] }>('/admin/history', { query: { request_id: text }, signal })
      : undefined,
    ...queries.map((query) => list<Certificate>('/admin/certificates', query, signal)),
  ]);
  const all = [...(ofRequest?.certificates ?? []), ...found.flat()];
  return [...new Map(all.map((certificate) => [`${certificate.ca} ${certificate.serial}`, certificate])).values()].map(
    (certificate) => ({
      id: `${certificate.ca} ${certificate.serial}`,
      name: certificate.subject || 'no subject',
      href: certificateLink(certificate),
      about: (
        <>
          <Badge of={certificate.status} /> {certificate.label ?? certificate.ca}, expires{' '}
          <Time at={certificate.not_after} />, {certificate.serial}
        </>
      ),
    }),
  );
}

async function audit(text: string, signal: AbortSignal): Promise<readonly Hit[]> {
  const serial = serialOf(text);
  const queries: readonly Query[] = [
    { subject: text },
    ...(serial === undefined ? [] : [{ serial }]),
    ...(isUuid(text) ? [{ request_id: text }] : []),
  ];
  const found = await Promise.all(queries.map((query) => list<AuditRecord>('/admin/audit', query, signal)));
  const all = [...new Map(found.flat().map((record) => [record.seq, record])).values()];
  return all
    .sort((a, b) => b.seq - a.seq)
    .map((record) => ({
      id: String(record.seq),
      name: inWords(record),
      href: link(['audit', String(record.seq)], { at: record.time }),
      about: (
        <>
          {record.subject !== undefined && `${record.subject}, `}
          <Time at={record.time} />
        </>
      ),
    }));
}

const auditList = (text: string): string => {
  const serial = serialOf(text);
  if (isUuid(text)) return link(['audit'], { request_id: text });
  return link(['audit'], serial === undefined ? { subject: text } : { serial });
};

const GROUPS: readonly Group[] = [
  {
    title: 'Devices',
    roles: ['ra', 'auditor'],
    all: (search) => link(['devices'], { search }),
    find: async (search, signal) =>
      (await list<Device>('/admin/devices', { search }, signal)).map(({ id, enabled, ca, note }) => ({
        id: deviceLink({ id, ca }),
        name: id,
        href: deviceLink({ id, ca }),
        about: (
          <>
            <Badge of={enabled ? 'enabled' : 'disabled'} /> {ca} {note}
          </>
        ),
      })),
  },
  {
    title: 'Certificates',
    roles: ['ra', 'auditor'],
    all: (text) => {
      const [serial, fingerprint_sha256] = [serialOf(text), fingerprintOf(text)];
      if (fingerprint_sha256 !== undefined) return link(['certificates'], { fingerprint_sha256 });
      return link(['certificates'], serial === undefined || serial.length < 16 ? { subject: text } : { serial });
    },
    find: certificates,
  },
  {
    title: 'Requests',
    roles: ['ra', 'auditor'],
    all: (search) => link(['requests'], { search }),
    find: async (search, signal) =>
      (await list<QueuedRequest>('/admin/requests', { search }, signal)).map((request) => ({
        id: request.id,
        name: request.subject || 'no subject',
        href: link(['requests', request.id]),
        about: (
          <>
            <Badge of={request.status} /> {request.ca}, by {request.requester}, <Time at={request.created_at} />
          </>
        ),
      })),
  },
  {
    title: 'Tokens',
    roles: ['ra'],
    all: (search) => link(['tokens'], { search }),
    find: async (search, signal) =>
      (await list<Token>('/admin/otp', { search }, signal)).map(({ id, client_id, status, expires_at }) => ({
        id,
        name: client_id,
        href: link(['tokens'], { search: id }),
        about: (
          <>
            <Badge of={status} /> expires <Time at={expires_at} />
          </>
        ),
      })),
  },
  { title: 'Audit records', roles: ['auditor'], all: auditList, find: audit },
];
