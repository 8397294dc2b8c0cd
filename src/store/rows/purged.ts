import type { AuditEvent } from '../../audit/event.ts';

const iso = (time: number): string => new Date(time).toISOString();

/** What the audit log says of what has left the store. @param before milliseconds since the epoch */
export function purged(what: string, count: number, before: number): readonly AuditEvent[] {
  if (count === 0) return [];
  return [{ type: 'store.purged', outcome: 'success', detail: `${count} ${what} before ${iso(before)}` }];
}

/** @param before milliseconds since the epoch */
export const devicePurged = (id: string, before: number): AuditEvent => ({
  type: 'device.deleted',
  outcome: 'success',
  detail: `device ${id}: its not_after was before ${iso(before)} (retention.devices)`,
});
