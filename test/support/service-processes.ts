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
