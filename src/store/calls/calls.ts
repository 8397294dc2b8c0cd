import { EstuaryError, type ErrorCode, type ErrorStatus } from '../../errors.ts';
import type { AuditEvent } from '../../audit/event.ts';

/** A write waiting for its transaction. */
export interface Call {
  readonly operation: string;
  /** Typed by the caller and by the operation. */
  readonly args: readonly never[];
  /** Time of the call and of its audit records. */
  readonly time: number;
}

export type Reply = { readonly value: unknown; readonly error?: undefined } | { readonly error: EstuaryError };

/** Carries out the writes of a store. */
export interface Writer {
  /** Names of its operations. */
  readonly operations: readonly string[];
  /** One reply per call, in order. Never rejects, and is not called again before it has resolved. */
  carryOut(calls: readonly Call[]): Promise<readonly Reply[]>;
}

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

/** The caller's part of a result; the events of an {@link Outcome} stay with the transaction. */
export type Value<T> = T extends Outcome<infer V> ? V : T;

/** Carries out the calls. */
interface Caller {
  readonly operations: readonly string[];
  call<Result>(operation: string, args: readonly unknown[]): Promise<Result>;
}

export type StoreCalls<Operations> = {
  readonly [Name in keyof Operations]: Operations[Name] extends (...args: infer Args) => infer Result
    ? (...args: Args) => Promise<Value<Awaited<Result>>>
    : never;
};

/** One call per operation. @typeParam Operations the table of these operations, see operations.ts */
export function callsOf<Operations>(caller: Caller): StoreCalls<Operations> {
  const calls = caller.operations.map(
    (name) => [name, (...args: unknown[]) => caller.call<unknown>(name, args)] as const,
  );
  // The caller names exactly the keys of the table.
  return Object.fromEntries(calls) as StoreCalls<Operations>;
}
