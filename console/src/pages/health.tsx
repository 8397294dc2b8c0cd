/** The health of the service and its dependencies. */
import type { ComponentChildren } from 'preact';
import type { OverviewRecord } from '../api/types.ts';
import { link } from '../shared/router.ts';
import { Badge, Facts, Panel, Time, type Fact } from '../ui/bits.tsx';
import { Table, type Column } from '../ui/table.tsx';

type HealthRecord = NonNullable<OverviewRecord['health']>;
type Node = HealthRecord['nodes'][number];
type OwnCertificate = HealthRecord['certificates'][number];

const USES: Readonly<Record<string, string | undefined>> = { tls: 'TLS', ca: 'CA', ocsp: 'OCSP' };

const COLUMNS: readonly Column<OwnCertificate>[] = [
  { head: 'Subject', cell: ({ subject }) => subject, kind: 'name' },
  {
    head: 'Used for',
    cell: ({ use, ca }) => `${USES[use] ?? use.replaceAll('_', ' ')}${ca === null ? '' : ` of ${ca}`}`,
  },
  { head: 'Days left', cell: ({ days_left }) => days_left, kind: 'number' },
  { head: 'Expires', cell: ({ not_after }) => <Time at={not_after} /> },
];

const NODE_COLUMNS: readonly Column<Node>[] = [
  { head: 'Name', cell: ({ name }) => name, kind: 'name' },
  { head: 'State', kind: 'status', cell: ({ alive }) => <Badge of={alive ? 'alive' : 'down'} /> },
  { head: 'Lease renewed', cell: ({ lease_age }) => (lease_age === null ? '—' : `${lease_age} s ago`) },
  { head: 'Host', cell: ({ host }) => host, wide: true },
  { head: 'On duty', cell: ({ on_duty }) => (on_duty ? 'yes' : ''), wide: true },
];

/** Days before expiry from which a certificate of the service is a problem. The log warns from the same day. */
const SOON = 20;
/** Uses whose certificates count for the health of their CA. */
const OF_CAS = ['ca', 'ocsp'];

interface Trouble {
  readonly what: string;
  readonly href?: string;
  readonly isDown: boolean;
}

function troubles({ store, cas, dependencies, faults, nodes, reload, certificates }: HealthRecord): readonly Trouble[] {
  const health = (what: string, report: HealthRecord['store'], href?: string): readonly Trouble[] =>
    report.health === 'ok'
      ? []
      : [
          {
            what: `${what} is ${report.health}`,
            isDown: report.health === 'down',
            ...(href === undefined ? {} : { href }),
          },
        ];
  return [
    ...health('the store', store),
    ...cas.flatMap((ca) => health(`CA ${ca.label}`, ca, link(['cas', ca.label]))),
    ...dependencies
      .filter(({ up }) => !up)
      .map(({ name, ca }) => ({ what: `${name}${ca === null ? '' : ` of ${ca}`} is down`, isDown: true })),
    ...faults.map(({ key, message }) => ({ what: `${key}: ${message}`, isDown: false })),
    ...nodes.filter(({ alive }) => !alive).map(({ name }) => ({ what: `node ${name} is down`, isDown: true })),
    ...(reload?.ok === false ? [{ what: 'the last reload failed', isDown: false, href: link(['configuration']) }] : []),
    ...certificates
      .filter(({ use, days_left }) => !OF_CAS.includes(use) && days_left < SOON)
      .map(({ subject, days_left }) => ({ what: `${subject} expires in ${days_left} days`, isDown: days_left < 7 })),
  ];
}

interface HealthTileProps {
  readonly of: HealthRecord;
  readonly lockouts: number;
}

export function HealthTile({ of, lockouts }: HealthTileProps) {
  const found = troubles(of);
  const isDown = found.some((trouble) => trouble.isDown);
  return (
    <div class={found.length === 0 ? 'tile' : `tile ${isDown ? 'bad' : 'waiting'}`}>
      <h2>Health</h2>
      <p class="big">{found.length === 0 ? 'ok' : isDown ? 'down' : 'degraded'}</p>
      <p class="fine">
        {found.map(({ what, href }) => (
          <span key={what}>{href === undefined ? what : <a href={href}>{what}</a>}. </span>
        ))}
        {found.length === 0 && lockouts === 0 && 'No problems.'}
        {lockouts > 0 && (
          <a href={link(['lockouts'])}>{lockouts === 1 ? '1 lockout' : `${lockouts.toLocaleString('en')} lockouts`}</a>
        )}
      </p>
    </div>
  );
}

export function Health({ of }: { readonly of: HealthRecord }) {
  const { reload, nodes } = of;
  return (
    <>
      <Panel title="Health">
        <Facts
          of={[
            ['Store', <State of={of.store.health}>{of.store.detail}</State>],
            nodes.length === 1 && ['Node', nodes[0]?.name],
            ...of.dependencies.map(({ name, ca, up }): Fact => [
              ca === null ? name : `${name} of ${ca}`,
              <Badge of={up ? 'ok' : 'down'} />,
            ]),
            [
              'Last reload',
              reload === null ? (
                'none since the last start'
              ) : (
                <State of={reload.ok ? 'ok' : 'failed'}>
                  <Time at={reload.at} />
                </State>
              ),
            ],
            ...of.faults.map(({ key, message }): Fact => [key, <State of="degraded">{message}</State>]),
            ...of.cas.map(({ label, health, detail, days_left }): Fact => [
              `CA ${label}`,
              <>
                <a href={link(['cas', label])} aria-label={`${health}: CA ${label}`}>
                  <Badge of={health} />
                </a>{' '}
                <span class="fine">
                  {days_left === null ? '' : `${days_left} days left`} {detail}
                </span>
              </>,
            ]),
          ]}
        />
      </Panel>
      {nodes.length > 1 && (
        <div class="double">
          <Panel title="Nodes">
            <Table
              caption="Servers that share the store"
              columns={NODE_COLUMNS}
              items={nodes}
              id={({ name }) => name}
            />
          </Panel>
        </div>
      )}
      <div class="rest">
        <Panel title="Certificates of the service">
          <Table
            caption="Certificates of the service"
            columns={COLUMNS}
            items={of.certificates}
            id={({ use, ca, serial, subject }) => `${use} ${ca ?? ''} ${serial} ${subject}`}
          />
        </Panel>
      </div>
    </>
  );
}

function State({ of, children }: { readonly of: string; readonly children: ComponentChildren }) {
  return (
    <>
      <Badge of={of} /> <span class="fine">{children}</span>
    </>
  );
}
