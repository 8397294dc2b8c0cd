/** Shared by the benchmarks: clients with certificates and one-time passwords, and a run of the load generator. */
import { fork } from 'node:child_process';
import { makeKey, onTheWire, simpleCsr } from '../../../test/support/csr.ts';
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
    const csr = onTheWire(simpleCsr(key, name, [`${name}.example.com`]));
    mtls.push({ csr, ...(await estuary.enrolled(key, name, [`${name}.example.com`])) });
    const { token } = await estuary.otp({ client_id: name, max_uses: MANY_USES });
    otp.push({ csr, authorization: `Basic ${Buffer.from(`${name}:${token}`).toString('base64')}` });
  }
  return { mtls, otp };
}

/** Runs the load generator in a process. @param onReady called when the connections of a fixed rate are open */
export async function runLoad(job: Job, onReady: () => void = () => undefined): Promise<Result> {
  const child = fork(new URL('./load.ts', import.meta.url), [], { stdio: 'inherit' });
  child.send(job);
  return new Promise((resolve, reject) => {
    child.on('message', (message: 'ready' | Result) => {
      if (message === 'ready') onReady();
      else resolve(message);
    });
    child.on('exit', () => reject(new Error('the load generator ended')));
  });
}
