/** Which audit records are events, and how a receiver sees them (docs/guides/notifications.md). */
import type { AuditRecord } from '../audit/event.ts';
import type { NotificationEvent } from '../config/vocabulary.ts';
import type { NotificationConfig } from '../config/schema.ts';

const OF_TYPE = new Map<string, NotificationEvent>([
  ['certificate.expiring', 'certificate.expiring'],
  ['certificate.issued', 'certificate.issued'],
  ['certificate.revoked', 'certificate.revoked'],
  ['certificate.held', 'certificate.revoked'],
  ['request.queued', 'request.queued'],
  ['request.approved', 'request.decided'],
  ['request.rejected', 'request.decided'],
  ['lockout.started', 'authentication.locked'],
  ['ca.expiring', 'ca.expiring'],
  ['crl.overdue', 'crl.overdue'],
  ['client_crl.expired', 'client_crl.expired'],
  ['ca.unavailable', 'ca.unavailable'],
  ['upstream.unavailable', 'upstream.unavailable'],
  ['renewal.overdue', 'renewal.overdue'],
  ['holder.expired', 'holder.expired'],
  ['holder.failing', 'holder.failing'],
  ['holder.stuck', 'holder.stuck'],
  ['holder.late', 'holder.late'],
]);

/** The events that are sent by mail, in digests. */
export const WARNINGS: readonly NotificationEvent[] = [
  'certificate.expiring',
  'ca.expiring',
  'crl.overdue',
  'client_crl.expired',
  'ca.unavailable',
  'upstream.unavailable',
  'renewal.overdue',
  'holder.expired',
  'holder.failing',
  'holder.stuck',
  'holder.late',
];

/** CloudEvents 1.0. */
export interface CloudEvent {
  readonly specversion: '1.0';
  readonly id: string;
  readonly source: string;
  readonly type: NotificationEvent | 'test';
  readonly time: string;
  readonly subject?: string;
  readonly datacontenttype: 'application/json';
  readonly data: object;
}

/** Fields that belong to the log. */
const NOT_SENT: Partial<Record<keyof AuditRecord, undefined>> = {
  seq: undefined,
  time: undefined,
  type: undefined,
  prev_hash: undefined,
  hash: undefined,
  stored: undefined,
  holder: undefined,
};

const decisionOf = ({ type }: AuditRecord): object =>
  type === 'request.approved' || type === 'request.rejected' ? { decision: type.slice('request.'.length) } : {};

/** The event of a record; undefined: a receiver does not want it. */
export function eventOf(record: AuditRecord, wanted: NotificationConfig): CloudEvent | undefined {
  const type = OF_TYPE.get(record.type);
  if (type === undefined || !selected(wanted).includes(type)) return undefined;
  const { ca, label = ca, days } = record;
  if (wanted.labels !== undefined && (label === undefined || !wanted.labels.includes(label))) return undefined;
  if (days !== undefined && !wanted.days.includes(days)) return undefined;
  const { seq, time, node } = record;
  const subject = record.serial ?? record.request_id ?? record.subject;
  return {
    specversion: '1.0',
    id: `${node ?? 'estuary'}-${seq}`,
    source: `urn:estuary:${encodeURIComponent(node ?? 'estuary')}`,
    type,
    time,
    ...(subject === undefined ? {} : { subject }),
    datacontenttype: 'application/json',
    data: { ...record, ...NOT_SENT, ...decisionOf(record), ...record.holder },
  };
}

const selected = ({ kind, events }: NotificationConfig): readonly NotificationEvent[] =>
  kind === 'smtp'
    ? WARNINGS.filter((one) => events?.includes(one) ?? true)
    : (events ?? [...new Set(OF_TYPE.values())]);

export function sampleEvent(now: number, node: string): CloudEvent {
  return {
    ...{ specversion: '1.0', id: `${node}-test-${now}`, source: `urn:estuary:${encodeURIComponent(node)}` },
    ...{ type: 'test', time: new Date(now).toISOString(), datacontenttype: 'application/json' },
    data: { detail: 'a test of this notification' },
  };
}
