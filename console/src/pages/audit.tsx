/** The audit log: search, verification of its chain, export. */
import { call } from '../api/client.ts';
import type { AuditRecord, Page } from '../api/types.ts';
import { link, route } from '../shared/router.ts';
import { Badge, Facts, Heading, Moment, Names, Panel, Time } from '../ui/bits.tsx';
import type { Filter } from '../ui/fields.tsx';
import { useLoad } from '../ui/load.ts';
import { Empty, Show } from '../ui/states.tsx';
import { RecordList, type Column } from '../ui/table.tsx';
import { AUDIT_TYPES } from '../shared/audit-types.ts';
import { ChainCheck } from './audit-chain.tsx';

const FILTERS: readonly Filter[] = [
  { name: 'subject', label: 'Who', placeholder: 'any part' },
  { name: 'type', label: 'What', options: AUDIT_TYPES },
  { name: 'ca', label: 'CA', kind: 'label' },
  { name: 'serial', label: 'Serial number', placeholder: 'exact, hex' },
  { name: 'request_id', label: 'Request' },
  { name: 'since', label: 'Since', kind: 'date' },
  { name: 'until', label: 'Until', kind: 'date' },
];

const COLUMNS: readonly Column<AuditRecord>[] = [
  {
    head: 'No.',
    kind: 'number',
    cell: ({ seq, time }) => <a href={link(['audit', String(seq)], { at: time })}>{seq}</a>,
  },
  { head: 'When', cell: ({ time }) => <Time at={time} />, sorted: true },
  { head: 'What', cell: ({ type }) => type },
  { head: 'Outcome', kind: 'status', cell: ({ outcome }) => <Badge of={outcome} /> },
  { head: 'Who', cell: ({ subject }) => subject, kind: 'name' },
  { head: 'From', cell: ({ address }) => address, wide: true },
  { head: 'Detail', cell: ({ detail }) => detail, wide: true, kind: 'name' },
  { head: 'CA', cell: ({ ca }) => ca, extra: true },
  { head: 'Serial number', cell: ({ serial }) => <code>{serial}</code>, extra: true },
  { head: 'Request', cell: ({ request_id }) => <code>{request_id}</code>, extra: true },
];

export function Audit({ id }: { readonly id: string | undefined }) {
  if (id === 'verify') return <ChainCheck />;
  if (id !== undefined) return <OneRecord seq={id} />;
  return (
    <>
      <Heading
        title="Audit"
        lead="Who did what, and the outcome. Each record contains the hash of the previous record."
      >
        <a class="button" href={link(['audit', 'verify'])}>
          Verify the chain
        </a>
      </Heading>
      <RecordList<AuditRecord>
        caption="Audit records"
        path="/admin/audit"
        query={{ order: 'desc', ...route.value.query }}
        filters={FILTERS}
        columns={COLUMNS}
        id={({ seq }) => String(seq)}
        file="audit.csv"
        events={['*']}
        empty="No record matches."
      />
    </>
  );
}

/** The list has no filter by number, so links contain the time. */
function OneRecord({ seq }: { readonly seq: string }) {
  const { at } = route.value.query;
  const { loaded, again } = useLoad(`record ${seq} ${at ?? ''}`, async (signal) => {
    const query = at === undefined ? { order: 'desc' } : { since: at, until: at };
    const page = await call<Page<AuditRecord>>('/admin/audit', { query: { ...query, limit: 1000 }, signal });
    return { record: page.items.find((record) => String(record.seq) === seq) };
  });
  return (
    <>
      <Heading title={`Record ${seq}`}>
        <a class="button" href={link(['audit'])}>
          All records
        </a>
      </Heading>
      <Show of={loaded} again={again}>
        {({ record }) =>
          record === undefined ? (
            <Empty title="The record is not among the latest">Filter the list by its time.</Empty>
          ) : (
            <Details of={record} />
          )
        }
      </Show>
    </>
  );
}

function Details({ of }: { readonly of: AuditRecord }) {
  return (
    <Panel title={of.type} actions={<Badge of={of.outcome} />}>
      <Facts
        of={[
          ['When', <Moment at={of.time} />],
          ['Who', of.subject],
          ['Authenticated by', of.method],
          of.requester_issuer !== undefined && ['Certificate issuer', of.requester_issuer],
          of.requester_sans !== undefined && ['Requester names', <Names of={of.requester_sans} />],
          ['From', of.address],
          of.reason !== undefined && ['Reason', of.reason],
          ['Detail', of.detail],
          ['CA', of.ca],
          of.label !== undefined && ['Label', of.label],
          of.serial !== undefined && [
            'Serial number',
            <a href={link(['certificates', of.serial], { ca: of.ca })}>{of.serial}</a>,
          ],
          of.certificate_subject !== undefined && ['Certificate subject', of.certificate_subject],
          of.certificate_sans !== undefined && ['Certificate names', <Names of={of.certificate_sans} />],
          of.request_id !== undefined && [
            'Request',
            <a href={link(['audit'], { request_id: of.request_id })}>{of.request_id}</a>,
          ],
          ['Node', of.node],
          ['Hash', <code>{of.hash}</code>],
          ['Previous hash', <code>{of.prev_hash}</code>],
        ]}
      />
    </Panel>
  );
}
