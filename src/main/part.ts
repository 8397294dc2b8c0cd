import { describe } from '../errors.ts';
import type { Logger } from '../log.ts';

/** A part of the service that starts or stops. */
export interface Part {
  /** Called once, before any part starts: acquires resources that another program may hold. */
  bind?(): Promise<void>;
  /** Called once, after the earlier parts have started. */
  start?(): void | Promise<void>;
  /** Called at most once, even if its start failed or was not reached. */
  stop?(): void | Promise<void>;
}

/** Logs a failure of work in the background. */
export const reporting =
  (log: Pick<Logger, 'error'>, message: string) =>
  (error: unknown): void =>
    log.error({ detail: describe(error) }, message);

/**
 * Work that runs at start and periodically, never concurrently; a long run delays the next. The stop waits for a run in
 * progress.
 * @param interval milliseconds
 * @param work `stopped` ends a run in progress early
 */
export function recurring(
  interval: number,
  work: (run: { readonly isFirst: boolean; readonly stopped: AbortSignal }) => Promise<void>,
): Part {
  const stop = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  let underWay: Promise<void> | undefined;
  const begin = (isFirst: boolean): void => {
    underWay ??= work({ isFirst, stopped: stop.signal }).finally(() => (underWay = undefined));
  };
  return {
    start() {
      timer = setInterval(() => begin(false), interval).unref();
      begin(true);
    },
    async stop() {
      stop.abort();
      clearInterval(timer);
      await underWay;
    },
  };
}
