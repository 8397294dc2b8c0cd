/** Pending and decided requests. */
import { useEffect, useState } from 'preact/hooks';
import type { QueuedRequest } from '../api/types.ts';
import { link, route } from '../shared/router.ts';
import { may } from '../shared/session.ts';
import { counted } from '../shared/words.ts';
import { Badge, Heading, Time } from '../ui/bits.tsx';
import type { Filter } from '../ui/fields.tsx';
import { RecordList, type Column } from '../ui/table.tsx';
import { BulkDecide } from './bulk.tsx';
import { RequestDetails } from './request.tsx';

const FILTERS: readonly Filter[] = [
  { name: 'search', label: 'Request', placeholder: 'a part of a name, or the ID' },
  { name: 'requester', label: 'Requester', placeholder: 'exact' },
  { name: 'status', label: 'State', options: ['pending', 'approved', 'issued', 'rejected', 'failed', 'expired'] },
  { name: 'ca', label: 'CA', kind: 'label' },
  { name: 'device', label: 'Device', placeholder: 'exact ID' },
];

const COLUMNS: readonly Column<QueuedRequest>[] = [
  {
    head: 'Subject',
    kind: 'name',
    cell: ({ id, subject }) => <a href={link(['requests', id])}>{subject || 'no subject'}</a>,
  },
  { head: 'State', kind: 'status', cell: ({ status }) => <Badge of={status} /> },
  { head: 'Requester', cell: ({ requester }) => requester, kind: 'name' },
  { head: 'Authenticated by', cell: ({ method }) => method, wide: true },
  { head: 'Operation', cell: ({ operation }) => operation, wide: true },
  { head: 'Key', cell: ({ key_type }) => key_type, wide: true },
  { head: 'CA', cell: ({ ca }) => ca, wide: true },
  { head: 'Received', cell: ({ created_at }) => <Time at={created_at} />, sorted: true },
  { head: 'Decided', cell: ({ decided_at }) => <Time at={decided_at} />, extra: true },
  { head: 'Decided by', cell: ({ decided_by }) => decided_by.join(', '), extra: true },
  { head: 'Reason', cell: ({ reason }) => reason, extra: true, kind: 'name' },
];

export function Requests({ id }: { readonly id: string | undefined }) {
  const { query } = route.value;
  const [selected, choose] = useState<readonly QueuedRequest[]>([]);
  const [decision, setDecision] = useState<'approve' | 'reject'>();
  const [version, setVersion] = useState(0);
  useEffect(() => choose([]), [JSON.stringify(query)]);
  if (id !== undefined) return <RequestDetails id={id} />;
  return (
    <>
      <Heading title="Requests" lead="Requests that need approval, and the decisions.">
        <a class="button" href={link(['requests'], { status: 'pending' })}>
          Pending only
        </a>
      </Heading>
      <RecordList<QueuedRequest>
        caption="Requests"
        path="/admin/requests"
        query={{ order: 'desc', ...query }}
        filters={FILTERS}
        columns={COLUMNS}
        id={({ id: request }) => request}
        file="requests.csv"
        version={version}
        selection={may('ra') ? { selected, choose, allows: ({ status }) => status === 'pending' } : undefined}
        tools={
          selected.length > 0 && (
            <>
              <button type="button" onClick={() => setDecision('approve')}>
                Approve {counted(selected.length, 'request')} …
              </button>
              <button type="button" onClick={() => setDecision('reject')}>
                Reject {counted(selected.length, 'request')} …
              </button>
            </>
          )
        }
        events={['request.*', 'certificate.*']}
        empty={query['status'] === 'pending' ? 'No pending requests.' : 'No request matches.'}
      />
      {decision !== undefined && (
        <BulkDecide
          decision={decision}
          requests={selected}
          onClose={() => setDecision(undefined)}
          done={() => {
            choose([]);
            setVersion((n) => n + 1);
          }}
        />
      )}
    </>
  );
}
