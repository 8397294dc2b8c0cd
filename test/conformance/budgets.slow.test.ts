/**
 * What an enrollment may cost, counted in the built server without a clock. A change that costs more fails, and the failure
 * lists what there is by where it comes from.
 */
import { existsSync, mkdtempSync, readFileSync } from 'node:fs';
import { Agent } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { WorkCount } from '../support/count-work.ts';
import { makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { Estuary, type EstCall } from '../support/estuary.ts';
import { removeFolder } from '../support/folders.ts';
import { until } from '../support/until.ts';

/** Enrollments before the count: V8 allocates more in code that it has not compiled. */
const WARM_UP = 200;
const COUNTED = 10;
/** The least of them counts, because the fleet is derived in the background every two seconds, and V8 compiles. */
const WINDOWS = 5;

/** The COMMIT of a group, which enrollments at the same time share, and the audit records. */
const SHARED = /^(?:BEGIN|COMMIT)|\baudit(?:_head)?\b/;

const dir = mkdtempSync(join(tmpdir(), 'estuary-budgets-'));
const file = join(dir, 'count');
let estuary: Estuary;
let signals = 0;

beforeAll(async () => {
  const counter = join(import.meta.dirname, '../support/count-work.ts');
  estuary = await Estuary.start({ built: true, env: { NODE_OPTIONS: `--import=${counter}`, WORK_COUNT: file } });
});
afterAll(async () => {
  await estuary.stop();
  removeFolder(dir);
});

async function nextCount(): Promise<WorkCount> {
  const wanted = ++signals;
  process.kill(estuary.server.pid, 'SIGUSR2');
  return until(`the count after signal ${wanted}`, () => {
    const count = existsSync(file) && (JSON.parse(readFileSync(file, 'utf8')) as WorkCount);
    return count && count.signals === wanted && count;
  });
}

/** What each of some enrollments costs, in windows with every count, and the bytes in windows without the others. */
async function costs(request: Pick<EstCall, 'client' | 'password'>): Promise<{ windows: Kinds[]; bytes: number[] }> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const enroll = async (times: number): Promise<void> => {
    for (let n = 0; n < times; n++) {
      const answer = await estuary.enroll(onTheWire(simpleCsr(makeKey(), 'device-1')), { ...request, agent });
      expect(answer.status).toBe(200);
    }
  };
  await enroll(WARM_UP);
  const [windows, bytes]: [Kinds[], number[]] = [[], []];
  await nextCount();
  for (let n = 0; n < WINDOWS; n++) {
    await enroll(COUNTED);
    windows.push((await nextCount()).kinds);
    await enroll(COUNTED);
    bytes.push((await nextCount()).bytes / COUNTED);
  }
  await nextCount();
  agent.destroy();
  return { windows, bytes };
}

type Kinds = WorkCount['kinds'];
type Origins = Kinds[string];

const sum = (origins: Origins): number => Object.values(origins).reduce((total, times) => total + times, 0) / COUNTED;

function without(origins: Origins, pattern: RegExp): Origins {
  return Object.fromEntries(Object.entries(origins).filter(([origin]) => !pattern.test(origin)));
}

function expectAtMost(most: number, windows: readonly Origins[], kind: string): void {
  const least = windows.reduce((best, other) => (sum(other) < sum(best) ? other : best));
  const list = Object.entries(least)
    .toSorted(([, one], [, other]) => other - one)
    .map(([origin, times]) => `${times / COUNTED} ${origin}`);
  expect(sum(least), `${kind} of an enrollment:\n${list.join('\n')}\n`).toBeLessThanOrEqual(most);
  expect(sum(least), `${kind} are counted`).toBeGreaterThan(most / 2);
}

test.each([
  {
    by: 'a client certificate',
    request: async () => ({ client: await estuary.enrolled(makeKey(), 'device-1') }),
    own: 8,
    budget: { statements: 19, promises: 182, timers: 9, listeners: 11 },
  },
  {
    by: 'a one-time password',
    request: async () => ({ password: (await estuary.otp({ max_uses: 1000 })).token }),
    own: 14,
    budget: { statements: 23, promises: 185, timers: 9, listeners: 11 },
  },
])('an enrollment with $by keeps its budgets', async ({ request, own, budget }) => {
  const { windows, bytes } = await costs(await request());
  for (const [kind, most] of Object.entries(budget)) {
    const each = windows.map((kinds) => kinds[kind] ?? {});
    expectAtMost(most, each, kind);
    if (kind === 'statements')
      expectAtMost(
        own,
        each.map((statements) => without(statements, SHARED)),
        'statements without those of a group',
      );
  }
  // V8 allocates less once it has compiled everything, so the bound is loose.
  expect(Math.min(...bytes), 'bytes').toBeLessThanOrEqual(400_000);
});
