/** The receivers of notifications: their state, and a button to send a sample. */
import { useState } from 'preact/hooks';
import { adminPath, order, toApiError } from '../api/client.ts';
import type { Receiver } from '../api/types.ts';
import { Badge, Heading, Time } from '../ui/bits.tsx';
import { notify } from '../ui/notices.tsx';
import { RecordList, type Column } from '../ui/table.tsx';

const COLUMNS: readonly Column<Receiver>[] = [
  { head: 'Receiver', kind: 'name', cell: ({ name }) => name },
  { head: 'State', cell: ({ state }) => <Badge of={state} /> },
  { head: 'Sent to', kind: 'name', wide: true, cell: ({ kind, destination }) => `${kind}: ${destination}` },
  { head: 'Events', kind: 'name', extra: true, cell: ({ events }) => events?.join(', ') ?? 'all' },
  { head: 'Labels', extra: true, cell: ({ labels }) => labels?.join(', ') ?? 'all' },
  { head: 'Last delivery', cell: ({ delivered_at }) => <Time at={delivered_at} empty="none since the last start" /> },
  {
    head: 'Problem',
    kind: 'message',
    cell: ({ problem, failures }) => problem !== null && `${problem} (${failures} attempts)`,
  },
  { head: 'Actions', kind: 'tools', cell: ({ name }) => <Sample name={name} /> },
];

export function Notifications() {
  return (
    <>
      <Heading
        title="Notifications"
        lead="Webhooks and mail servers that receive events. The configuration defines them."
      />
      <RecordList<Receiver>
        caption="Receivers"
        path="/admin/notifications"
        query={{}}
        columns={COLUMNS}
        id={({ name }) => name}
        events={['notification.*', 'config.reload']}
        empty="The configuration has no [[notifications]] entry."
      />
    </>
  );
}

function Sample({ name }: { readonly name: string }) {
  const [busy, setBusy] = useState(false);
  const send = async () => {
    setBusy(true);
    try {
      await order(adminPath('notifications', name, 'test'), { method: 'POST' });
      notify(`${name} accepted a sample.`);
    } catch (error) {
      notify(`${name}: ${toApiError(error).message}`);
    }
    setBusy(false);
  };
  return (
    <button
      type="button"
      class="quiet"
      disabled={busy}
      aria-label={`Send a sample to ${name}`}
      onClick={() => void send()}
    >
      {busy ? 'Sending …' : 'Send a sample'}
    </button>
  );
}
