/** Who writes a store for several processes, for a test. */
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { databaseOptions, openStore, type StoreOptions } from '../../src/store/sqlite/open.ts';
import { WriterKeeper } from '../../src/store/calls/writer-keeper.ts';
import { WriterServer } from '../../src/store/calls/writer-server.ts';
import type { Store } from '../../src/store/store.ts';
import type { Paths } from './support.ts';

export interface Writer {
  /** Path of its socket. */
  readonly socket: string;
  /** Opens the store as a process that has this name would. */
  open(name: string, options?: Pick<StoreOptions, 'now'>): Promise<Store>;
}

function opener(paths: Paths, socket: string): Writer['open'] {
  return async (name, options = {}) => {
    const store = await openStore({ ...paths, alone: true, ...options, writer: { socket, name } });
    onTestFinished(() => store.close());
    return store;
  };
}

/** What the process runs, in this one; closed when the test ends. */
export async function startWriterHere(paths: Paths): Promise<Writer & { readonly server: WriterServer }> {
  const socket = join(paths.folder, 'socket');
  const server = new WriterServer({ ...databaseOptions({ ...paths, alone: true }), socket, again: false });
  await server.listen();
  onTestFinished(() => server.close());
  return { socket, server, open: opener(paths, socket) };
}

/** The process itself, started now, and ended when the test ends. */
export async function startWriterProcess(paths: Paths): Promise<Writer & { readonly keeper: WriterKeeper }> {
  const log = { info: () => undefined, error: () => undefined };
  const keeper = new WriterKeeper(databaseOptions({ ...paths, alone: true }), log);
  await keeper.start();
  onTestFinished(() => keeper.stop());
  return { socket: keeper.socket, keeper, open: opener(paths, keeper.socket) };
}
