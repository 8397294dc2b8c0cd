/** The operations of a table, as asynchronous calls. */
import type { Outcome } from './outcome.ts';

/** What an operation gives its caller: the events of an {@link Outcome} stay where they are committed. */
type Value<T> = T extends Outcome<infer V> ? V : T;

/** What carries the calls out. */
interface Caller {
  readonly operations: readonly string[];
  call<Result>(operation: string, args: readonly unknown[]): Promise<Result>;
}

/** The same operations, as calls. */
export type StoreCalls<Operations> = {
  readonly [Name in keyof Operations]: Operations[Name] extends (...args: infer Args) => infer Result
    ? (...args: Args) => Promise<Value<Awaited<Result>>>
    : never;
};

/**
 * One call for each operation of the caller.
 *
 * @typeParam Operations the table of these operations, see operations.ts
 */
export function callsOf<Operations>(caller: Caller): StoreCalls<Operations> {
  const calls = caller.operations.map(
    (name) => [name, (...args: unknown[]) => caller.call<unknown>(name, args)] as const,
  );
  // The caller names every key of the table and no other.
  return Object.fromEntries(calls) as StoreCalls<Operations>;
}
