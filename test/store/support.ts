import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { openWritable } from '../../src/store/sqlite/database.ts';
import { openStore } from '../../src/store/sqlite/open.ts';
import type { Store, StoreOptions } from '../../src/store/store.ts';
import { removeFolder } from '../support/folders.ts';
import { T0 } from './rows.ts';

export { auditTypes, issue } from './contract/support.ts';
export { certificateRow, event, otpRow, requestRow, reservation, T0 } from './rows.ts';

export interface Paths {
  readonly folder: string;
  readonly path: string;
  readonly auditFile: string;
}

/** Names for a database and an audit file in a folder that goes with the test. */
export function temporaryPaths(): Paths {
  const folder = mkdtempSync(join(tmpdir(), 'estuary-store-'));
  onTestFinished(() => removeFolder(folder));
  return { folder, path: join(folder, 'est.db'), auditFile: join(folder, 'audit.log') };
}

let empty: Buffer | undefined;

/** Puts an empty database there, unless there is one: a copy costs a third of making its tables. */
export function putEmptyDatabase(path: string): void {
  if (existsSync(path)) return;
  if (empty === undefined) {
    openWritable(path).close();
    empty = readFileSync(path);
  } else writeFileSync(path, empty, { mode: 0o600 });
}

/** Opens a store that is closed when the test ends. */
export async function opened(
  paths: Paths,
  now: () => number = Date.now,
  onCommit: NonNullable<StoreOptions['onCommit']> = () => undefined,
): Promise<Store> {
  putEmptyDatabase(paths.path);
  const store = await openStore({ ...paths, now, onCommit });
  onTestFinished(() => store.close());
  return store;
}

/** Starts processes at once that open the store and enroll once each. @returns their exit codes */
export async function enrolledInProcesses({ path, auditFile }: Paths, count: number): Promise<readonly unknown[]> {
  const program = join(import.meta.dirname, 'writer-process.ts');
  const children = Array.from({ length: count }, (_, n) =>
    spawn(process.execPath, [program, path, auditFile, `writer-${n}`, '1'], { stdio: ['ignore', 'ignore', 'inherit'] }),
  );
  const exits: unknown[][] = await Promise.all(children.map((child) => once(child, 'exit')));
  return exits.map(([code]) => code);
}

/** Opens a store in a folder for all tests of a file; the caller closes it and removes the folder. */
export function openedIn(folder: { readonly file: (name: string) => string }, now = () => T0): Promise<Store> {
  const paths = { path: folder.file('est.db'), auditFile: folder.file('audit.log') };
  putEmptyDatabase(paths.path);
  return openStore({ ...paths, node: 'node-1', now });
}
