/** Shared by the benchmarks: clients with certificates and one-time passwords, and the load generator. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { makeKey } from '../../../test/support/csr.ts';
import type { Estuary } from '../../../test/support/estuary.ts';
import type { Client, Job, Result } from './load.ts';

/** More uses of a one-time password than a run can take. */
const MANY_USES = 1_000_000;

export interface Fleet {
  readonly mtls: readonly Client[];
  readonly otp: readonly Client[];
}

/** Enrolls devices. */
export async function clientsOf(estuary: Estuary, size: number): Promise<Fleet> {
  const mtls: Client[] = [];
  const otp: Client[] = [];
  for (let n = 0; n < size; n++) {
    const name = `bench-${n}`;
    const key = makeKey();
    mtls.push({ name, ...(await estuary.enrolled(key, name, [`${name}.example.com`])) });
    const { token } = await estuary.otp({ client_id: name, max_uses: MANY_USES });
    otp.push({ name, authorization: `Basic ${Buffer.from(`${name}:${token}`).toString('base64')}` });
  }
  return { mtls, otp };
}

/** A load generator, in a process. */
export class Load {
  readonly #child: ChildProcess;
  #settle = Promise.withResolvers<'ready' | Result>();

  private constructor(job: Job) {
    this.#child = fork(new URL('./load.ts', import.meta.url), [], { stdio: 'inherit' });
    this.#child.on('message', (message: 'ready' | Result) => this.#settle.resolve(message));
    this.#child.on('exit', () => this.#settle.reject(new Error('the load generator ended')));
    this.#child.send(job);
  }

  /** Resolves after the warm-up; with a fixed rate, when all connections are open. */
  static async start(job: Job): Promise<Load> {
    const load = new Load(job);
    await load.#next();
    return load;
  }

  /** Measures for some seconds. */
  slice(seconds: number): Promise<Result> {
    this.#child.send(seconds);
    return this.result();
  }

  /** The result of a fixed rate, or of the slice. */
  async result(): Promise<Result> {
    const message = await this.#next();
    if (message === 'ready') throw new Error('the load generator is out of step');
    return message;
  }

  async #next(): Promise<'ready' | Result> {
    try {
      return await this.#settle.promise;
    } finally {
      this.#settle = Promise.withResolvers();
    }
  }

  async stop(): Promise<void> {
    // Ends without a complaint.
    this.#settle.promise.catch(() => undefined);
    this.#child.disconnect();
    await once(this.#child, 'exit');
  }
}
