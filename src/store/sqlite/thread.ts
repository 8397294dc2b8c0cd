/** The thread of reading-thread.ts. A message without a call ends it. */
import { parentPort, workerData } from 'node:worker_threads';
import { toPlainError } from '../calls/calls.ts';
import { openExisting, toEstuaryError } from './database.ts';
import type { ReadOperation } from '../operation.ts';
import { runAtOnce } from '../port.ts';
import { readOperations } from './operations.ts';
import type { Request, Response } from './reading-thread.ts';

const options: unknown = workerData;
if (parentPort === null || typeof options !== 'object' || options === null || !('path' in options))
  throw new Error('this module is a thread of the store');
const port = parentPort;
const path = String(options.path);

function open(): { readonly run: (request: Request) => unknown; readonly close: () => void } {
  const db = openExisting(path);
  // Above what is written between two checkpoints (group-commit.ts): those of this connection are for a long backlog.
  db.pragma('wal_autocheckpoint = 8000');
  const operations = new Map<string, ReadOperation>(Object.entries(readOperations(db)));
  return {
    run({ operation, args }) {
      const read = operations.get(operation);
      if (read === undefined) throw new Error(`no such operation: ${operation}`);
      return runAtOnce(read.run(...args));
    },
    close: () => void db.close(),
  };
}

/** Opened by the first call, so that the call gets the error. */
let opened: ReturnType<typeof open> | undefined;

port.on('message', (request: Request | undefined) => {
  if (request === undefined) {
    opened?.close();
    port.close();
    return;
  }
  const { id } = request;
  let response: Response;
  try {
    opened ??= open();
    response = { id, value: opened.run(request) };
  } catch (error) {
    response = { id, error: toPlainError(toEstuaryError(error)) };
  }
  port.postMessage(response);
});
