/** All certificates of a configuration: once through, or kept up as long as the process runs. */
import { createHash } from 'node:crypto';
import { mkdirSync, realpathSync } from 'node:fs';
import { createServer } from 'node:net';
import { describe } from '../errors.ts';
import { CertificateAgent, type StepOptions, type StepResult } from './certificate-agent.ts';
import { ClientError } from './client-error.ts';
import type { CertificateConfig, ClientConfig } from './config/client-config.ts';
import type { ClientContext } from './context.ts';
import { writeReports } from './status.ts';

/** Waits; ends early when it is told to stop. */
export type Sleep = (milliseconds: number, stop: AbortSignal) => Promise<void>;

/** A clock that is set, or a machine that slept, is noticed after so long. */
const LONGEST_SLEEP = 60_000;
/** A process that ended without a word is not started again at once. */
const AFTER_ELSEWHERE = 5000;

/** One step of each certificate. @throws ClientError if another process uses one of the folders */
export async function stepAll(
  config: ClientConfig,
  chosen: readonly CertificateConfig[],
  context: ClientContext,
  options: StepOptions = {},
): Promise<StepResult[]> {
  return locked(chosen, async () => {
    const results: StepResult[] = [];
    for (const one of chosen) {
      const result = await new CertificateAgent(one, config.server, context).step(options);
      const { outcome, note } = result;
      // A timer that finds nothing to do is silent.
      if (note !== undefined && (outcome !== 'valid' || options.explicit === true)) context.log('info', one.name, note);
      results.push(result);
    }
    report(config, context);
    return results;
  });
}

/** A step of one certificate in a process of its own. */
export type StepElsewhere = (certificate: string, stop: AbortSignal) => Promise<void>;

/**
 * Steps whenever something is due, until it is stopped.
 *
 * @param elsewhere for certificates with a token, whose library can hang, crash, or go on with a session that a token has forgotten
 * @throws ClientError where another process has one of the folders
 */
export async function keepUp(
  config: ClientConfig,
  context: ClientContext,
  elsewhere: StepElsewhere,
  sleep: Sleep,
  stop: AbortSignal,
): Promise<void> {
  // The other process has the lock while it is at work.
  const here = config.certificate.filter(({ token }) => token === undefined);
  await locked(here, async () => {
    await Promise.all(
      config.certificate.map(async (one) => {
        const agent = new CertificateAgent(one, config.server, context);
        const step = async (): Promise<number> => {
          if (one.token === undefined) return (await agent.step()).next;
          if (agent.due() > context.now()) return agent.due();
          await elsewhere(one.name, stop);
          return Math.max(agent.due(), context.now() + AFTER_ELSEWHERE);
        };
        while (!stop.aborted) {
          const next = await step();
          report(config, context);
          await sleep(Math.min(Math.max(next - context.now(), 1000), LONGEST_SLEEP), stop);
        }
      }),
    );
  });
}

/** A file for a monitor that cannot be written is no reason to renew nothing. */
function report(config: ClientConfig, context: ClientContext): void {
  try {
    writeReports(config, context.disk, context.now());
  } catch (error) {
    context.log('error', 'reports', describe(error));
  }
}

async function locked<T>(certificates: readonly CertificateConfig[], work: () => Promise<T>): Promise<T> {
  const locks: Lock[] = [];
  try {
    for (const { folder } of certificates) {
      makeFolder(folder);
      locks.push(await lockFolder(folder));
    }
    return await work();
  } finally {
    for (const lock of locks) lock.release();
  }
}

function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o755 });
  } catch (error) {
    throw new ClientError('local', 'FILES_UNUSABLE', describe(error), { cause: error });
  }
}

/**
 * One process for a folder at a time: a timer's `renew` beside a daemon would make two keys. On Linux the lock is a socket in the abstract
 * namespace, which the kernel lets go of with the process, however that ends.
 */
interface Lock {
  release(): void;
}

/** @throws ClientError `FILES_UNUSABLE`: another process has it */
async function lockFolder(folder: string): Promise<Lock> {
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
