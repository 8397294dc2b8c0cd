/** The CAs: their health, chain, profile, CRL and OCSP. */
import { adminPath } from '../api/client.ts';
import type { Ca, CaPage, OverviewRecord } from '../api/types.ts';
import { link } from '../shared/router.ts';
import { may } from '../shared/session.ts';
import { Badge, type Fact, Facts, Heading, Moment, Panel, saveFile } from '../ui/bits.tsx';
import { useRecord } from '../ui/load.ts';
import { Show } from '../ui/states.tsx';
import { RecordList, type Column } from '../ui/table.tsx';
import { Revocation } from './ca-revocation.tsx';
import { Extensions } from './certificate.tsx';
import { Chain } from './chain.tsx';
import { Profile } from './profile.tsx';

const COLUMNS: readonly Column<Ca>[] = [
  { head: 'Label', cell: ({ label }) => <a href={link(['cas', label])}>{label}</a>, kind: 'name' },
  { head: 'Health', kind: 'status', cell: ({ health }) => <Badge of={health} /> },
  { head: 'Driver', cell: ({ driver }) => driver, wide: true },
  { head: 'Subject', cell: ({ subject }) => subject ?? 'not known yet', kind: 'name' },
  { head: 'Signed by', cell: ({ ca }) => ca, wide: true },
  { head: 'Days left', cell: ({ days_left }) => days_left, kind: 'number' },
];

export function Cas({ id }: { readonly id: string | undefined }) {
  if (id !== undefined) return <CaDetails label={id} />;
  return (
    <>
      <Heading title="CAs" lead="The CAs of this server and their labels." />
      <RecordList<Ca>
        caption="CAs"
        path="/admin/cas"
        query={{}}
        columns={COLUMNS}
        id={({ label }) => label}
        events={['config.reload', 'service.*']}
        empty="No CA is configured."
      />
    </>
  );
}

function CaDetails({ label }: { readonly label: string }) {
  const { loaded, again } = useRecord<CaPage>(adminPath('cas', label), []);
  return (
    <>
      <Heading title={label} {...(loaded.state === 'ready' ? { lead: <Badge of={loaded.value.health} /> } : {})}>
        {may('ra', 'auditor') && (
          <a class="button" href={link(['certificates'], { ca: label })}>
            Show certificates
          </a>
        )}
      </Heading>
      <Show of={loaded} again={again}>
        {(ca) => <Details ca={ca} />}
      </Show>
    </>
  );
}

function Details({ ca }: { readonly ca: CaPage }) {
  const [own] = ca.contents;
  return (
    <>
      <div class="columns">
        <Panel title="CA">
          <Facts
            of={[
              ['Subject', ca.subject],
              ['Driver', ca.driver],
              ca.ca !== undefined && ['Signed by', ca.ca],
              ['Default CA', ca.default ? 'yes, for requests without a label' : 'no'],
              ['Valid until', <Moment at={ca.not_after} />],
              ['Key', own?.key_type ?? ''],
              ['Serial number', <code>{own?.serial ?? ''}</code>],
            ]}
          />
        </Panel>
        <Panel
          title="Chain"
          actions={
            <button
              type="button"
              class="quiet"
              onClick={() => saveFile(`${ca.label}-chain.pem`, 'application/x-pem-file', ca.chain.join(''))}
            >
              Download
            </button>
          }
        >
          <Chain of={ca.contents} />
        </Panel>
        <CaHealth label={ca.ca ?? ca.label} />
        <Revocation label={ca.label} />
      </div>
      <Profile label={ca.label} />
      {own !== undefined && <Extensions of={own} />}
    </>
  );
}

/** Includes the dependencies of the CA: an HSM or an upstream CA. */
function CaHealth({ label }: { readonly label: string }) {
  const events = ['upstream.*', 'ca.*', 'config.*', 'service.*'];
  const { loaded, again } = useRecord<OverviewRecord>('/admin/overview', events);
  return (
    <Panel title="Health">
      <Show of={loaded} again={again} lines={2}>
        {({ health }) => {
          const own = health?.cas.find((ca) => ca.label === label);
          return (
            <Facts
              of={[
                own !== undefined && [
                  'State',
                  <>
                    <Badge of={own.health} /> {own.detail}
                  </>,
                ],
                ...(health?.dependencies ?? []).flatMap(({ name, ca, up }): Fact[] =>
                  ca === label ? [[DEPENDENCIES[name] ?? name, <Badge of={up ? 'ok' : 'down'} />]] : [],
                ),
              ]}
            />
          );
        }}
      </Show>
    </Panel>
  );
}

const DEPENDENCIES: Readonly<Record<string, string | undefined>> = {
  hsm: 'HSM',
  dogtag: 'Upstream CA (Dogtag)',
  est: 'Upstream CA (EST)',
  acme: 'Upstream CA (ACME)',
  command: 'Upstream CA (command)',
};
