import type { AuditEvent } from '../../audit/event.ts';

/** What a write did, and what the audit log says about it in the same transaction. */
export interface Outcome<T> {
  readonly value: T;
  readonly events: readonly AuditEvent[];
  /** The key of the device that the events tell of. */
  readonly device?: string | null;
  /** Events that tell of a device each. */
  readonly ofDevices?: readonly { readonly event: AuditEvent; readonly device: string }[];
}

/** A write that changed something, or nothing but the audit log. */
export function done<T>(value: T, events: readonly AuditEvent[], device: string | null = null): Outcome<T> {
  return { value, events, device };
}

/** A write that was not carried out: there is nothing to audit. */
export function undone<T>(value: T): Outcome<T> {
  return { value, events: [] };
}
