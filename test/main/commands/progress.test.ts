/** A bar with an estimate on a terminal, plain lines elsewhere, and nothing for quick work. */
import { describe, expect, test } from 'vitest';
import { progress } from '../../../src/main/commands/progress.ts';

function watched(errColumns?: number) {
  let [clock, text] = [0, ''];
  const terminal = errColumns === undefined ? {} : { terminal: { errColumns, outColumns: undefined, ask: undefined } };
  const shown = progress(
    { now: () => clock, err: (more) => void (text += more), ...terminal },
    { what: 'importing', unit: 'rows', total: 1000 },
  );
  return {
    ...shown,
    /** What an update at a time has written. */
    at(seconds: number, done: number, total?: number): string {
      [clock, text] = [seconds * 1000, ''];
      shown.update(done, total);
      return text;
    },
    ended(): string {
      text = '';
      shown.end();
      return text;
    },
  };
}

describe('progress', () => {
  test('nothing within two seconds, nor at the end of what took no longer', () => {
    for (const columns of [undefined, 80]) {
      const one = watched(columns);
      expect([one.at(1, 500), one.at(1.9, 1000), one.ended()]).toEqual(['', '', '']);
    }
  });

  test('a bar that is drawn over itself, with what is left, no wider than the terminal, and taken away', () => {
    const one = watched(80);
    expect(one.at(3, 250)).toBe('\r\x1b[Kimporting [######------------------] 25 %, 250 of 1000 rows, about 9 s left');
    expect(one.at(3.1, 260)).toBe('');
    expect(one.at(300, 500, 2000)).toContain('25 %, 500 of 2000 rows, about 15 min left');
    expect(one.at(7200, 1, 1000)).toMatch(/1 of 1000 rows$/);
    expect(one.ended()).toBe('\r\x1b[K');
    const narrow = watched(30);
    expect(narrow.at(3, 250).length).toBe('\r\x1b[K'.length + 29);
    narrow.end();
  });

  test('an estimate from the rate that was measured, also where a small part of many rows is done', () => {
    const one = watched();
    expect(one.at(3, 31, 10_000)).toBe('importing: 0 %, 31 of 10000 rows\n');
    expect(one.at(13, 160, 10_000)).toBe('importing: 1 %, 160 of 10000 rows, about 13 min left\n');
  });

  test('without a terminal a line now and then', () => {
    const one = watched();
    expect(one.at(3, 250)).toBe('importing: 25 %, 250 of 1000 rows, about 9 s left\n');
    expect(one.at(4, 300)).toBe('');
    expect(one.at(13, 500)).toMatch(/^importing: 50 %/);
    expect(one.ended()).toBe('');
  });
});
