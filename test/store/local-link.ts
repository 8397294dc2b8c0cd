/**
 * The database in the caller's own thread, for the many tests that are about something else than the threads: the two of a store cost a fifth of
 * a second each time. Everything else is as in a service: the messages are copied as between threads, and come in a turn of their own.
 * What its migrations make of an empty file is made once.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fromPlainError, toPlainError, type Response } from '../../src/store/calls/calls.ts';
import { CallServer } from '../../src/store/calls/call-server.ts';
import { lost } from '../../src/store/calls/link.ts';
import { toStoreError } from '../../src/store/calls/errors.ts';
import { openRole } from '../../src/store/calls/open-role.ts';
import { type threadLink, withBuffers } from '../../src/store/calls/thread-link.ts';
import { openWritable } from '../../src/store/sqlite/database.ts';

let migrated: Buffer | undefined;

function makeDatabase(): Buffer {
  const folder = mkdtempSync(join(tmpdir(), 'estuary-migrated-'));
  try {
    const path = join(folder, 'est.db');
    openWritable(path).close();
    return readFileSync(path);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Puts a database without rows where there is none. */
function putDatabase(path: string): void {
  if (existsSync(path) || !existsSync(dirname(path))) return;
  writeFileSync(path, (migrated ??= makeDatabase()), { mode: 0o600, flag: 'wx' });
}

const withOwnBuffers = (response: Response): Response =>
  'replies' in response
    ? {
        ...response,
        replies: response.replies.map((reply) =>
          'value' in reply ? { id: reply.id, value: withBuffers(reply.value) } : reply,
        ),
      }
    : response;

export const localLink: typeof threadLink = (options, now) => (events) => {
  if (options.driver === 'sqlite' && options.role === 'writer') putDatabase(options.path);
  const server = openRole(options, now()).then(
    (role) =>
      new CallServer(role, {
        send(response) {
          const copy = withOwnBuffers(structuredClone(response));
          setImmediate(() => events.response(copy));
        },
        end() {
          void Promise.resolve(role.close()).finally(() => setImmediate(() => events.end(lost('closed'))));
        },
      }),
  );
  server.catch((error: unknown) => {
    const reason = fromPlainError(toPlainError(toStoreError(error)));
    setImmediate(() => events.end(reason));
  });
  return {
    send(request) {
      const copy = structuredClone(request);
      setImmediate(() => void server.then((open) => open.take(copy)));
    },
  };
};
