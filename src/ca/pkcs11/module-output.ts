/** What a token's library prints to stderr, in the log. */
import { type IsolatedLog } from '../../process/isolated-process.ts';
import { labeledLog } from '../driver.ts';

/** Lines per hour for each CA. */
const LINES = 100;
const HOUR = 3_600_000;

interface Hour {
  readonly since: number;
  lines: number;
}

/** By the CA's label: a restart of the process, or another signer after a reload, starts no new hour. */
const hours = new Map<string, Hour>();

/** Logs a line of the library of a CA, unless it printed too many in this hour. */
export function moduleOutput(label: string, log: IsolatedLog): (line: string) => void {
  const { warn } = labeledLog(log, label);
  return (line) => {
    const now = performance.now();
    let hour = hours.get(label);
    if (hour === undefined || now - hour.since >= HOUR) hours.set(label, (hour = { since: now, lines: 0 }));
    hour.lines += 1;
    if (hour.lines < LINES) warn({ process: 'PKCS11' }, `the PKCS #11 library of "${label}" printed: ${line}`);
    else if (hour.lines === LINES)
      warn(
        { process: 'PKCS11' },
        `the PKCS #11 library of "${label}" prints more; the log has no more of it this hour`,
      );
  };
}
