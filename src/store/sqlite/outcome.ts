import type { AuditEvent } from '../../audit/event.ts';

/** What a write did, and what the audit log says about it in the same transaction. */
export interface Outcome<T> {
  readonly value: T;
  readonly events: readonly AuditEvent[];
}

/** A write that changed something, or nothing but the audit log. */
export function done<T>(value: T, events: readonly AuditEvent[]): Outcome<T> {
  return { value, events };
}

/** A write that was not carried out: there is nothing to audit. */
export function undone<T>(value: T): Outcome<T> {
  return { value, events: [] };
}
