/**
 * Progress of long work on standard error: a bar with an estimate on a terminal, otherwise an occasional line. Silent
 * for the first two seconds.
 */
import type { CommandContext } from './command.ts';

/** Milliseconds. */
const QUIET = 2000;
const REDRAW = 200;
const BETWEEN_LINES = 10_000;
/** Minimum progress for a stable estimate. */
const ENOUGH = { part: 0.02, units: 32 };
const BAR = 24;

export interface Progress {
  /** @param total current estimate */
  readonly update: (done: number, total?: number) => void;
  /** Clears the bar; always call it at the end. */
  readonly end: () => void;
}

/** @param what the work, such as `importing devices` @param unit such as `rows` @param total if known */
export function progress(
  { err, now, terminal }: Pick<CommandContext, 'err' | 'now' | 'terminal'>,
  { what, unit, total: known }: { readonly what: string; readonly unit: string; readonly total?: number },
): Progress {
  const columns = terminal?.errColumns;
  const began = now();
  let [last, drawn, total, done] = [began, false, known, 0];
  const show = (): void => {
    const at = now();
    const pause = columns === undefined ? BETWEEN_LINES : REDRAW;
    if (at - began < QUIET || (drawn && at - last < pause)) return;
    const text = describe({ done, total, elapsed: at - began, unit });
    err(
      columns === undefined
        ? `${what}: ${text}\n`
        : `\r\x1b[K${`${what} ${bar(done, total)}${text}`.slice(0, columns - 1)}`,
    );
    [last, drawn] = [at, true];
  };
  // Shows activity while waiting for a response.
  const timer = setInterval(show, 1000);
  timer.unref();
  return {
    update(now, of) {
      done = now;
      if (of !== undefined) total = of;
      show();
    },
    end() {
      clearInterval(timer);
      if (drawn && columns !== undefined) err('\r\x1b[K');
    },
  };
}

interface State {
  readonly done: number;
  readonly total: number | undefined;
  readonly elapsed: number;
  readonly unit: string;
}

function describe({ done, total, elapsed, unit }: State): string {
  if (total === undefined || total <= 0) return `${done} ${unit}, ${duration(elapsed)}`;
  const part = Math.min(done / total, 1);
  const left =
    part < ENOUGH.part && done < ENOUGH.units ? '' : `, about ${duration((elapsed / part) * (1 - part))} left`;
  return `${Math.floor(part * 100)} %, ${done} of ${total} ${unit}${left}`;
}

function bar(done: number, total: number | undefined): string {
  if (total === undefined || total <= 0) return '';
  const full = Math.round(Math.min(done / total, 1) * BAR);
  return `[${'#'.repeat(full)}${'-'.repeat(BAR - full)}] `;
}

/** @param elapsed milliseconds */
export function duration(elapsed: number): string {
  const seconds = Math.round(elapsed / 1000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 10) return `${minutes} min ${seconds % 60} s`;
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
