/** What a request asks for that its sender's last certificate did not have. */
import { call } from '../api/client.ts';
import type { Certificate, Page, RequestPage } from '../api/types.ts';
import { Panel } from '../ui/bits.tsx';
import { useLoad } from '../ui/load.ts';
import { Show } from '../ui/states.tsx';
import { certificateLink } from './certificates.tsx';

export function Differences({ request }: { readonly request: RequestPage }) {
  const query =
    request.device === null
      ? { ca: request.ca, requester: request.requester }
      : { ca: request.ca, device: request.device };
  const { loaded, again } = useLoad(`before ${JSON.stringify(query)}`, (signal) =>
    call<Page<Certificate>>('/admin/certificates', { query: { ...query, order: 'desc', limit: 2 }, signal }),
  );
  return (
    <Panel title="Against its last certificate">
      <Show of={loaded} again={again} lines={2}>
        {({ items }) => {
          const last = items.find(({ serial }) => serial !== request.serial);
          return last === undefined ? (
            <p class="fine">It is the first certificate of this requester here.</p>
          ) : (
            <Comparison request={request} last={last} />
          );
        }}
      </Show>
    </Panel>
  );
}

interface Change {
  readonly kind: 'new' | 'gone' | 'same';
  readonly what: string;
}

function changes(request: RequestPage, last: Certificate): Change[] {
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

function Comparison({ request, last }: { readonly request: RequestPage; readonly last: Certificate }) {
  const all = changes(request, last);
  const isSame = all.every(({ kind }) => kind === 'same');
  return (
    <>
      <p>
        {isSame ? 'The same names as in ' : 'Other names than in '}
        <a href={certificateLink(last)}>the last one</a>
        {isSame ? '.' : ':'}
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
