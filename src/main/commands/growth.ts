/** How far a file is that something writes which blocks this thread, as SQLite's VACUUM INTO does: a thread of its own looks at its size. */
import { Worker } from 'node:worker_threads';
import { siblingModule } from '../../process/protocol.ts';
import type { CommandContext } from './command.ts';

/** What the thread is told. */
interface Growth {
  readonly file: string;
  /** Bytes that it will have, more or less. */
  readonly total: number;
  readonly what: string;
  /** Of the terminal; undefined: there is none. */
  readonly columns: number | undefined;
}

export const isGrowth = (value: unknown): value is Growth =>
  typeof value === 'object' &&
  value !== null &&
  'file' in value &&
  typeof value.file === 'string' &&
  'total' in value &&
  typeof value.total === 'number' &&
  'what' in value &&
  typeof value.what === 'string' &&
  'columns' in value &&
  (typeof value.columns === 'number' || value.columns === undefined);

/** @returns what ends it, and takes the bar away */
export function showGrowth(
  growth: Omit<Growth, 'columns'>,
  { err, terminal }: Pick<CommandContext, 'err' | 'terminal'>,
): () => Promise<void> {
  const columns = terminal?.errColumns;
  const thread = new Worker(siblingModule(import.meta.url, './growth-watch'), {
    workerData: { ...growth, columns } satisfies Growth,
  });
  thread.unref();
  return async () => {
    await thread.terminate();
    if (columns !== undefined) err('\r\x1b[K');
  };
}
