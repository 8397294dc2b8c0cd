/**
 * A setup file: waits for the process of `scripts/test` that starts Dogtag, if there is one. Then `requires('dogtag')` says
 * how it ended. Each step of that process has a limit (`scripts/dogtag`), so the wait needs none.
 */
import { readFileSync } from 'node:fs';
import { until } from './until.ts';

const starter = process.env['ESTUARY_DOGTAG_STARTER'];
if (starter !== undefined) await until('Dogtag has started', () => !isRunning(starter), Infinity);

function isRunning(pid: string): boolean {
  try {
    // A process that has ended stays in the table until its parent waits for it.
    return !readFileSync(`/proc/${pid}/stat`, 'latin1').includes(') Z ');
  } catch {
    return false;
  }
}
