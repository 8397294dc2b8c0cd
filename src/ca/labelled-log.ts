import type { IsolatedLog } from '../process/isolated-process.ts';

/** A log that says of which CA it tells. */
export function labelledLog(log: IsolatedLog, ca: string): IsolatedLog {
  return {
    info: (fields, message) => log.info({ ca, ...fields }, message),
    warn: (fields, message) => log.warn({ ca, ...fields }, message),
    error: (fields, message) => log.error({ ca, ...fields }, message),
  };
}
