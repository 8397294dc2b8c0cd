import type { AuditEvent } from '../../audit/event.ts';

/** The result of a write, and its audit events for the same transaction. */
export interface Outcome<T> {
  readonly value: T;
  readonly events: readonly AuditEvent[];
  /** Key of the device that the events concern. */
  readonly device?: string | null;
  readonly ofDevices?: readonly { readonly event: AuditEvent; readonly device: string }[];
}

/** A write that changed something, or only the audit log. */
export function done<T>(value: T, events: readonly AuditEvent[], device: string | null = null): Outcome<T> {
  return { value, events, device };
}

/** A write that changed nothing: no audit events. */
export function undone<T>(value: T): Outcome<T> {
  return { value, events: [] };
}
