/**
 * One process for a folder at a time: a timer's `renew` beside a daemon would make two keys. On Linux the lock is a socket in the abstract
 * namespace, which the kernel lets go of with the process, however that ends.
 */
import { createHash } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { createServer } from 'node:net';
import { ClientError } from './client-error.ts';

export interface Lock {
  release(): void;
}

/** @throws ClientError `FILES_UNUSABLE`: another process has it */
export async function lockFolder(folder: string): Promise<Lock> {
  if (process.platform !== 'linux') return { release: () => undefined };
  const name = createHash('sha256').update(realpathSync(folder)).digest('hex').slice(0, 32);
  const server = createServer((socket) => socket.destroy());
  return new Promise((resolve, reject) => {
    server.once('error', (error) => {
      const taken = 'code' in error && error.code === 'EADDRINUSE';
      const reason = taken ? 'another estuary client is at work there' : error.message;
      reject(new ClientError('local', 'FILES_UNUSABLE', `${folder}: ${reason}`, { cause: error }));
    });
    server.listen(`\0estuary-client-${name}`, () => {
      server.unref();
      resolve({ release: () => void server.close() });
    });
  });
}
