/** The inventory: devices that may get certificates. */
import { useState } from 'preact/hooks';
import type { Device } from '../api/types.ts';
import { link, route } from '../shared/router.ts';
import { may } from '../shared/session.ts';
import { Badge, Heading, Time } from '../ui/bits.tsx';
import type { Filter } from '../ui/fields.tsx';
import { CsvImport } from '../ui/import.tsx';
import { NotForRole } from '../ui/not-for-role.tsx';
import { RecordList, type Column } from '../ui/table.tsx';
import { given } from '../ui/text-fields.tsx';
import { BulkDisable } from './bulk.tsx';
import { DeviceDetails, deviceLink } from './device.tsx';
import { NewDevice } from './device-new.tsx';

const FILTERS: readonly Filter[] = [
  { name: 'search', label: 'Device', placeholder: 'a part of the ID, the note or the certificate of another CA' },
  {
    name: 'enabled',
    label: 'State',
    options: [
      ['true', 'enabled'],
      ['false', 'disabled'],
    ],
  },
  { name: 'ca', label: 'CA', kind: 'label' },
];

const COLUMNS: readonly Column<Device>[] = [
  { head: 'Device', kind: 'name', cell: (device) => <a href={deviceLink(device)}>{device.id}</a> },
  { head: 'State', kind: 'status', cell: ({ enabled }) => <Badge of={enabled ? 'enabled' : 'disabled'} /> },
  { head: 'CA', cell: ({ ca }) => ca ?? 'any', wide: true },
  { head: 'Certificate expires', cell: ({ certificate_not_after }) => <Time at={certificate_not_after} /> },
  { head: 'Last contact', cell: ({ last_used_at }) => <Time at={last_used_at} /> },
  {
    head: 'Certificate of another CA',
    cell: ({ match }) => Object.values(match ?? {}).join(', '),
    wide: true,
    kind: 'name',
  },
  { head: 'Note', cell: ({ note }) => note, wide: true, kind: 'name' },
  { head: 'Registered', cell: ({ created_at }) => <Time at={created_at} />, wide: true, sorted: true },
  { head: 'Registration expires', cell: ({ not_after }) => <Time at={not_after} />, wide: true },
];

export function Devices({ id }: { readonly id: string | undefined }) {
  const [isDisabling, setDisabling] = useState(false);
  const [version, setVersion] = useState(0);
  if ((id === 'new' || id === 'import') && !may('ra'))
    return <NotForRole title={id === 'new' ? 'New device' : 'Import devices'} roles={['ra']} />;
  if (id === 'new') return <NewDevice />;
  if (id === 'import') return <DeviceImport />;
  // A device may have any ID, also `new`.
  if (id === 'id') return <DeviceDetails id={route.value.path[2] ?? ''} place={route.value.path.slice(3)} />;
  const { search, ca } = route.value.query;
  const selection = given({ search, ca });
  return (
    <>
      <Heading title="Devices" lead="Devices that are registered for certificates.">
        {may('ra') && (
          <>
            <a class="button" href={link(['devices', 'import'])}>
              Import
            </a>
            <a class="button primary" href={link(['devices', 'new'])}>
              New device
            </a>
          </>
        )}
      </Heading>
      <RecordList<Device>
        caption="Devices"
        path="/admin/devices"
        query={{ order: 'desc', ...route.value.query }}
        filters={FILTERS}
        columns={COLUMNS}
        id={deviceLink}
        file="devices.csv"
        events={['device.*']}
        version={version}
        tools={
          may('ra') &&
          Object.keys(selection).length > 0 && (
            <button type="button" onClick={() => setDisabling(true)}>
              Disable …
            </button>
          )
        }
        empty="No registered device matches."
      />
      {isDisabling && (
        <BulkDisable filter={selection} onClose={() => setDisabling(false)} done={() => setVersion((n) => n + 1)} />
      )}
    </>
  );
}

function DeviceImport() {
  const changes = route.value.query['mode'] === 'upsert';
  return (
    <>
      <Heading title="Import devices" lead="One row for each device.">
        <a class="button" href={link(['devices', 'import'], { mode: changes ? undefined : 'upsert' })}>
          {changes ? 'Create new devices only' : 'Change known devices'}
        </a>
        <a class="button" href={link(['devices'])}>
          Back
        </a>
      </Heading>
      <CsvImport
        key={changes ? 'upsert' : 'create'}
        path="/admin/devices"
        query={{ mode: changes ? 'upsert' : 'create' }}
        thing="device"
        name="id"
        file="imported-devices.csv"
        example={'id,ca,note,attributes.site\ndevice-1,,press,hall 4'}
        hint={
          <>
            Columns: <code>id ca enabled not_after note</code>, the <code>match.*</code> columns,{' '}
            <code>attributes.NAME</code>. At most 10,000 rows. An empty cell changes nothing.
          </>
        }
        warning={
          changes
            ? 'These devices can get certificates. Known devices change only in the columns that have a value.'
            : 'These devices can get certificates. Rows with a known ID and CA are rejected.'
        }
      />
    </>
  );
}
