/** What a request asks for that its sender's last certificate did not have. */
import { adminPath, call, type Query } from '../api/client.ts';
import type { Certificate, CertificatePage, Page, RequestPage } from '../api/types.ts';
import { sha256 } from '../audit-hash.ts';
import { Badge, Moment, Panel } from '../ui/bits.tsx';
import { useLoad } from '../ui/load.ts';
import { Show } from '../ui/states.tsx';
import { readCertificate } from '../x509/certificate.ts';
import { certificateLink } from './certificate-link.ts';

interface Last extends CertificatePage {
  /** What can be read of its key; undefined: a restored store does not have the certificate. */
  readonly heldKey: { readonly words: string; readonly hash: string } | undefined;
}

export function Differences({ request }: { readonly request: RequestPage }) {
  const { loaded, again } = useLoad(`before ${request.id}`, (signal) => lastOf(request, signal));
  return (
    <Panel title="Compared with its last certificate">
      <Show of={loaded} again={again} lines={2}>
        {(last) =>
          last === undefined ? (
            <p class="fine">It is the first certificate of this requester here.</p>
          ) : (
            <Comparison request={request} last={last} />
          )
        }
      </Show>
    </Panel>
  );
}

/** The last one of the same device or requester that did not come of this request; of this CA, where it has one. */
async function lastOf(request: RequestPage, signal: AbortSignal): Promise<Last | undefined> {
  const { ca, device, requester } = request;
  const whose = device === null ? { requester } : { device };
  const newest = async (of: Query): Promise<Certificate | undefined> => {
    const query = { ...of, ...whose, order: 'desc', limit: 2 };
    const { items } = await call<Page<Certificate>>('/admin/certificates', { query, signal });
    return items.find(({ serial }) => serial !== request.serial);
  };
  const last = (await newest({ ca })) ?? (await newest({}));
  if (last === undefined) return undefined;
  const page = await call<CertificatePage>(adminPath('certificates', last.serial), { query: { ca: last.ca }, signal });
  const read = readCertificate(page.pem);
  const heldKey = read && { words: read.key, hash: await sha256(read.spki) };
  return { ...page, heldKey };
}

interface Change {
  readonly kind: 'new' | 'gone' | 'same';
  readonly what: string;
}

function changes(request: RequestPage, last: Last): Change[] {
  const subject: Change[] =
    request.subject === last.subject
      ? [{ kind: 'same', what: `Subject ${last.subject}` }]
      : [
          { kind: 'gone', what: `Subject ${last.subject}` },
          { kind: 'new', what: `Subject ${request.subject}` },
        ];
  return [
    ...subject,
    ...last.sans.filter((name) => !request.sans.includes(name)).map((what) => ({ kind: 'gone' as const, what })),
    ...request.sans.map((what) => ({ kind: last.sans.includes(what) ? ('same' as const) : ('new' as const), what })),
  ];
}

/** A renewal usually has a new key. */
function keyChange({ spki_sha256, key_type }: RequestPage, { heldKey }: Last): Change[] {
  if (heldKey === undefined) return [];
  if (spki_sha256 === heldKey.hash) return [{ kind: 'same', what: `Key ${heldKey.words}` }];
  return [
    { kind: 'gone', what: `Key ${heldKey.words}` },
    {
      kind: 'new',
      what: spki_sha256 === null ? `Key that the server generates, ${key_type}` : `Another key, ${key_type}`,
    },
  ];
}

function Comparison({ request, last }: { readonly request: RequestPage; readonly last: Last }) {
  const names = changes(request, last);
  const isSame = names.every(({ kind }) => kind === 'same');
  const all = [...names, ...keyChange(request, last)];
  return (
    <>
      <p>
        {isSame ? 'The same names as in ' : 'Other names than in '}
        <a href={certificateLink(last)}>the last one</a>
        {last.ca !== request.ca && `, which is of the CA ${last.ca},`}
        {' of '}
        <Moment at={last.not_before} />: <Badge of={last.status} />
        {last.reason !== null && ` for ${last.reason}`}
      </p>
      <ul class="changes">
        {all.map(({ kind, what }) => (
          <li key={`${kind} ${what}`} class={kind}>
            <span class="kind">{kind}</span> {what}
          </li>
        ))}
      </ul>
    </>
  );
}
