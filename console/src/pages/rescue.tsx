/** Lets an expired certificate renew once more, and ends that. */
import { useState } from 'preact/hooks';
import { adminPath, call, order } from '../api/client.ts';
import type { Certificate } from '../api/types.ts';
import { timeZone } from '../shared/preferences.ts';
import { Confirm } from '../ui/dialog.tsx';
import { Field } from '../ui/fields.tsx';
import { notify } from '../ui/notices.tsx';
import { exactTime } from '../ui/time.ts';

const DAY = 86_400;

interface RescueProps {
  readonly certificate: Pick<Certificate, 'serial' | 'ca' | 'subject'>;
  readonly onClose: () => void;
  readonly done?: () => void;
}

const rescuePath = ({ serial, ca }: RescueProps['certificate']): string =>
  `${adminPath('certificates', serial, 'rescue')}?${new URLSearchParams({ ca }).toString()}`;

const nameOf = ({ subject, serial }: RescueProps['certificate']): string => (subject === '' ? serial : subject);

export function RescueCertificate({ certificate, onClose, done }: RescueProps) {
  const [days, setDays] = useState('2');
  const [reason, setReason] = useState('');
  const run = async () => {
    const body = { for_seconds: Number(days) * DAY, ...(reason === '' ? {} : { reason }) };
    const { rescue_until } = await call<Certificate>(rescuePath(certificate), { method: 'POST', body });
    notify(`${nameOf(certificate)} may renew once more until ${exactTime(rescue_until ?? '', timeZone.value)}.`);
    done?.();
  };
  return (
    <Confirm title="Let this certificate renew once more?" verb="Allow one renewal" onClose={onClose} run={run}>
      <p>
        The expired certificate of <strong>{nameOf(certificate)}</strong> can authenticate one renewal. All other rules
        apply.
      </p>
      <Field label="Days" name="days" hint="From now on, at most 30.">
        {(attributes) => (
          <input
            {...attributes}
            type="number"
            min="1"
            max="30"
            required
            value={days}
            onInput={(event) => setDays(event.currentTarget.value)}
          />
        )}
      </Field>
      <Field label="Reason" name="reason" hint="For the audit log.">
        {(attributes) => (
          <input
            {...attributes}
            maxLength={1000}
            value={reason}
            onInput={(event) => setReason(event.currentTarget.value)}
          />
        )}
      </Field>
    </Confirm>
  );
}

export function EndRescue({ certificate, onClose, done }: RescueProps) {
  const run = async () => {
    await order(rescuePath(certificate), { method: 'DELETE' });
    notify(`${nameOf(certificate)} can no longer renew with its expired certificate.`);
    done?.();
  };
  return (
    <Confirm title="End the pass of this certificate?" verb="End the pass" danger onClose={onClose} run={run}>
      <p>
        After its expiry, the certificate of <strong>{nameOf(certificate)}</strong> authenticates no renewal.
      </p>
    </Confirm>
  );
}
