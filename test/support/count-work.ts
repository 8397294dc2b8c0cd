/**
 * Counts what the main thread of a built server does and creates: `NODE_OPTIONS=--import=` this file. Each SIGUSR2 writes
 * the {@link WorkCount} since the one before to the file that WORK_COUNT names. Statements, promises, timers and listeners
 * are counted after every other signal, because that allocates memory.
 */
import Database from 'better-sqlite3';
import { createHook } from 'node:async_hooks';
import { EventEmitter } from 'node:events';
import { renameSync, writeFileSync } from 'node:fs';
import { getHeapStatistics } from 'node:v8';
import { isMainThread } from 'node:worker_threads';

export interface WorkCount {
  /** Received since the start. */
  readonly signals: number;
  /** Allocated on the heap of V8. */
  readonly bytes: number;
  /** How many, by kind and by where they come from. */
  readonly kinds: Readonly<Record<string, Readonly<Record<string, number>>>>;
}

const file = process.env['WORK_COUNT'];
if (isMainThread && file !== undefined) countInto(file);

function countInto(path: string): void {
  const kinds: Record<string, Record<string, number>> = {};
  let counts = false;
  const count = (kind: string, origin: string): void => {
    const origins = (kinds[kind] ??= {});
    origins[origin] = (origins[origin] ?? 0) + 1;
  };
  const hook = createHook({
    init(_id, type) {
      if (type === 'PROMISE') count('promises', caller());
      if (type === 'Timeout' || type === 'Immediate') count('timers', caller());
    },
  });
  before(EventEmitter.prototype, ['on', 'addListener', 'prependListener'], (_emitter, [event]) => {
    if (counts) count('listeners', `${String(event)} in ${caller()}`);
  });
  const database = new Database(':memory:');
  const statements: unknown = Object.getPrototypeOf(database.prepare('SELECT 1'));
  if (typeof statements !== 'object' || statements === null) throw new TypeError('a statement has no prototype');
  before(statements, ['run', 'get', 'all', 'iterate'], (statement) => {
    const source = String(Reflect.get(Object(statement), 'source'));
    if (counts) count('statements', source.replace(/\s+/g, ' ').trim());
  });
  database.close();

  let signals = 0;
  let last = 0;
  process.on('SIGUSR2', () => {
    const bytes = getHeapStatistics().total_allocated_bytes - last;
    writeFileSync(`${path}.new`, JSON.stringify({ signals: ++signals, bytes, kinds } satisfies WorkCount));
    renameSync(`${path}.new`, path);
    for (const kind of Object.keys(kinds)) kinds[kind] = {};
    counts = !counts;
    if (counts) hook.enable();
    else hook.disable();
    last = getHeapStatistics().total_allocated_bytes;
  });
}

/** The function of the server that is running, or else of Node.js. */
function caller(): string {
  const lines = new Error().stack?.split('\n').slice(3) ?? [];
  const line = lines.find((each) => each.includes('/dist/')) ?? lines[0] ?? '';
  return /at (?:async )?(?:new )?([^\s(]+)/.exec(line)?.[1]?.replace(/^.*\//, '') ?? 'Node.js';
}

/** Runs `action` before each call of these methods. */
function before(
  owner: object,
  names: readonly string[],
  action: (self: unknown, args: readonly unknown[]) => void,
): void {
  for (const name of names) {
    const method: unknown = Reflect.get(owner, name);
    if (typeof method !== 'function') throw new TypeError(`there is no method ${name}`);
    const wrapped = function (this: unknown, ...args: unknown[]): unknown {
      action(this, args);
      return Reflect.apply(method, this, args);
    };
    Object.defineProperty(owner, name, { value: wrapped, writable: true, configurable: true });
  }
}
