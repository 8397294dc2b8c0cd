/** The operations of a store thread, as asynchronous calls. */
import type { StoreCaller } from './caller.ts';
import type { Outcome } from './outcome.ts';

/** What an operation gives its caller: the events of an {@link Outcome} stay where they are committed. */
type Value<T> = T extends Outcome<infer V> ? V : T;

/** What {@link callsOf} needs of a caller. */
type Caller = Pick<StoreCaller, 'operations' | 'call'>;

/** The same calls, from another thread. */
export type StoreCalls<Operations> = {
  readonly [Name in keyof Operations]: Operations[Name] extends (...args: infer Args) => infer Result
    ? (...args: Args) => Promise<Value<Awaited<Result>>>
    : never;
};

/**
 * One call for each operation of the other side, which has started. The names come from there, so that an operation is
 * declared nowhere but in its table.
 *
 * @typeParam Operations the table that the other side serves, see operations.ts
 */
export function callsOf<Operations>(caller: Caller): StoreCalls<Operations> {
  const calls = caller.operations.map(
    (name) => [name, (...args: unknown[]) => caller.call<unknown>(name, args)] as const,
  );
  // The other side names every key of the table and no other.
  return Object.fromEntries(calls) as StoreCalls<Operations>;
}
