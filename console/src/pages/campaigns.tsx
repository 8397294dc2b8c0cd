/** Campaigns that replace certificates before they expire, and their progress. */
import { useState } from 'preact/hooks';
import { adminPath, order } from '../api/client.ts';
import type { Campaign, CampaignProgress, Page } from '../api/types.ts';
import { go, link, route } from '../shared/router.ts';
import { may } from '../shared/session.ts';
import { Facts, Heading, Moment, Panel, Time } from '../ui/bits.tsx';
import { Bars } from '../ui/bars.tsx';
import { Confirm } from '../ui/dialog.tsx';
import { useRecord } from '../ui/load.ts';
import { NotForRole } from '../ui/not-for-role.tsx';
import { notify } from '../ui/notices.tsx';
import { Empty, Show } from '../ui/states.tsx';
import { Table, type Column } from '../ui/table.tsx';
import { NewCampaign } from './campaign-new.tsx';
import { CertificateTable } from './certificates.tsx';
import { selectionInWords, selectionLink } from './filter-words.ts';

/** The list shows the progress of so many campaigns. A progress reads all certificates of its campaign. */
const WITH_PROGRESS = 10;
const EVENTS = ['renewal.*', 'certificate.issued', 'certificate.revoked'];

export function Campaigns({ id }: { readonly id: string | undefined }) {
  if (id === 'new') return may('ra') ? <NewCampaign /> : <NotForRole title="New campaign" roles={['ra']} />;
  if (id === 'id') return <CampaignDetails id={route.value.path[2] ?? ''} />;
  return <CampaignList />;
}

const COLUMNS: readonly Column<Campaign & { readonly n: number }>[] = [
  {
    head: 'Campaign',
    kind: 'name',
    cell: ({ id, reason, filter }) => <a href={link(['campaigns', 'id', id])}>{reason ?? selectionInWords(filter)}</a>,
  },
  { head: 'Deadline', cell: ({ by }) => <Time at={by} /> },
  { head: 'Progress', cell: ({ id, n }) => (n < WITH_PROGRESS ? <ProgressOf id={id} /> : '') },
  { head: 'Certificates', cell: ({ filter }) => selectionInWords(filter), wide: true, kind: 'name' },
  { head: 'Started by', cell: ({ created_by }) => created_by, wide: true },
];

function CampaignList() {
  const query = { order: 'desc', limit: 1000 };
  const { loaded, again } = useRecord<Page<Campaign>>('/admin/renewals', ['renewal.*'], query);
  return (
    <>
      <Heading title="Campaigns" lead="Replace certificates before they expire, for example before a CA expires.">
        {may('ra') && (
          <a class="button primary" href={link(['campaigns', 'new'])}>
            New campaign
          </a>
        )}
      </Heading>
      <Show of={loaded} again={again}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty title="No campaigns">Start one to have clients renew by a deadline.</Empty>
          ) : (
            <Table
              caption="Campaigns"
              columns={COLUMNS}
              items={items.map((campaign, n) => ({ ...campaign, n }))}
              id={({ id }) => id}
            />
          )
        }
      </Show>
    </>
  );
}

function ProgressOf({ id }: { readonly id: string }) {
  const { loaded } = useRecord<CampaignProgress>(adminPath('renewals', id), EVENTS);
  if (loaded.state !== 'ready') return null;
  const { total, replaced, overdue } = loaded.value;
  return (
    <>
      <progress value={replaced} max={Math.max(total, 1)} aria-label="Replaced" /> {replaced.toLocaleString('en')} of{' '}
      {total.toLocaleString('en')}
      {overdue > 0 && <strong>, {overdue.toLocaleString('en')} overdue</strong>}
    </>
  );
}

function CampaignDetails({ id }: { readonly id: string }) {
  const { loaded, again } = useRecord<CampaignProgress>(adminPath('renewals', id), EVENTS);
  const [isStopping, setStopping] = useState(false);
  return (
    <>
      <Heading title={loaded.state === 'ready' ? (loaded.value.reason ?? 'Campaign') : 'Campaign'}>
        {may('ra') && loaded.state === 'ready' && (
          <button type="button" onClick={() => setStopping(true)}>
            Stop …
          </button>
        )}
      </Heading>
      <Show of={loaded} again={again}>
        {(campaign) => <Progress of={campaign} />}
      </Show>
      {isStopping && (
        <Confirm
          title="Stop this campaign?"
          verb="Stop the campaign"
          danger
          onClose={() => setStopping(false)}
          run={async () => {
            await order(adminPath('renewals', id), { method: 'DELETE' });
            notify('The campaign is stopped.');
            go(['campaigns']);
          }}
        >
          <p>Clients renew the remaining certificates at the usual time.</p>
        </Confirm>
      )}
    </>
  );
}

function Progress({ of }: { readonly of: CampaignProgress }) {
  const { total, replaced, waiting, failed, overdue } = of;
  const lists = [
    ['Overdue', overdue, of.overdue_certificates],
    ['Failed', failed, of.failed_certificates],
    ['Waiting', waiting, of.waiting_certificates],
  ] as const;
  return (
    <>
      <div class="columns">
        <Panel title={`${replaced.toLocaleString('en')} of ${total.toLocaleString('en')} replaced`}>
          <Bars
            of={[
              { name: 'replaced', count: replaced, kind: 'good' },
              { name: 'waiting', count: waiting },
              { name: 'failed', count: failed, kind: 'waiting' },
              { name: 'overdue', count: overdue, kind: 'bad' },
            ]}
          />
        </Panel>
        <Panel title="Campaign">
          <Facts
            of={[
              ['Certificates', <a href={selectionLink(of.filter)}>{selectionInWords(of.filter)}</a>],
              ['Started', <Moment at={of.starts_at} />],
              ['Deadline', <Moment at={of.by} />],
              ['Started by', of.created_by],
              ['Reason', of.reason],
              of.explanation_url !== null && ['Explanation', of.explanation_url],
            ]}
          />
        </Panel>
      </div>
      {lists.map(
        ([name, count, certificates]) =>
          count > 0 && (
            <Panel title={`${name}: ${count.toLocaleString('en')}`}>
              <CertificateTable caption={`${name} certificates`} items={certificates} />
            </Panel>
          ),
      )}
    </>
  );
}
