/** One device's whole story. */
import { useState } from 'preact/hooks';
import { adminPath, call, order } from '../api/client.ts';
import type { DevicePage } from '../api/types.ts';
import { go } from '../router.ts';
import { may } from '../session.ts';
import { Badge, Facts, Heading, Moment, Panel } from '../ui/bits.tsx';
import { Confirm } from '../ui/dialog.tsx';
import { useEvents } from '../ui/events.ts';
import { useLoad } from '../ui/load.ts';
import { notify } from '../ui/notices.tsx';
import { Show } from '../ui/states.tsx';
import { Table } from '../ui/table.tsx';
import { CERTIFICATE_COLUMNS } from './certificates.tsx';
import { Timeline } from './history.tsx';

export function DeviceDetails({ id }: { readonly id: string }) {
  const { loaded, again } = useLoad(`device ${id}`, (signal) => call<DevicePage>(adminPath('devices', id), { signal }));
  useEvents(['device.*', 'certificate.*', 'request.*', 'otp.*'], again);
  return (
    <>
      {loaded.state !== 'ready' && <Heading title={id} />}
      <Show of={loaded} again={again}>
        {(device) => <Details device={device} changed={again} />}
      </Show>
    </>
  );
}

function Details({ device, changed }: { readonly device: DevicePage; readonly changed: () => void }) {
  const [asking, setAsking] = useState<'switch' | 'delete'>();
  const close = () => setAsking(undefined);
  const attributes = Object.entries(device.attributes);
  return (
    <>
      <Heading title={device.id} lead={<Badge of={device.enabled ? 'enabled' : 'disabled'} />}>
        {may('ra') && (
          <>
            <button type="button" onClick={() => setAsking('switch')}>
              {device.enabled ? 'Disable …' : 'Enable …'}
            </button>
            <button type="button" onClick={() => setAsking('delete')}>
              Delete …
            </button>
          </>
        )}
      </Heading>
      <div class="columns">
        <Panel title="Device">
          <Facts
            of={[
              ['CA', device.ca ?? 'any'],
              ['Note', device.note],
              ['Registered', <Moment at={device.created_at} />],
              ['Changed', <Moment at={device.changed_at} />],
              ['Ends', <Moment at={device.not_after} empty="never" />],
              ...Object.entries(device.match ?? {}).map(([name, value]) => [`Match: ${name}`, value] as const),
            ]}
          />
        </Panel>
        <Panel title="Attributes">
          {attributes.length === 0 ? <p class="fine">None.</p> : <Facts of={attributes} />}
        </Panel>
      </div>
      <Panel title="Certificates">
        {device.certificates.length === 0 ? (
          <p class="fine">It has none yet.</p>
        ) : (
          <Table
            caption="Certificates"
            columns={CERTIFICATE_COLUMNS}
            items={device.certificates}
            id={({ ca, serial }) => `${ca} ${serial}`}
          />
        )}
      </Panel>
      <Panel title="Its story">
        <Timeline of={device} />
      </Panel>
      {asking === 'switch' && <Switch device={device} onClose={close} done={changed} />}
      {asking === 'delete' && <Delete device={device} onClose={close} />}
    </>
  );
}

interface SwitchProps {
  readonly device: DevicePage;
  readonly onClose: () => void;
  readonly done: () => void;
}

function Switch({ device: { id, enabled }, onClose, done }: SwitchProps) {
  const verb = enabled ? 'Disable' : 'Enable';
  const run = async () => {
    await order(adminPath('devices', id), { method: 'PATCH', body: { enabled: !enabled } });
    notify(`${id} is ${enabled ? 'disabled' : 'enabled'}.`);
    done();
  };
  return (
    <Confirm title={`${verb} ${id}?`} verb={verb} danger={enabled} onClose={onClose} run={run}>
      <p>
        {enabled
          ? 'It gets no certificate from now on. Those that it has stay valid; what waits for approval cannot be approved.'
          : 'It may have certificates again.'}
      </p>
    </Confirm>
  );
}

function Delete({
  device: { id, certificates },
  onClose,
}: {
  readonly device: DevicePage;
  readonly onClose: () => void;
}) {
  const [revokes, setRevokes] = useState(true);
  const valid = certificates.filter(({ status }) => status === 'valid').length;
  const run = async () => {
    await order(adminPath('devices', id), { method: 'DELETE', query: { revoke: String(revokes) } });
    notify(`${id} is deleted.`);
    go(['devices']);
  };
  return (
    <Confirm title={`Delete ${id}?`} verb="Delete the device" danger onClose={onClose} run={run}>
      <p>
        The device is forgotten, and gets no certificate any more. A later one of the same id is another one. There is
        no way back.
      </p>
      <label class="check">
        <input type="checkbox" checked={revokes} onChange={(event) => setRevokes(event.currentTarget.checked)} />
        Revoke its certificates, too ({valid} {valid === 1 ? 'is' : 'are'} valid)
      </label>
    </Confirm>
  );
}
