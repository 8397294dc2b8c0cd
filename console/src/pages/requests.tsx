/** What waits for a decision, and what was decided. */
import type { QueuedRequest } from '../api/types.ts';
import { link, route } from '../router.ts';
import { Badge, Heading, Time } from '../ui/bits.tsx';
import { Filters, type Filter } from '../ui/fields.tsx';
import { RecordList, type Column } from '../ui/table.tsx';
import { RequestDetails } from './request.tsx';

const FILTERS: readonly Filter[] = [
  { name: 'requester', label: 'Requester', placeholder: 'the whole' },
  { name: 'status', label: 'State', options: ['pending', 'approved', 'issued', 'rejected', 'failed', 'expired'] },
  { name: 'ca', label: 'CA' },
  { name: 'device', label: 'Device', placeholder: 'the whole id' },
];

const COLUMNS: readonly Column<QueuedRequest>[] = [
  {
    head: 'Subject',
    kind: 'name',
    cell: ({ id, subject }) => <a href={link(['requests', id])}>{subject === '' ? 'no subject' : subject}</a>,
  },
  { head: 'State', cell: ({ status }) => <Badge of={status} /> },
  { head: 'Requester', cell: ({ requester }) => requester, kind: 'name' },
  { head: 'Proved by', cell: ({ method }) => method, wide: true },
  { head: 'Operation', cell: ({ operation }) => operation, wide: true },
  { head: 'Key', cell: ({ key_type }) => key_type, wide: true },
  { head: 'CA', cell: ({ ca }) => ca, wide: true },
  { head: 'Came', cell: ({ created_at }) => <Time at={created_at} /> },
];

export function Requests({ id }: { readonly id: string | undefined }) {
  if (id !== undefined) return <RequestDetails id={id} />;
  const { query } = route.value;
  return (
    <>
      <Heading title="Requests" lead="What waits for approval, and what became of it.">
        <a class="button" href={link(['requests'], { status: 'pending' })}>
          Only what waits
        </a>
      </Heading>
      <Filters of={FILTERS} search="Requests" />
      <RecordList<QueuedRequest>
        caption="Requests"
        path="/admin/requests"
        query={{ order: 'desc', ...query }}
        columns={COLUMNS}
        id={({ id: one }) => one}
        file="requests.csv"
        events={['request.*', 'certificate.*']}
        empty={query['status'] === 'pending' ? 'Nothing waits for a decision.' : 'No request fits.'}
      />
    </>
  );
}
