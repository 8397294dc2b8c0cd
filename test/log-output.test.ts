/** What standard output does not accept waits up to a limit; the log says how many lines are missing. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { LogOutput } from '../src/log-output.ts';

const MIB = 2 ** 20;

describe('an output that fails', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  /** An output that answers each write as `accept` says. */
  function output(): { log: LogOutput; taken: () => string; accept: (how: number | string) => void } {
    let [how, taken]: [number | string, string] = [Infinity, ''];
    const log = new LogOutput(
      (piece, done) => {
        if (typeof how === 'string') {
          done(Object.assign(new Error(how), { code: how }), 0);
          return;
        }
        const part = piece.subarray(0, how);
        taken += part.toString();
        done(null, part.length);
      },
      (lost) => `lost ${lost}\n`,
    );
    return { log, taken: () => taken, accept: (next) => void (how = next) };
  }

  test.each(['ENOSPC', 'EIO', 'EPIPE'])('with %s keeps the lines until it works again', (code) => {
    const { log, taken, accept } = output();
    accept(code);
    log.write('one\n');
    log.write('two\n');
    vi.advanceTimersByTime(10_000);
    expect(taken()).toBe('');
    expect(log.state).toEqual({ lost: 0, problem: code });
    accept(Infinity);
    vi.advanceTimersByTime(1000);
    expect(taken()).toBe('one\ntwo\n');
    expect(log.state).toEqual({ lost: 0, problem: undefined });
  });

  test('a full pipe is a problem only after a second without progress', () => {
    const { log, taken, accept } = output();
    accept('EAGAIN');
    log.write('one\n');
    expect(log.state.problem).toBeUndefined();
    vi.advanceTimersByTime(1500);
    expect(log.state.problem).toBe('blocked');
    accept(Infinity);
    vi.advanceTimersByTime(1000);
    expect(taken()).toBe('one\n');
    expect(log.state.problem).toBeUndefined();
  });

  test('at most 1 MiB waits; the rest is counted, and the log says how many lines are missing', () => {
    const { log, taken, accept } = output();
    accept('ENOSPC');
    const piece = `${'x'.repeat(4094)}\n\n`;
    for (let i = 0; i < 300; i++) log.write(piece);
    const kept = Math.floor(MIB / piece.length);
    expect(log.state).toEqual({ lost: 2 * (300 - kept), problem: 'ENOSPC' });
    accept(Infinity);
    vi.advanceTimersByTime(1000);
    expect(taken().startsWith(piece.repeat(kept / 2))).toBe(true);
    expect(taken().match(/lost \d+\n/g)).toEqual([`lost ${2 * (300 - kept)}\n`]);
    log.write('next\n');
    expect(taken().endsWith('next\n')).toBe(true);
    // A counter never falls.
    expect(log.state.lost).toBe(2 * (300 - kept));
  });

  test('a write that was cut in the middle of a line goes on there', () => {
    const { log, taken, accept } = output();
    accept(3);
    log.write('first line\n');
    accept('ENOSPC');
    log.write('second line\n');
    accept(Infinity);
    vi.advanceTimersByTime(1000);
    expect(taken()).toBe('first line\nsecond line\n');
  });

  test('no timer keeps the process alive', () => {
    const { log, accept } = output();
    accept('EIO');
    log.write('one\n');
    expect(vi.getTimerCount()).toBe(1);
    accept(Infinity);
    vi.advanceTimersByTime(1000);
    expect(vi.getTimerCount()).toBe(0);
  });
});
