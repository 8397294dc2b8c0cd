/** The child processes of a server under test, from Linux's /proc. */
import { readFileSync } from 'node:fs';

/** What the command line of each kind contains. */
const MODULES = { 'HSM child': 'pkcs11-child', 'GSSAPI child': 'spnego-child' } as const;
export type ServiceProcess = keyof typeof MODULES;

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return ''; // It ended while we looked.
  }
}

/** Those of one kind, below the process that was started. */
export function processesOf(pid: number, kind: ServiceProcess): number[] {
  const children = read(`/proc/${pid}/task/${pid}/children`).trim().split(' ').filter(Boolean).map(Number);
  return children.filter((child) => read(`/proc/${child}/cmdline`).includes(MODULES[kind]));
}
