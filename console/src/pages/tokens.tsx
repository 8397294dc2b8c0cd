/** One-time passwords: the list, and the forms to create them. */
import { useState } from 'preact/hooks';
import { adminPath, order } from '../api/client.ts';
import type { Token } from '../api/types.ts';
import { link, route } from '../shared/router.ts';
import { Badge, Heading, Time } from '../ui/bits.tsx';
import { Confirm } from '../ui/dialog.tsx';
import type { Filter } from '../ui/fields.tsx';
import { notify } from '../ui/notices.tsx';
import { RecordList, type Column } from '../ui/table.tsx';
import { BulkTokens } from './token-bulk.tsx';
import { NewToken } from './token-new.tsx';

const FILTERS: readonly Filter[] = [
  { name: 'search', label: 'Client', placeholder: 'a part of the client ID' },
  { name: 'client_id', label: 'Client ID', placeholder: 'exact' },
  { name: 'status', label: 'State', options: ['active', 'consumed', 'expired', 'revoked'] },
];

export function Tokens({ id }: { readonly id: string | undefined }) {
  if (id === 'new') return <NewToken />;
  if (id === 'bulk') return <BulkTokens />;
  return <TokenList />;
}

function TokenList() {
  const [version, setVersion] = useState(0);
  const [revoking, setRevoking] = useState<Token>();
  const columns: readonly Column<Token>[] = [
    { head: 'Client', cell: ({ client_id }) => client_id, kind: 'name' },
    { head: 'State', kind: 'status', cell: ({ status }) => <Badge of={status} /> },
    { head: 'Uses', cell: ({ uses, max_uses }) => `${uses} of ${max_uses}`, kind: 'number' },
    { head: 'CA', cell: ({ ca }) => ca ?? 'any', wide: true },
    { head: 'Created', cell: ({ created_at }) => <Time at={created_at} />, wide: true, sorted: true },
    { head: 'Expires', cell: ({ expires_at }) => <Time at={expires_at} /> },
    { head: 'ID', cell: ({ id }) => <code>{id}</code>, extra: true },
    {
      head: 'Actions',
      kind: 'tools',
      cell: (token) =>
        token.status === 'active' && (
          <button
            type="button"
            class="quiet"
            aria-label={`Revoke the token of ${token.client_id}`}
            onClick={() => setRevoking(token)}
          >
            Revoke
          </button>
        ),
    },
  ];
  return (
    <>
      <Heading title="Tokens" lead="One-time passwords with which devices request their first certificate.">
        <a class="button" href={link(['tokens', 'bulk'])}>
          Import
        </a>
        <a class="button primary" href={link(['tokens', 'new'])}>
          New token
        </a>
      </Heading>
      <RecordList<Token>
        caption="Tokens"
        path="/admin/otp"
        query={{ order: 'desc', ...route.value.query }}
        filters={FILTERS}
        columns={columns}
        id={(token) => token.id}
        file="tokens.csv"
        version={version}
        events={['otp.*', 'enrollment.*']}
        empty="No token matches. Create one, and give it to its device."
      />
      {revoking !== undefined && (
        <Confirm
          title="Revoke this token?"
          verb="Revoke the token"
          danger
          onClose={() => setRevoking(undefined)}
          run={async () => {
            await order(adminPath('otp', revoking.id), { method: 'DELETE' });
            notify(`The token of ${revoking.client_id} is revoked.`);
            setVersion((n) => n + 1);
          }}
        >
          <p>
            The token of <strong>{revoking.client_id}</strong> can get no more certificates. You cannot undo this.
            Certificates that were issued with it stay valid.
          </p>
        </Confirm>
      )}
    </>
  );
}
