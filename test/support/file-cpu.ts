/** A setup file for `scripts/test --profile`: records the CPU time of each test file, with that of the programs it started and that have ended. */
import { readFileSync } from 'node:fs';
import { afterAll, expect } from 'vitest';
import { recordNote } from './run-notes.ts';

if (process.env['ESTUARY_PROFILE'] === '1') {
  const before = cpuTime();
  afterAll(() => recordNote('cpu', expect.getState().testPath ?? '', cpuTime() - before));
}

/** In milliseconds. Fields 14 to 17 of proc_pid_stat(5) are hundredths of a second. */
function cpuTime(): number {
  const stat = readFileSync('/proc/self/stat', 'latin1');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks) * 10, 0);
}
