/** The CRL and the OCSP responder of a CA. */
import { adminPath } from '../api/client.ts';
import type { CaRevocation } from '../api/types.ts';
import { Badge, Facts, Moment, Names, Panel, type Fact } from '../ui/bits.tsx';
import { useRecord } from '../ui/load.ts';
import { Show } from '../ui/states.tsx';

export function Revocation({ label }: { readonly label: string }) {
  const { loaded, again } = useRecord<CaRevocation>(adminPath('cas', label, 'revocation'), ['crl.*', 'config.*']);
  return (
    <>
      <Panel title="CRL">
        <Show of={loaded} again={again} lines={4}>
          {(of) => <Crl of={of} label={label} />}
        </Show>
      </Panel>
      <Panel title="OCSP">
        <Show of={loaded} again={again} lines={4}>
          {(of) => <Ocsp of={of} />}
        </Show>
      </Panel>
    </>
  );
}

const elsewhere = <p class="fine">The CA publishes it, not this server.</p>;
const off = <p class="fine">Not published: the publication listener is off.</p>;

const WORDS = {
  current: '',
  overdue: 'A newer CRL is due. Check the health of the CA and the log.',
  expired: 'Check the health of the CA and the log.',
} as const;

function Crl({ of: { ca, published_by, urls, crl }, label }: { readonly of: CaRevocation; readonly label: string }) {
  if (published_by === 'ca') return elsewhere;
  if (crl === null) return published_by === null ? off : <p class="fine">No CRL has been signed with this key yet.</p>;
  const { number, this_update, next_update, bytes, entries, state } = crl;
  return (
    <Facts
      of={[
        [
          'State',
          <>
            <Badge of={state} /> {WORDS[state]}
          </>,
        ],
        ca !== label && ['CA', ca],
        ['Number', number.toLocaleString('en')],
        ['This update', <Moment at={this_update} />],
        ['Next update', <Moment at={next_update} />],
        ['Revoked certificates', entries.toLocaleString('en')],
        ['Size', size(bytes)],
        ['Published', published_by === null ? 'only on the EST listener' : <Names of={urls.crl} />],
      ]}
    />
  );
}

function Ocsp({ of: { published_by, urls, ocsp } }: { readonly of: CaRevocation }) {
  if (published_by === 'ca') return elsewhere;
  if (ocsp === null) return off;
  const { signed_by, responder } = ocsp;
  const own: readonly Fact[] =
    responder === null
      ? []
      : [
          ['Responder', responder.subject],
          ['Serial number', <code>{responder.serial}</code>],
          [
            'Valid until',
            <>
              <Moment at={responder.not_after} /> {signed_by === 'ca' && <Badge of="expired" />}
            </>,
          ],
        ];
  return (
    <Facts
      of={[
        ['Signed by', signed_by === 'ca' ? 'the key of the CA' : 'a delegated responder'],
        ...own,
        ['URLs', <Names of={urls.ocsp} />],
      ]}
    />
  );
}

const size = (bytes: number): string =>
  bytes < 10_000 ? `${bytes.toLocaleString('en')} bytes` : `${Math.round(bytes / 1000).toLocaleString('en')} kB`;
