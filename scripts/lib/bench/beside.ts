/** What a server has to bear while a row of `scripts/bench` is measured; each in a process of its own, which the caller ends. */
import { fork, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Fleet } from './fleet.ts';
import type { Job } from './load.ts';
import { forkLoad } from './measure.ts';
import type { Row } from './rows.ts';

/** Resolves when it is there. */
export function besideRow(kind: Row['beside'], fleet: Fleet, folder: string): Promise<ChildProcess> | undefined {
  if (kind === undefined) return undefined;
  return kind === 'slow clients' ? slowCrowd(fleet) : flood(fleet, folder);
}

/** A program that writes to the disk of this folder and forces that there, all the time. */
export function besideSyncs(folder: string): ChildProcess {
  return fork(new URL('./syncs.ts', import.meta.url), [join(folder, 'syncs')], { stdio: 'inherit' });
}

/** Wrong one-time passwords, the next of each client when it is answered. */
async function flood(fleet: Fleet, folder: string): Promise<ChildProcess> {
  const authorization = `Basic ${Buffer.from(`nobody:${randomBytes(24).toString('base64url')}`).toString('base64')}`;
  const clients = fleet.newcomers.map(
    ({ csr }) => ({ csr, authorization, operation: 'simpleenroll', connection: 'new' }) as const,
  );
  const job: Job = { port: fleet.server.port('est'), ca: fleet.ca, clients, warmUp: 1, warmUpCount: 0, seconds: 600 };
  const child = forkLoad(job, join(folder, 'flood.json'));
  // Its first word is that it measures, after a second of its load.
  await once(child, 'message');
  return child;
}

/** Slow clients on every listener, from an address of their own. */
async function slowCrowd(fleet: Fleet): Promise<ChildProcess> {
  const ca = readFileSync(fleet.ca, 'utf8');
  const places = (['est', 'admin', 'publication'] as const).map((listener) => ({
    listener,
    port: fleet.server.port(listener),
    ca,
    localAddress: '127.0.0.2',
  }));
  const child = fork(new URL('./slow.ts', import.meta.url), [JSON.stringify(places)], { stdio: 'inherit' });
  await once(child, 'message');
  return child;
}
