import { useState } from 'preact/hooks';
import { adminPath, order } from '../api/client.ts';
import type { Certificate } from '../api/types.ts';
import { Confirm } from '../ui/dialog.tsx';
import { Field } from '../ui/fields.tsx';
import { notify } from '../ui/notices.tsx';
import { startOfDay } from '../ui/time.ts';
import { timeZone } from '../preferences.ts';

const REASONS: readonly (readonly [name: string, words: string])[] = [
  ['unspecified', 'no reason given'],
  ['keyCompromise', 'the key is known to others'],
  ['superseded', 'there is a newer certificate'],
  ['cessationOfOperation', 'the device is out of use'],
  ['affiliationChanged', 'its name is not right any more'],
  ['privilegeWithdrawn', 'it may not have it any more'],
  ['certificateHold', 'on hold until it is released'],
  ['cACompromise', 'the CA’s key is known to others'],
  ['aACompromise', 'the attribute authority’s key is known to others'],
];

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
        The hold of the certificate of <strong>{subject === '' ? 'no subject' : subject}</strong> ends. The certificate
        is valid again at once.
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
      <Field label="Reason" name="reason">
        {(attributes) => (
          <select {...attributes} onChange={(event) => setReason(event.currentTarget.value)}>
            {REASONS.map(([name, words]) => (
              <option key={name} value={name} selected={name === reason}>
                {name}: {words}
              </option>
            ))}
          </select>
        )}
      </Field>
      <Field
        label="Not to be trusted since"
        name="since"
        hint="If known: the day from which on the key may have been with others."
      >
        {(attributes) => (
          <input {...attributes} type="date" value={since} onInput={(event) => setSince(event.currentTarget.value)} />
        )}
      </Field>
    </Confirm>
  );
}
