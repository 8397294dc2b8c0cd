import { useState } from 'preact/hooks';
import { adminPath, order } from '../api/client.ts';
import type { Certificate } from '../api/types.ts';
import { Confirm } from '../ui/dialog.tsx';
import { Field } from '../ui/fields.tsx';
import { notify } from '../ui/notices.tsx';
import { startOfDay } from '../ui/time.ts';
import { timeZone } from '../preferences.ts';

const REASONS: readonly (readonly [name: string, words: string])[] = [
  ['unspecified', 'no reason'],
  ['keyCompromise', 'others may have the key'],
  ['superseded', 'a newer certificate replaces it'],
  ['cessationOfOperation', 'the device is no longer used'],
  ['affiliationChanged', 'its name is no longer right'],
  ['privilegeWithdrawn', 'it lost the right to the certificate'],
  ['certificateHold', 'on hold until it is released'],
  ['cACompromise', 'others may have the key of the CA'],
  ['aACompromise', 'others may have the key of the attribute authority'],
];

interface ReasonProps {
  readonly reason: string;
  readonly choose: (reason: string) => void;
}

export function ReasonField({ reason, choose }: ReasonProps) {
  return (
    <Field label="Reason" name="reason">
      {(attributes) => (
        <select {...attributes} onChange={(event) => choose(event.currentTarget.value)}>
          {REASONS.map(([name, words]) => (
            <option key={name} value={name} selected={name === reason}>
              {name}: {words}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

interface RevokeProps {
  readonly certificate: Certificate;
  readonly onClose: () => void;
  readonly done: () => void;
}

export function ReleaseCertificate({ certificate: { serial, ca, subject }, onClose, done }: RevokeProps) {
  const run = async () => {
    await order(`${adminPath('certificates', serial, 'release')}?${new URLSearchParams({ ca }).toString()}`, {
      method: 'POST',
    });
    notify(`The certificate of ${subject} is valid again.`);
    done();
  };
  return (
    <Confirm title="Release this certificate?" verb="Release the certificate" onClose={onClose} run={run}>
      <p>
        The certificate of <strong>{subject === '' ? 'no subject' : subject}</strong> is valid again at once.
      </p>
    </Confirm>
  );
}

export function RevokeCertificate({ certificate, onClose, done }: RevokeProps) {
  const { serial, ca, subject } = certificate;
  const [reason, setReason] = useState('unspecified');
  const [since, setSince] = useState('');
  const run = async () => {
    const body = { reason, ...(since === '' ? {} : { invalidity_date: startOfDay(since, timeZone.value) }) };
    await order(`${adminPath('certificates', serial, 'revoke')}?${new URLSearchParams({ ca }).toString()}`, {
      method: 'POST',
      body,
    });
    notify(`The certificate of ${subject} is revoked.`);
    done();
  };
  return (
    <Confirm title="Revoke this certificate?" verb="Revoke the certificate" danger onClose={onClose} run={run}>
      <p>
        The certificate of <strong>{subject === '' ? 'no subject' : subject}</strong> (serial number{' '}
        <code>{serial}</code>) authenticates nobody from now on and will be in the CA’s next CRL. Only a hold can be
        reversed.
      </p>
      <ReasonField reason={reason} choose={setReason} />
      <Field label="Invalid since" name="since" hint="If known: the day since when the key may be compromised.">
        {(attributes) => (
          <input {...attributes} type="date" value={since} onInput={(event) => setSince(event.currentTarget.value)} />
        )}
      </Field>
    </Confirm>
  );
}
