/** The operations of a thread, as asynchronous calls of the main thread. */
import type { Outcome } from './outcome.ts';
import type { StoreThread } from './thread.ts';

/** What an operation gives its caller: the events of an {@link Outcome} stay in the thread, which commits them. */
type Value<T> = T extends Outcome<infer V> ? V : T;

/** What {@link callsOf} needs of a thread. */
type Callee = Pick<StoreThread, 'operations' | 'call'>;

/** The same calls, from another thread. */
export type ThreadCalls<Operations> = {
  readonly [Name in keyof Operations]: Operations[Name] extends (...args: infer Args) => infer Result
    ? (...args: Args) => Promise<Value<Result>>
    : never;
};

/**
 * One call for each operation of a thread that has started. The names come from the thread, so that an operation is
 * declared nowhere but in its table.
 *
 * @typeParam Operations the table that the thread serves, see worker.ts
 */
export function callsOf<Operations>(thread: Callee): ThreadCalls<Operations> {
  const calls = thread.operations.map((name) => [name, (...args: unknown[]) => call(thread, name, args)] as const);
  // The thread names every key of the table and no other.
  return Object.fromEntries(calls) as ThreadCalls<Operations>;
}

async function call(thread: Callee, name: string, args: readonly unknown[]): Promise<unknown> {
  return asReceived(await thread.call<unknown>(name, args.map(forTransfer)));
}

/**
 * A value with a copy of its own for each Buffer in it: the clone of a slice would carry the whole memory block it lies
 * in. What holds no Buffer is passed on as it is.
 */
function forTransfer(value: unknown): unknown {
  if (!holdsBytes(value)) return value;
  if (value instanceof Uint8Array) return copyOf(value);
  if (Array.isArray(value)) return value.map(forTransfer);
  const copy = { ...value };
  for (const [key, member] of Object.entries(value))
    if (holdsBytes(member)) Reflect.set(copy, key, forTransfer(member));
  return copy;
}

function holdsBytes(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false;
  if (value instanceof Uint8Array) return true;
  // Without a list of the members: every call of the store comes by here, with its audit events.
  for (const key in value) if (holdsBytes(Reflect.get(value, key))) return true;
  return false;
}

function copyOf(bytes: Uint8Array): Buffer {
  const copy = Buffer.allocUnsafeSlow(bytes.length);
  copy.set(bytes);
  return copy;
}

/** The same value with Buffers: a BLOB arrives from the thread as a Uint8Array. It is ours alone, and is changed in place. */
function asReceived(value: unknown): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  if (typeof value !== 'object' || value === null) return value;
  for (const [key, member] of Object.entries(value))
    if (typeof member === 'object') Reflect.set(value, key, asReceived(member));
  return value;
}
