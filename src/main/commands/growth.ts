/**
 * Shows the progress of work that blocks this thread, such as SQLite's VACUUM INTO: a worker thread polls the file's
 * size.
 */
import { Worker } from 'node:worker_threads';
import Type from 'typebox';
import { startedModule } from '../../process/protocol.ts';
import type { CommandContext } from './command.ts';

/** workerData of the thread. */
export const Growth = Type.Object({
  file: Type.String(),
  /** Expected bytes. */
  total: Type.Number(),
  what: Type.String(),
  /** Terminal columns; undefined without a terminal. */
  columns: Type.Union([Type.Number(), Type.Undefined()]),
});
type Growth = Type.Static<typeof Growth>;

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
