/** Lists who is about to lose its certificate, and why (docs/guides/fleet.md). */
import { useState } from 'preact/hooks';
import type { Holder } from '../api/types.ts';
import { link, route } from '../shared/router.ts';
import { may } from '../shared/session.ts';
import { Badge, Heading, Time } from '../ui/bits.tsx';
import type { Filter } from '../ui/fields.tsx';
import { RecordList, type Column } from '../ui/table.tsx';
import { certificateLink } from './certificate-link.ts';
import { deviceLink } from './device.tsx';
import { RescueCertificate } from './rescue.tsx';

interface HolderState {
  readonly name: Holder['state'];
  readonly kind: 'good' | 'waiting' | 'bad' | 'plain';
  readonly words: string;
}

/** A holder is in the first one that applies. */
export const HOLDER_STATES: readonly HolderState[] = [
  { name: 'expired', kind: 'bad', words: 'The newest certificate has expired.' },
  { name: 'failing', kind: 'bad', words: 'A renewal was rejected, or expired in the queue.' },
  { name: 'waiting', kind: 'waiting', words: 'A renewal waits for approval, or for the device to fetch it.' },
  { name: 'stuck', kind: 'bad', words: 'The certificate was renewed, but the device still uses the old one.' },
  { name: 'late', kind: 'waiting', words: 'The renewal window has passed.' },
  { name: 'due', kind: 'plain', words: 'The newest certificate is in its renewal window.' },
  { name: 'never', kind: 'plain', words: 'A registered, enabled device never had a certificate.' },
  { name: 'ok', kind: 'good', words: 'Nothing to do.' },
];

const stateOf = (wanted: string | undefined) => HOLDER_STATES.find(({ name }) => name === wanted);

const FILTERS: readonly Filter[] = [
  { name: 'subject', label: 'Subject', placeholder: 'any part' },
  { name: 'state', label: 'State', options: HOLDER_STATES.map(({ name }) => name) },
  { name: 'ca', label: 'CA', kind: 'label' },
  { name: 'device', label: 'Device', placeholder: 'exact ID' },
  { name: 'expires_before', label: 'Expires before', kind: 'date' },
  { name: 'seen_before', label: 'Not seen since', kind: 'date' },
];

const deviceHref = ({ serial, device, ca }: Holder): string =>
  // A certificate at a label may be of a device without one.
  serial === null ? deviceLink({ id: device ?? '', ca }) : link(['devices', 'id', device ?? '']);

const COLUMNS: readonly Column<Holder>[] = [
  {
    head: 'Subject',
    kind: 'name',
    cell: (holder) =>
      holder.serial === null ? (
        <a href={deviceHref(holder)}>{holder.device}</a>
      ) : (
        <a href={certificateLink({ serial: holder.serial, ca: holder.ca ?? '' })}>{holder.subject || 'no subject'}</a>
      ),
  },
  { head: 'State', kind: 'status', cell: ({ state }) => <Badge of={state} kind={stateOf(state)?.kind} /> },
  { head: 'Since', cell: ({ since }) => <Time at={since} /> },
  { head: 'Expires', cell: ({ not_after }) => <Time at={not_after} /> },
  { head: 'Last contact', cell: ({ last_used_at }) => <Time at={last_used_at} /> },
  { head: 'Last error', cell: ({ last_message, last_code }) => last_message ?? last_code, kind: 'message' },
  { head: 'CA', cell: ({ ca }) => ca ?? 'any', extra: true },
  {
    head: 'Device',
    cell: (holder) => holder.device !== null && <a href={deviceHref(holder)}>{holder.device}</a>,
    extra: true,
  },
  { head: 'Other names', cell: ({ sans }) => sans?.join(', '), kind: 'name', extra: true },
  { head: 'Serial number', cell: ({ serial }) => <code>{serial}</code>, extra: true },
  { head: 'First contact', cell: ({ first_used_at }) => <Time at={first_used_at} />, extra: true },
  { head: 'Window ends', cell: ({ window_end }) => <Time at={window_end} />, extra: true },
  { head: 'Renewal information', cell: ({ renewal_info_at }) => <Time at={renewal_info_at} />, extra: true },
  { head: 'TLS', cell: ({ tls_version }) => tls_version, extra: true },
  { head: 'Error code', cell: ({ last_code }) => last_code, extra: true },
  { head: 'Last failure', cell: ({ last_failed_at }) => <Time at={last_failed_at} />, extra: true },
];

export function Fleet() {
  const [rescuing, setRescuing] = useState<Holder>();
  const { query } = route.value;
  const tools: Column<Holder> = {
    head: 'Actions',
    kind: 'tools',
    cell: (holder) =>
      holder.state === 'expired' && (
        <button
          type="button"
          class="quiet"
          aria-label={`Renew once more … ${holder.subject ?? ''}`}
          onClick={() => setRescuing(holder)}
        >
          Renew once more …
        </button>
      ),
  };
  return (
    <>
      <Heading
        title="Fleet"
        lead={stateOf(query['state'])?.words ?? 'Holders of certificates, the earliest expiry first.'}
      />
      <RecordList<Holder>
        caption="Fleet"
        path="/admin/fleet"
        query={query}
        filters={FILTERS}
        columns={may('ra') && [undefined, 'expired'].includes(query['state']) ? [...COLUMNS, tools] : COLUMNS}
        id={({ ca, serial, device }) => JSON.stringify([ca, serial ?? device, serial === null])}
        file="fleet.csv"
        events={['holder.*', 'certificate.*', 'request.*', 'device.*']}
        empty="No holder matches."
      />
      {rescuing?.serial != null && (
        <RescueCertificate
          certificate={{ serial: rescuing.serial, ca: rescuing.ca ?? '', subject: rescuing.subject ?? '' }}
          onClose={() => setRescuing(undefined)}
        />
      )}
    </>
  );
}
