/** One device: its data, certificates, history and actions. */
import { useState } from 'preact/hooks';
import { adminPath, ApiError, call, devicePath, order } from '../api/client.ts';
import type { Device, DevicePage } from '../api/types.ts';
import { go, link } from '../shared/router.ts';
import { may } from '../shared/session.ts';
import { Badge, Facts, Heading, Moment, Panel } from '../ui/bits.tsx';
import { Confirm } from '../ui/dialog.tsx';
import { useEvents } from '../ui/events.ts';
import { useLoad } from '../ui/load.ts';
import { notify } from '../ui/notices.tsx';
import { Show } from '../ui/states.tsx';
import { counted } from '../shared/words.ts';
import { BulkRevoke, revokeAll } from './bulk.tsx';
import { CertificateTable } from './certificates.tsx';
import { DeviceForm } from './device-form.tsx';
import { Timeline } from './history.tsx';
import { ReasonField } from './revoke.tsx';
import { NewToken } from './token-new.tsx';

/** An ID can exist once without a label (`any`), and once for each. */
export const deviceLink = ({ id, ca }: Pick<Device, 'id' | 'ca'>): string =>
  link(['devices', 'id', id, ...(ca === null ? ['any'] : ['at', ca])]);

/** @param place what follows the ID in {@link deviceLink}; absent: the only device with the ID */
export function DeviceDetails({
  id,
  place: [kind, label],
}: {
  readonly id: string;
  readonly place: readonly string[];
}) {
  const path =
    kind === undefined ? adminPath('devices', id) : devicePath({ id, ca: kind === 'at' ? (label ?? '') : null });
  const { loaded, again } = useLoad(`device ${path}`, (signal) =>
    call<DevicePage>(path, { signal }).catch((error: unknown) => {
      if (error instanceof ApiError && error.code === 'DEVICE_ID_AMBIGUOUS') go(['devices'], { search: id });
      throw error;
    }),
  );
  useEvents(['device.*', 'certificate.*', 'request.*', 'otp.*', 'auth.*'], again);
  return (
    <>
      {loaded.state !== 'ready' && <Heading title={id} />}
      <Show of={loaded} again={again}>
        {(device) => <Details key={device.key} device={device} changed={again} />}
      </Show>
    </>
  );
}

type Job = 'token' | 'edit' | 'revoke' | 'switch' | 'delete';

function Details({ device, changed }: { readonly device: DevicePage; readonly changed: () => void }) {
  const [job, setJob] = useState<Job>();
  const close = () => setJob(undefined);
  const done = () => {
    close();
    changed();
  };
  if (job === 'token') return <NewToken client={device.id} ca={device.ca ?? ''} onClose={done} />;
  const button = (name: Job, words: string, kind = '') => (
    <button type="button" class={kind} onClick={() => setJob(name)}>
      {words}
    </button>
  );
  return (
    <>
      <Heading title={device.id} lead={<Badge of={device.enabled ? 'enabled' : 'disabled'} />}>
        {may('ra') && job !== 'edit' && (
          <>
            {button('edit', 'Edit')}
            {isRevocable(device) && button('revoke', 'Revoke certificates …')}
            {button('switch', device.enabled ? 'Disable …' : 'Enable …')}
            {button('delete', 'Delete …')}
            {button('token', 'New token', 'primary')}
          </>
        )}
      </Heading>
      {job === 'edit' ? (
        <DeviceForm
          device={device}
          onClose={close}
          done={() => {
            notify(`${device.id} is saved.`);
            done();
          }}
        />
      ) : (
        <FactsOf device={device} />
      )}
      <Panel
        title="Certificates"
        actions={
          <>
            <a href={link(['fleet'], { device: device.id })}>Show in the fleet</a>
            <a href={link(['certificates'], { device: device.id })}>Show in the list</a>
          </>
        }
      >
        {device.certificates.length === 0 ? (
          <p class="fine">No certificates yet.</p>
        ) : (
          <CertificateTable caption="Certificates" items={device.certificates} />
        )}
      </Panel>
      <Timeline of={{ state: 'ready', value: device }} />
      {job === 'revoke' && <BulkRevoke filter={{ device_key: device.key }} onClose={close} done={changed} />}
      {job === 'switch' && <Switch device={device} onClose={close} done={changed} />}
      {job === 'delete' && <Delete device={device} onClose={close} />}
    </>
  );
}

