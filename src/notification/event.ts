/** Which audit records are events, and how a receiver sees them (docs/guides/notifications.md). */
import type { AuditRecord } from '../audit/event.ts';
import { NOTIFICATION_EVENTS, type NotificationEvent } from '../config/vocabulary.ts';
import type { NotificationConfig } from '../config/schema.ts';

/** The events of the audit records that have another name. */
const OF_TYPE = new Map<string, NotificationEvent>([
  ['certificate.held', 'certificate.revoked'],
  ['request.approved', 'request.decided'],
  ['request.rejected', 'request.decided'],
  ['lockout.started', 'authentication.locked'],
]);

const typeOf = ({ type }: AuditRecord): NotificationEvent | undefined =>
  OF_TYPE.get(type) ?? NOTIFICATION_EVENTS.find((event) => event === type);

/** Not sent by mail: they need no attention. */
const ORDINARY: readonly string[] = ['certificate.issued', 'request.queued', ...OF_TYPE.values()];

/** The events that are sent by mail, in digests. */
const WARNINGS = NOTIFICATION_EVENTS.filter((event) => !ORDINARY.includes(event));

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
  const type = typeOf(record);
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
  kind === 'smtp' ? WARNINGS.filter((warning) => events?.includes(warning) ?? true) : (events ?? NOTIFICATION_EVENTS);

export function sampleEvent(now: number, node: string): CloudEvent {
  return {
    ...{ specversion: '1.0', id: `${node}-test-${now}`, source: `urn:estuary:${encodeURIComponent(node)}` },
    ...{ type: 'test', time: new Date(now).toISOString(), datacontenttype: 'application/json' },
    data: { detail: 'a test of this notification' },
  };
}
