/**
 * Shows the progress of work that blocks this thread, such as SQLite's VACUUM INTO: a worker thread polls the file's
 * size.
 */
import { Worker } from 'node:worker_threads';
import { startedModule } from '../../process/protocol.ts';
import type { CommandContext } from './command.ts';

/** workerData of the thread. */
interface Growth {
  readonly file: string;
  /** Expected bytes. */
  readonly total: number;
  readonly what: string;
  /** Terminal columns; undefined without a terminal. */
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

/** @returns a function that stops it and clears the bar */
export function showGrowth(
  growth: Omit<Growth, 'columns'>,
  { err, terminal }: Pick<CommandContext, 'err' | 'terminal'>,
): () => Promise<void> {
  const columns = terminal?.errColumns;
  const thread = new Worker(startedModule('main/commands/growth-watch'), {
    workerData: { ...growth, columns } satisfies Growth,
  });
  thread.unref();
  return async () => {
    await thread.terminate();
    if (columns !== undefined) err('\r\x1b[K');
  };
}
