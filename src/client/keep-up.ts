/**
 * The daemon: starts a process for each step that is due. This process loads neither HTTP nor TLS, and a token's library
 * that hangs or crashes does not affect it.
 */
import { mkdirSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { describe } from '../errors.ts';
import { ClientError } from './client-error.ts';
import type { CertificateConfig, ClientConfig, TokenConfig } from './config/schema.ts';
import type { ClientContext } from './context.ts';
import { Schedule, type ScheduleContext } from './schedule.ts';
import { writeReports } from './status.ts';
import { type Lock, SYSTEM } from './system.ts';
import { tokenPin } from './token/token.ts';

/** What a process that makes a step reports if the token rejected the PIN. */
export const PIN_REJECTED = 'PIN_REJECTED';
export type StepElsewhere = (certificate: CertificateConfig, stop: AbortSignal) => Promise<unknown>;
export type DaemonContext = ScheduleContext & Pick<ClientContext, 'log'>;

/** Maximum sleep, so that a changed clock, a suspend or a new password is noticed. */
const LONGEST_SLEEP = 60_000;
/** After a step, and after one that changed nothing, such as with a full disk. */
const [AFTER_STEP, AFTER_FAILED_STEP] = [1000, 60_000];
/** Processes at the same time. */
const MOST_STEPS = 2;

/**
 * Runs steps when due, until stopped.
 * @throws ClientError if another daemon uses one of the folders
 */
export async function keepUp(
  config: ClientConfig,
  context: DaemonContext,
  elsewhere: StepElsewhere,
  stop: AbortSignal,
): Promise<void> {
  const slots = new Slots(MOST_STEPS);
  const pins = new Pins(context);
  await locked(config.certificate, 'run', async () => {
    await Promise.all(
      config.certificate.map(async (certificate) => {
        const schedule = new Schedule(certificate, context);
        while (!stop.aborted) {
          let next = schedule.due();
          if (next <= context.now()) {
            const before = seen(schedule);
            const step = async () => (stop.aborted ? undefined : elsewhere(certificate, stop));
            await pins.guard(certificate, () => slots.use(step));
            const isStuck = schedule.due() <= context.now() && seen(schedule) === before;
            const pause = isStuck ? AFTER_FAILED_STEP : AFTER_STEP;
            next = Math.max(schedule.due(), context.now() + pause);
          }
          report(config, context);
          await sleep(Math.min(Math.max(next - context.now(), 0), LONGEST_SLEEP), stop);
        }
      }),
    );
  });
}

/** What a step that did something changes, such as the renewal information that it got. */
function seen({ folder }: Schedule): string {
  try {
    return JSON.stringify([folder.state(), folder.live()?.version]);
  } catch {
    return '';
  }
}

class Slots {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(count: number) {
    this.#free = count;
  }

  async use<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free === 0) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#free -= 1;
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free += 1;
      else next();
    }
  }
}

/** A rejected PIN counts against the token's limit of tries: no step has it again before a reload. */
class Pins {
  readonly #context: DaemonContext;
  readonly #turn = new Slots(1);
  #rejected: string | undefined;

  constructor(context: DaemonContext) {
    this.#context = context;
  }

  /** One step after the other, so that two do not find out at the same time. */
  async guard({ token, name }: CertificateConfig, step: () => Promise<unknown>): Promise<void> {
    if (token === undefined) {
      await step();
      return;
    }
    await this.#turn.use(async () => {
      const pin = this.#pinOf(token);
      if (pin !== undefined && pin === this.#rejected) return;
      if ((await step()) !== PIN_REJECTED) return;
      this.#rejected = pin;
      const advice = 'correct the PIN, or reload the configuration (SIGHUP) for another try with this one';
      this.#context.log(
        'error',
        name,
        `the token "${token.label}" rejected the PIN, which is not tried again: ${advice}`,
      );
    });
  }

  #pinOf(token: TokenConfig): string | undefined {
    try {
      return tokenPin(token, this.#context);
    } catch {
      // The step reports the problem.
      return undefined;
    }
  }
}

/** Maximum setTimeout delay, in milliseconds. */
const LONGEST_TIMER = 2 ** 31 - 1;

/** Ends early when stopped. */
export async function sleep(milliseconds: number, stop: AbortSignal): Promise<void> {
  try {
    await wait(Math.min(milliseconds, LONGEST_TIMER), undefined, { signal: stop });
  } catch (error) {
    if (!stop.aborted) throw error;
  }
}

/** An unwritable monitoring file must not stop renewals. */
export function report(config: ClientConfig, context: Pick<ClientContext, 'disk' | 'log' | 'now'>): void {
  try {
    writeReports(config, context.disk, context.now());
  } catch (error) {
    context.log('error', 'reports', describe(error));
  }
}

/** @throws ClientError if another process has a folder for the same purpose */
export async function locked<T>(
  certificates: readonly CertificateConfig[],
  purpose: 'run' | 'step',
  work: () => Promise<T>,
): Promise<T> {
  const locks: Lock[] = [];
  try {
    for (const { folder } of certificates) {
      makeFolder(folder);
      locks.push(await SYSTEM.lockFolder(folder, purpose));
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
