/** The periodic end of queued requests and CMC messages. */
import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { sweepRequests } from '../../src/enrollment/sweep-requests.ts';
import { createLogger } from '../../src/log.ts';
import { PURGED_AT_ONCE } from '../../src/store/port.ts';

const NOW = 1_000_000;

/** One sweep of a store that returns these numbers in order: what it called, and what it logged. */
async function swept(
  requests: readonly { expired: number; purged: number }[],
  messages: readonly number[],
  duty = true,
) {
  const [calls, lines]: [string[], string[]] = [[], []];
  const [left, more] = [[...requests], [...messages]];
  const log = createLogger('info', {
    write: (line: string) => {
      const { msg, expired, purged } = JSON.parse(line) as Record<string, unknown>;
      lines.push([msg, expired, purged].join(' ').trim());
    },
  });
  const stop = sweepRequests({
    store: {
      expireRequests: (_, now) => {
        calls.push(`requests ${now}`);
        const next = left.shift();
        return next === undefined ? Promise.reject(new Error('no disk')) : Promise.resolve(next);
      },
      purgeCmcMessages: (before) => {
        calls.push(`messages ${before}`);
        return Promise.resolve(more.shift() ?? 0);
      },
    },
    log,
    now: () => NOW,
    lifetimes: { pending_ttl: 10, retention: 1000 },
    isOnDuty: () => duty,
    lookForUnanswered: () => Promise.resolve(void calls.push('submissions')),
  });
  stop();
  await setImmediate();
  return { calls, lines };
}

const [REQUESTS, MESSAGES] = [`requests ${NOW}`, `messages ${NOW - 1000}`];

test('deletes batches until one is not full, after it has looked for submissions', async () => {
  const requests = [PURGED_AT_ONCE, PURGED_AT_ONCE, 1].map((purged) => ({ expired: 1, purged }));
  expect(await swept(requests, [PURGED_AT_ONCE, 0])).toEqual({
    calls: ['submissions', REQUESTS, REQUESTS, REQUESTS, MESSAGES, MESSAGES],
    lines: [`expired or deleted queued requests 3 ${2 * PURGED_AT_ONCE + 1}`],
  });
});

test('nothing to do: one call each, and no line in the log', async () => {
  expect(await swept([{ expired: 0, purged: 0 }], [])).toEqual({
    calls: ['submissions', REQUESTS, MESSAGES],
    lines: [],
  });
});

test('only the node on duty sweeps', async () => {
  expect(await swept([{ expired: 1, purged: 0 }], [], false)).toEqual({ calls: [], lines: [] });
});

test('a store that fails is asked again in the next sweep', async () => {
  expect(await swept([], [])).toEqual({ calls: ['submissions', REQUESTS], lines: ['cannot expire queued requests'] });
});
