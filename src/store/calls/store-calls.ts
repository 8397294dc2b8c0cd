/** A table's operations as asynchronous calls. */
import type { Outcome } from './outcome.ts';

/** The caller's part of a result; the events of an {@link Outcome} stay with the transaction. */
type Value<T> = T extends Outcome<infer V> ? V : T;

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
