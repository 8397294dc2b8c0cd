/** The active configuration, and what a reload would change. */
import { useState } from 'preact/hooks';
import { call } from '../api/client.ts';
import type { Configuration as ConfigurationRecord, ConfigurationKey, ReloadReport } from '../api/types.ts';
import { route } from '../shared/router.ts';
import { Facts, Heading, Moment, Names, Panel } from '../ui/bits.tsx';
import { Confirm } from '../ui/dialog.tsx';
import { Filters, type Filter } from '../ui/fields.tsx';
import { useLoad, useRecord } from '../ui/load.ts';
import { notify } from '../ui/notices.tsx';
import { Empty, Show } from '../ui/states.tsx';
import { Table, type Column } from '../ui/table.tsx';

const FILTERS: readonly Filter[] = [{ name: 'key', label: 'Key or value', placeholder: 'any part' }];

const shown = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));

const COLUMNS: readonly Column<ConfigurationKey>[] = [
  { head: 'Key', cell: ({ key }) => <code>{key}</code>, kind: 'name' },
  { head: 'Value', cell: ({ value }) => <code>{shown(value)}</code>, kind: 'name' },
  { head: 'Changes apply', cell: ({ live }) => (live ? 'at a reload' : 'at the next start'), wide: true },
];

export function Configuration() {
  const { loaded, again } = useRecord<ConfigurationRecord>('/admin/configuration', ['config.*']);
  return (
    <>
      <Heading title="Configuration" lead="The active configuration. Secrets are hidden." />
      <Changes applied={again} />
      <Filters of={FILTERS} search="Keys" />
      <Show of={loaded} again={again} lines={10}>
        {({ keys }) => <Keys of={keys} />}
      </Show>
    </>
  );
}

function Keys({ of }: { readonly of: readonly ConfigurationKey[] }) {
  const wanted = (route.value.query['key'] ?? '').toLowerCase();
  const items = of.filter(({ key, value }) => `${key} ${shown(value)}`.toLowerCase().includes(wanted));
  if (items.length === 0) return <Empty title="No records">No key matches.</Empty>;
  return <Table caption="Keys" columns={COLUMNS} items={items} id={({ key }) => key} />;
}

const dryRun = (isDry: boolean, signal?: AbortSignal): Promise<ReloadReport> =>
  call('/admin/reload', { method: 'POST', query: { dry_run: String(isDry) }, signal });

function Changes({ applied }: { readonly applied: () => void }) {
  const { loaded, again } = useLoad('changes', (signal) => dryRun(true, signal));
  const [isAsking, setAsking] = useState(false);
  return (
    <Panel
      title="What a reload would change"
      actions={
        <>
          <button type="button" class="quiet" onClick={again}>
            Check again
          </button>
          <button type="button" onClick={() => setAsking(true)} disabled={loaded.state !== 'ready'}>
            Reload …
          </button>
        </>
      }
    >
      <Show of={loaded} again={again} lines={2}>
        {(report) => <Report of={report} />}
      </Show>
      {isAsking && loaded.state === 'ready' && (
        <Confirm
          title="Reload the configuration?"
          verb="Reload"
          onClose={() => setAsking(false)}
          run={async () => {
            const { changed } = await dryRun(false);
            notify(changed.length === 0 ? 'Reloaded: nothing has changed.' : `Reloaded: ${changed.join(', ')}`);
            again();
            applied();
          }}
        >
          <p>The server reads the files again. If one is invalid, nothing changes. No connection is dropped.</p>
          <Report of={loaded.value} />
        </Confirm>
      )}
    </Panel>
  );
}

function Report({ of: { changed, needs_restart, warnings, certificates } }: { readonly of: ReloadReport }) {
  const fresh = certificates.filter((certificate) => certificate.new);
  if (changed.length + needs_restart.length + fresh.length + warnings.length === 0)
    return <p class="fine">Nothing. The files match the active configuration.</p>;
  return (
    <Facts
      of={[
        ['Immediately', <Names of={changed} />],
        ['At the next start', <Names of={needs_restart} />],
        fresh.length > 0 && [
          'New certificates',
          <ul class="names">
            {fresh.map(({ use, subject, serial, not_after }) => (
              <li key={`${use} ${serial}`}>
                {use}: {subject}, until <Moment at={not_after} />
              </li>
            ))}
          </ul>,
        ],
        warnings.length > 0 && [
          'Unsafe settings',
          <ul class="names">
            {warnings.map(({ key, message }) => (
              <li key={`${key} ${message}`}>
                <code>{key}</code> {message}
              </li>
            ))}
          </ul>,
        ],
      ]}
    />
  );
}
