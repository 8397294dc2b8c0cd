/** The lockouts after too many failures, and how to end them. */
import { useState } from 'preact/hooks';
import { adminPath, order } from '../api/client.ts';
import type { Lockout } from '../api/types.ts';
import { Heading, Time } from '../ui/bits.tsx';
import { Confirm } from '../ui/dialog.tsx';
import { notify } from '../ui/notices.tsx';
import { RecordList, type Column } from '../ui/table.tsx';

export function Lockouts() {
  const [version, setVersion] = useState(0);
  const [ending, setEnding] = useState<Lockout>();
  const columns: readonly Column<Lockout>[] = [
    { head: 'Address or name', cell: ({ key }) => key, kind: 'name' },
    { head: 'Kind', cell: ({ scope }) => scope, wide: true },
    { head: 'Failures', cell: ({ failures }) => failures, kind: 'number' },
    { head: 'Locked until', cell: ({ locked_until }) => <Time at={locked_until} /> },
    {
      head: 'Actions',
      kind: 'tools',
      cell: (lockout) => (
        <button
          type="button"
          class="quiet"
          aria-label={`End the lockout of ${lockout.key}`}
          onClick={() => setEnding(lockout)}
        >
          End
        </button>
      ),
    },
  ];
  return (
    <>
      <Heading title="Lockouts" lead="Addresses and names with too many failed attempts." />
      <RecordList<Lockout>
        caption="Lockouts"
        path="/admin/lockouts"
        query={{}}
        columns={columns}
        id={({ key }) => key}
        file="lockouts.csv"
        version={version}
        events={['lockout.*']}
        empty="No active lockouts."
      />
      {ending !== undefined && (
        <Confirm
          title="End this lockout?"
          verb="End the lockout"
          onClose={() => setEnding(undefined)}
          run={async () => {
            await order(adminPath('lockouts', ending.key), { method: 'DELETE' });
            notify(`${ending.key} may try again.`);
            setVersion((n) => n + 1);
          }}
        >
          <p>
            <strong>{ending.key}</strong> may try again at once. Its count of failures starts at zero.
          </p>
        </Confirm>
      )}
    </>
  );
}
