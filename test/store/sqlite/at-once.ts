import type { ReadOperation } from '../../../src/store/operation.ts';
import { type Operation, runAtOnce } from '../../../src/store/port.ts';

type AtOnce<Table> = {
  readonly [Name in keyof Table]: Table[Name] extends { readonly run: (...args: infer Args) => Operation<infer T> }
    ? (...args: Args) => T
    : never;
};

/** The reads of an SQLite database as functions. */
export function atOnce<Table extends Readonly<Record<string, ReadOperation>>>(table: Table): AtOnce<Table> {
  const reads = Object.entries(table).map(
    ([name, { run }]) => [name, (...args: never[]) => runAtOnce(run(...args))] as const,
  );
  return Object.fromEntries(reads) as AtOnce<Table>;
}
