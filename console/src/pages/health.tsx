/** The service and what it stands on. */
import type { OverviewRecord } from '../api/types.ts';
import { link } from '../router.ts';
import { Badge, Facts, Moment, Panel, type Fact } from '../ui/bits.tsx';
import { Table, type Column } from '../ui/table.tsx';

type HealthRecord = NonNullable<OverviewRecord['health']>;
type Node = HealthRecord['nodes'][number];
type OwnCertificate = HealthRecord['certificates'][number];

const COLUMNS: readonly Column<OwnCertificate>[] = [
  { head: 'Subject', cell: ({ subject }) => subject, kind: 'name' },
  { head: 'Used for', cell: ({ use, ca }) => (ca === null ? use : `${use} of ${ca}`) },
  { head: 'Until', cell: ({ not_after }) => <Moment at={not_after} />, wide: true },
  { head: 'Days left', cell: ({ days_left }) => days_left, kind: 'number' },
];

const NODE_COLUMNS: readonly Column<Node>[] = [
  { head: 'Name', cell: ({ name }) => name, kind: 'name' },
  { head: 'State', kind: 'status', cell: ({ alive }) => <Badge of={alive ? 'alive' : 'down'} /> },
  { head: 'Last sign of life', cell: ({ lease_age }) => (lease_age === null ? '—' : `${lease_age} s ago`) },
  { head: 'Host', cell: ({ host }) => host, wide: true },
  { head: 'On duty', cell: ({ on_duty }) => (on_duty ? 'yes' : ''), wide: true },
];

export function Health({ of, lockouts }: { readonly of: HealthRecord; readonly lockouts: number }) {
  const { reload, nodes } = of;
  return (
    <>
      <div class="columns">
        <Panel title="Health">
          <Facts
            of={[
              ['Store', <State health={of.store.health} detail={of.store.detail} />],
              nodes.length === 1 && ['Node', nodes[0]?.name],
              ...of.dependencies.map(({ name, ca, up }): Fact => [
                ca === null ? name : `${name} of ${ca}`,
                <Badge of={up ? 'ok' : 'down'} />,
              ]),
              ['Last reload', reload === null ? 'none since the start' : <Reload {...reload} />],
              ['Locked out', <a href={link(['lockouts'])}>{lockouts}</a>],
            ]}
          />
        </Panel>
        <Panel title="CAs">
          <Facts
            of={of.cas.map(({ label, health, detail, days_left }): Fact => [
              label,
              <>
                <a href={link(['cas', label])} aria-label={`${health}: CA ${label}`}>
                  <Badge of={health} />
                </a>{' '}
                <span class="fine">{days_left === null ? '' : `${days_left} days left`}</span> {detail}
              </>,
            ])}
          />
        </Panel>
      </div>
      {nodes.length > 1 && (
        <Panel title="Nodes">
          <Table caption="Servers that share the store" columns={NODE_COLUMNS} items={nodes} id={({ name }) => name} />
        </Panel>
      )}
      <Panel title="Certificates of its own">
        <Table
          caption="Certificates that the service itself needs"
          columns={COLUMNS}
          items={of.certificates}
          id={({ use, ca, serial, subject }) => `${use} ${ca ?? ''} ${serial} ${subject}`}
        />
      </Panel>
    </>
  );
}

function State({ health, detail }: { readonly health: string; readonly detail: string | undefined }) {
  return (
    <>
      <Badge of={health} /> {detail}
    </>
  );
}

function Reload({ at, ok }: { readonly at: string; readonly ok: boolean }) {
  return (
    <>
      <Badge of={ok ? 'ok' : 'failed'} /> <Moment at={at} />
    </>
  );
}
