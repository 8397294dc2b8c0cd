/** The processes that a server under test consists of, from Linux's /proc. */
import { readFileSync } from 'node:fs';

export type ServiceProcess = 'writer' | 'worker' | 'HSM child' | 'GSSAPI child';

/** What stands in the command line of those that are no workers. */
const MODULES: Readonly<Record<Exclude<ServiceProcess, 'worker'>, string>> = {
  writer: 'writer-process',
  'HSM child': 'pkcs11-child',
  'GSSAPI child': 'spnego-child',
};

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return ''; // It ended while we looked.
  }
}

function descendants(pid: number): number[] {
  const children = read(`/proc/${pid}/task/${pid}/children`).trim().split(' ').filter(Boolean).map(Number);
  return children.flatMap((child) => [child, ...descendants(child)]);
}

/** Those of one kind, below the process that was started. */
export function processesOf(pid: number, kind: ServiceProcess): number[] {
  const kindOf = (one: number): ServiceProcess | undefined => {
    const command = read(`/proc/${one}/cmdline`);
    if (command === '') return undefined;
    for (const other of ['writer', 'HSM child', 'GSSAPI child'] as const)
      if (command.includes(MODULES[other])) return other;
    return 'worker';
  };
  return descendants(pid).filter((one) => kindOf(one) === kind);
}

/** What each worker answers, the others stopped meanwhile so that they take no connection; a service of one process answers once. */
export async function fromEachWorker<T>(pid: number, ask: () => Promise<T>): Promise<T[]> {
  const workers = processesOf(pid, 'worker');
  const answers: T[] = [];
  for (const worker of workers.length === 0 ? [pid] : workers) {
    const others = workers.filter((other) => other !== worker);
    for (const other of others) process.kill(other, 'SIGSTOP');
    try {
      answers.push(await ask());
    } finally {
      for (const other of others) process.kill(other, 'SIGCONT');
    }
  }
  return answers;
}
