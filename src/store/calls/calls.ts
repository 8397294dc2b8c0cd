import { EstuaryError, type ErrorCode, type ErrorStatus } from '../../errors.ts';
import type { AuditEvent } from '../../audit/event.ts';

/** An error as a message between threads. */
export interface PlainError {
  readonly status: ErrorStatus;
  readonly code: ErrorCode;
  readonly message: string;
  readonly detail: string | undefined;
  readonly retryAfter: number | undefined;
}

export function toPlainError({ status, code, message, detail, retryAfter }: EstuaryError): PlainError {
  return { status, code, message, detail, retryAfter };
}

export function fromPlainError({ status, code, message, detail, retryAfter }: PlainError): EstuaryError {
  return new EstuaryError(status, code, message, {
    ...(detail === undefined ? {} : { detail }),
    ...(retryAfter === undefined ? {} : { retryAfter }),
  });
}

/** Audit events that a write commits. */
export type Events = readonly AuditEvent[];

/** The result of a write, and its audit events for the same transaction. */
export interface Outcome<T> {
  readonly value: T;
  readonly events: Events;
  /** Key of the device that the events concern. */
  readonly device?: string | null;
  readonly ofDevices?: readonly { readonly event: AuditEvent; readonly device: string }[];
}

/** A write that changed something, or only the audit log. */
export function done<T>(value: T, events: Events, device: string | null = null): Outcome<T> {
  return { value, events, device };
}

/** A write that changed nothing: no audit events. */
export function undone<T>(value: T): Outcome<T> {
  return { value, events: [] };
}
