/** How many connections the operating system lets this process have. */
import type { ConnectionLimits } from './connection-tally.ts';

/** Files that a process needs beside its connections: store, logs, modules, child processes, connections to CAs. */
const OTHER_FILES = 128;

/** `ulimit -n`, which Node raises to the hard limit when it starts; undefined where it is unlimited or not to be had. */
export function openFileLimit(): number | undefined {
  // Otherwise every network interface is looked at, too.
  Reflect.set(process.report, 'excludeNetwork', true);
  const report: unknown = process.report.getReport();
  const soft = member(member(member(report, 'userLimits'), 'open_files'), 'soft');
  return typeof soft === 'number' ? soft : undefined;
}

const member = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;

/**
 * What of the configured limits fits into the limit of open files: a process without a file left could not even write
 * its records.
 *
 * @param listeners how many listeners have these limits each
 */
export function affordable(
  { total, perAddress }: ConnectionLimits,
  listeners: number,
  openFiles: number | undefined,
): ConnectionLimits {
  if (openFiles === undefined) return { total, perAddress };
  const each = Math.max(1, Math.floor((openFiles - OTHER_FILES) / listeners));
  return { total: Math.min(total, each), perAddress: Math.min(perAddress, each) };
}
