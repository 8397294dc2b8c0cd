/**
 * Issue 17: three nodes on one PostgreSQL behind HAProxy, under load, while something breaks. The schedule comes of a seed
 * (`CHAOS_SEED`), five rounds unless `CHAOS_ROUNDS` says otherwise; `scripts/chaos-nodes` runs a hundred.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Load, Nodes } from '../support/nodes.ts';
import { requires } from '../support/requires.ts';

const ROUNDS = Number(process.env['CHAOS_ROUNDS'] ?? 5);
const SEED = Number(process.env['CHAOS_SEED'] ?? 17);

/** Numbers from 0 up to 1, the same for the same seed. */
function numbers(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

type Fault = (nodes: Nodes, random: () => number) => Promise<void>;

const FAULTS: Readonly<Record<string, Fault>> = {
  'a node is killed': async (nodes, random) => {
    const node = nodes.node(Math.floor(random() * 3));
    node.server.signal('SIGKILL');
    await sleep(random() * 3000);
    await nodes.relaunch(node);
  },
  'a node is stopped for longer than its lease, and continued': async (nodes, random) => {
    const { server } = nodes.node(Math.floor(random() * 3));
    server.signal('SIGSTOP');
    await sleep(22_000 + random() * 4000);
    server.signal('SIGCONT');
  },
  'PostgreSQL crashes and starts again': async (nodes, random) => {
    await nodes.primary.end('SIGQUIT');
    await sleep(random() * 3000);
    await nodes.primary.launch();
  },
  'PostgreSQL fails over to its synchronous standby': (nodes) => nodes.failOver(),
  'a node is cut off from the database': async (nodes, random) => {
    const { relays } = nodes.node(Math.floor(random() * 3));
    for (const relay of relays) relay.silence(true);
    await sleep(5000 + random() * 20_000);
    for (const relay of relays) {
      relay.silence(false);
      relay.cut();
    }
  },
  'the database is out of connections': async (nodes, random) => {
    await nodes.primary.sql('ALTER ROLE est CONNECTION LIMIT 3');
    await nodes.primary.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'est'");
    await sleep(3000 + random() * 5000);
    await nodes.primary.sql('ALTER ROLE est CONNECTION LIMIT -1');
  },
};

describe.skipIf(!requires('postgres', 'haproxy', 'curl'))('issue 17: nodes under chaos', () => {
  let started: Nodes | undefined;
  let nodes: Nodes;
  let load: Load;
  const random = numbers(SEED);
  /** Each fault once before any comes again, in an order of the seed's. */
  let left: string[] = [];
  const next = (): string => {
    if (left.length === 0) left = Object.keys(FAULTS);
    return left.splice(Math.floor(random() * left.length), 1)[0] ?? '';
  };

  beforeAll(async () => {
    nodes = started = await Nodes.start();
    load = new Load(nodes);
  });
  afterAll(() => started?.stop());

  test.each(Array.from({ length: ROUNDS }, (_, n) => [n + 1, next()] as const))(
    'round %i: %s, and nothing answered is lost, doubled or spent twice',
    async (_, name) => {
      load.start();
      await sleep(1000 + random() * 2000);
      await FAULTS[name]?.(nodes, random);
      await sleep(2000);
      await load.end();
      await nodes.untilWell();
      await load.decide();
      await holds(nodes, load);
    },
    600_000,
  );
});

/** What the clients know has to agree with itself and with the store. */
async function holds(nodes: Nodes, { history, decisions }: Load): Promise<void> {
  expect(history.length).toBeGreaterThan(3);
  // Only 503 meanwhile, and at the end an answer.
  const others = history.filter(({ statuses }) => statuses.some((status) => status !== 200 && status !== 503));
  expect(others.map(({ cn, statuses }) => `${cn}: ${statuses.join(' ')}`)).toEqual([]);
  // One certificate for each use, however often it was asked for.
  expect(history.filter(({ serials }) => serials.size !== 1).map(({ cn }) => cn)).toEqual([]);
  const serials = history.flatMap((one) => [...one.serials]);
  expect(new Set(serials).size).toBe(serials.length);
  // Every answer is in the store, and nothing else than what was answered.
  const stored = await nodes.sql("SELECT serial, subject FROM certificate WHERE subject LIKE 'CN=device-%'");
  const bySubject = new Map(stored.map(([serial, subject]) => [subject, serial]));
  expect(stored.length).toBe(bySubject.size);
  expect(history.filter(({ cn, serials: [serial] }) => bySubject.get(`CN=${cn}`) !== serial)).toEqual([]);
  // No token is spent twice, and every use that was taken is one certificate's.
  expect(await nodes.sql('SELECT id FROM otp WHERE uses > max_uses')).toEqual([]);
  expect(await nodes.sql('SELECT otp_id FROM otp_use GROUP BY otp_id HAVING count(*) > 1')).toEqual([]);
  // One decision for each request.
  for (const { statuses } of decisions) expect(statuses).toEqual([200, 409]);
  // What dead nodes left open is closed within a minute.
  await expect
    .poll(() => nodes.sql('SELECT request_id FROM reservation'), { timeout: 60_000, interval: 1000 })
    .toEqual([]);
}
