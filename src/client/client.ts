/** Processes all certificates of a configuration, once or continuously. */
import { mkdirSync } from 'node:fs';
import { describe } from '../errors.ts';
import { CertificateAgent, type StepOptions, type StepResult } from './certificate-agent.ts';
import { ClientError } from './client-error.ts';
import type { CertificateConfig, ClientConfig } from './config/client-config.ts';
import type { ClientContext } from './context.ts';
import { writeReports } from './status.ts';
import { type Lock, SYSTEM } from './system.ts';

/** Waits; ends early when stopped. */
export type Sleep = (milliseconds: number, stop: AbortSignal) => Promise<void>;

/** Maximum sleep, so that a changed clock or a suspend is noticed. */
const LONGEST_SLEEP = 60_000;
/** Delay before restarting a process that crashed. */
const AFTER_ELSEWHERE = 5000;

/** One step per certificate. @throws ClientError if another process uses one of the folders */
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
      // A timer run with nothing to do is silent.
      if (note !== undefined && (outcome !== 'valid' || options.explicit === true)) context.log('info', one.name, note);
      results.push(result);
    }
    report(config, context);
    return results;
  });
}

export type StepElsewhere = (certificate: string, stop: AbortSignal) => Promise<void>;

/**
 * Runs steps when due, until stopped.
 * @param elsewhere for certificates with a token, whose library may hang, crash, or keep using a lost session
 * @throws ClientError if another process uses one of the folders
 */
export async function keepUp(
  config: ClientConfig,
  context: ClientContext,
  elsewhere: StepElsewhere,
  sleep: Sleep,
  stop: AbortSignal,
): Promise<void> {
  // The other process has the lock while it runs.
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

/** An unwritable monitoring file must not stop renewals. */
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
      locks.push(await SYSTEM.lockFolder(folder));
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
