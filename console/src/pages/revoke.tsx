import { useState } from 'preact/hooks';
import { adminPath, order } from '../api/client.ts';
import type { Certificate } from '../api/types.ts';
import { Confirm } from '../ui/dialog.tsx';
import { Field } from '../ui/fields.tsx';
import { notify } from '../ui/notices.tsx';
import { startOfDay } from '../ui/time.ts';
import { timeZone } from '../shared/preferences.ts';

const REASONS: readonly (readonly [name: string, words: string])[] = [
  ['unspecified', 'no reason'],
  ['keyCompromise', 'the key may be compromised'],
  ['superseded', 'a newer certificate replaces it'],
  ['cessationOfOperation', 'the device is no longer used'],
  ['affiliationChanged', 'the name is no longer correct'],
  ['privilegeWithdrawn', 'the device may no longer have a certificate'],
  ['certificateHold', 'on hold until it is released'],
  ['cACompromise', 'the key of the CA may be compromised'],
  ['aACompromise', 'the key of the attribute authority may be compromised'],
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
    await order(adminPath('certificates', serial, 'release'), { method: 'POST', query: { ca } });
    notify(`The certificate of ${subject} is valid again.`);
    done();
  };
  return (
    <Confirm title="Release this certificate?" verb="Release the certificate" onClose={onClose} run={run}>
      <p>
        The certificate of <strong>{subject || 'no subject'}</strong> becomes valid again immediately.
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
    await order(adminPath('certificates', serial, 'revoke'), { method: 'POST', query: { ca }, body });
    notify(`The certificate of ${subject} is revoked.`);
    done();
  };
  return (
    <Confirm title="Revoke this certificate?" verb="Revoke the certificate" danger onClose={onClose} run={run}>
      <p>
        The certificate of <strong>{subject || 'no subject'}</strong> (serial number <code>{serial}</code>) can no
        longer authenticate, and will be in the CA’s next CRL. You can undo only a hold.
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
