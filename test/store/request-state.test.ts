/** One table of request states, which docs/guides/approval.md follows. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ENDED, mayGo, REQUEST_STATUSES, TRANSITIONS, type Transition } from '../../src/store/request-state.ts';
import { ROOT } from '../support/root.ts';

test('docs/guides/approval.md has every way from one state to the next', () => {
  const rows = readFileSync(join(ROOT, 'docs/guides/approval.md'), 'utf8')
    .split('\n')
    .map((line) => line.split('|').map((cell) => cell.trim()));
  for (const { from, to, use, when } of Object.values<Transition>(TRANSITIONS)) {
    const wanted = [from.join(', ') || 'new', to ?? 'gone', when, use];
    expect(rows.map((row) => row.slice(1, 5))).toContainEqual(wanted);
  }
});

test('every state is reached, and what has ended stays so', () => {
  const all: readonly Transition[] = Object.values(TRANSITIONS);
  for (const status of REQUEST_STATUSES) expect(all.some(({ to }) => to === status)).toBe(true);
  expect(ENDED).toEqual(['issued', 'rejected', 'failed', 'expired']);
});

test('the guards of the store are of the table', () => {
  expect(mayGo('approve')).toBe("((status = 'pending' AND decider = 'admin'))");
  expect(mayGo('issue')).toBe("(status = 'approved' OR (status = 'pending' AND decider = 'ca'))");
  expect(mayGo('refuse')).toBe(
    "(status = 'approved') AND NOT EXISTS (SELECT 1 FROM reservation WHERE request_id = request.id)",
  );
});
