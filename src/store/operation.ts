/**
 * An operation of the store is its generator function and every fact about it: the constructor says what kind it is, and
 * requires the facts of the kind. The drivers have no other list of operations.
 */
import type { Outcome } from './calls/calls.ts';
import type { Operation, Write } from './port.ts';

export interface ReadOperation {
  readonly kind: 'quick' | 'slow';
  readonly run: (...args: never[]) => Operation<unknown>;
}

export interface WriteOperation {
  readonly kind: 'free' | 'begins' | 'completes';
  readonly keys: typeof EVERYTHING | ((...args: never[]) => Keys);
  readonly run: (...args: never[]) => Write<unknown>;
}

/**
 * What a write could conflict on: what it reads before writing, or writes. Calls with a common key run one after another,
 * within and across nodes. All keys of a transaction are locked before its first row, in one order on all nodes, so
 * transactions cannot deadlock.
 */
export type Keys = readonly string[];

type Run = ReadOperation['run'];

/** A read of microseconds: SQLite runs it in the main thread. */
export const quickRead = <R extends Run>(run: R) => ({ kind: 'quick', run }) as const;

/** A read that takes longer: SQLite runs it in a thread (reading-thread.ts), so that it does not delay other requests. */
export const slowRead = <R extends Run>(run: R) => ({ kind: 'slow', run }) as const;

const ofKind =
  <Kind extends WriteOperation['kind']>(kind: Kind) =>
  <R extends WriteOperation['run']>(keys: typeof EVERYTHING | ((...args: Parameters<R>) => Keys), run: R) =>
    ({ kind, keys, run }) as const;

export const write = ofKind('free');

/**
 * A write that begins work, which the other nodes close if they consider this node dead. It needs the lease, so that it
 * begins nothing that they would close.
 */
export const beginWork = ofKind('begins');

/** A write that completes work. If the others have closed it, the work may be repeated. */
export const completeWork = ofKind('completes');

/** For a write that affects what its arguments do not name: it has its transaction to itself. */
export const EVERYTHING = 'everything';

/** For a write of the audit log alone. */
export const nothing = (): Keys => [];

export const DEVICE_KEY = 'device of key ';
export const CONCERNING = 'concerning request ';

/** null: the request or certificate has none. */
export const lock = {
  token: (id: string | null): Keys => (id === null ? [] : [`token ${id}`]),
  request: (id: string): Keys => [`request ${id}`],
  /** A request that ends: it may return the use of its token, and concerns its device. */
  ending: (id: string): Keys => [`request ${id}`, `${CONCERNING}${id}`],
  recognition: (hash: string): Keys => [`recognition ${hash}`],
  passwords: (keys: readonly string[]): Keys => keys.map((key) => `password ${key}`),
  certificate: ({ ca, serial }: { readonly ca: string; readonly serial: string | null }): Keys =>
    serial === null ? [] : [`serial ${serial} ${ca}`],
  /** The certificate whose pass a request needs. */
  rescued: (of: { readonly ca: string; readonly serial: string } | undefined): Keys =>
    of === undefined ? [] : lock.certificate(of),
  device: (id: string): Keys => [`device ${id}`],
  /** A device, if only the key of its entry is known. */
  deviceOf: (key: string | null): Keys => (key === null ? [] : [`${DEVICE_KEY}${key}`]),
  message: (key: string): Keys => [`message ${key}`],
  list: (ca: string): Keys => [`list ${ca}`],
  administrator: (name: string): Keys => [`administrator ${name}`],
  session: (hash: string): Keys => [`session ${hash}`],
  path: (leaf: string): Keys => [`path ${leaf}`],
  intermediate: (fingerprint: string): Keys => [`intermediate ${fingerprint}`],
  account: ({ directory, thumbprint }: { readonly directory: string; readonly thumbprint: string }): Keys => [
    `account ${thumbprint} ${directory}`,
  ],
  notification: (name: string): Keys => [`notification ${name}`],
  renewal: (id: string): Keys => [`renewal ${id}`],
  fleet: (): Keys => ['fleet'],
  probe: (): Keys => ['probe'],
} as const;

type Reads = Readonly<Record<string, ReadOperation>>;
type Writes = Readonly<Record<string, WriteOperation>>;

/** The calls of a store that carry out these operations. The events of an {@link Outcome} stay with the transaction. */
export type Calls<Table> = {
  [Name in keyof Table]: Table[Name] extends { readonly run: (...args: infer Args) => Operation<infer Result> }
    ? (...args: Args) => Promise<Result extends Outcome<infer Value> ? Value : Result>
    : never;
};

/** One call per operation. */
export function callsOf<Table extends Reads | Writes>(
  table: Table,
  call: (
    operation: Table extends Reads ? ReadOperation : WriteOperation,
    name: keyof Table & string,
  ) => (...args: never[]) => Promise<unknown>,
): Calls<Table> {
  const calls = Object.entries(table).map(([name, operation]) => [name, call(operation as never, name)] as const);
  // Each has the arguments of its operation, and resolves with its result.
  return Object.fromEntries(calls) as Calls<Table>;
}