const isRevocable = ({ certificates }: DevicePage): boolean => certificates.some(({ status }) => status === 'valid');

function FactsOf({ device }: { readonly device: DevicePage }) {
  const attributes = Object.entries(device.attributes);
  const active = device.tokens.filter(({ status }) => status === 'active').length;
  return (
    <div class="columns">
      <Panel title="Device">
        <Facts
          of={[
            ['CA', device.ca ?? 'any'],
            ['Note', device.note],
            ['Registered', <Moment at={device.created_at} />],
            ['Changed', <Moment at={device.changed_at} />],
            ['Expires', <Moment at={device.not_after} empty="never" />],
            may('ra') && [
              'Active tokens',
              active === 0 ? (
                'none'
              ) : (
                <a href={link(['tokens'], { client_id: device.id, status: 'active' })}>{active}</a>
              ),
            ],
            ...Object.entries(device.match ?? {}).map(([name, value]) => [`Match: ${name}`, value] as const),
          ]}
        />
      </Panel>
      <Panel title="Attributes">
        {attributes.length === 0 ? <p class="fine">None.</p> : <Facts of={attributes} />}
      </Panel>
    </div>
  );
}

interface SwitchProps {
  readonly device: DevicePage;
  readonly onClose: () => void;
  readonly done: () => void;
}

/** Also revokes certificates and tokens, for a stolen device. */
function Switch({ device, onClose, done }: SwitchProps) {
  const { id, enabled } = device;
  const [revokes, setRevokes] = useState(false);
  const [reason, setReason] = useState('unspecified');
  const verb = enabled ? 'Disable' : 'Enable';
  const tokens = device.tokens.filter(({ status }) => status === 'active');
  const run = async () => {
    await order(devicePath(device), { method: 'PATCH', body: { enabled: !enabled } });
    if (revokes) {
      await revokeAll({ device_key: device.key }, reason);
      for (const token of tokens) await order(adminPath('otp', token.id), { method: 'DELETE' });
    }
    notify(`${id} is ${enabled ? 'disabled' : 'enabled'}.`);
    done();
  };
  return (
    <Confirm title={`${verb} ${id}?`} verb={verb} danger={enabled} onClose={onClose} run={run}>
      <p>
        {enabled
          ? 'It gets no more certificates, and you cannot approve its pending requests. Its certificates stay valid unless you revoke them.'
          : 'It may get certificates again.'}
      </p>
      {enabled && (
        <label class="check">
          <input type="checkbox" checked={revokes} onChange={(event) => setRevokes(event.currentTarget.checked)} />
          Also revoke its {counted(validOf(device), 'valid certificate')} and {counted(tokens.length, 'active token')}
        </label>
      )}
      {revokes && <ReasonField reason={reason} choose={setReason} />}
    </Confirm>
  );
}

const validOf = ({ certificates }: DevicePage): number =>
  certificates.filter(({ status }) => status === 'valid').length;

function Delete({ device, onClose }: { readonly device: DevicePage; readonly onClose: () => void }) {
  const { id } = device;
  const [revokes, setRevokes] = useState(true);
  const run = async () => {
    await order(`${devicePath(device)}&revoke=${revokes}`, { method: 'DELETE' });
    notify(`${id} is deleted.`);
    go(['devices']);
  };
  return (
    <Confirm title={`Delete ${id}?`} verb="Delete the device" danger onClose={onClose} run={run}>
      <p>It gets no more certificates. A new device with this ID has a separate history. You cannot undo this.</p>
      <label class="check">
        <input type="checkbox" checked={revokes} onChange={(event) => setRevokes(event.currentTarget.checked)} />
        Also revoke its {counted(validOf(device), 'valid certificate')}
      </label>
    </Confirm>
  );
}
