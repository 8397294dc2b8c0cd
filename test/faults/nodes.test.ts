/**
 * Three nodes on one PostgreSQL behind HAProxy, under load, while something breaks. The schedule comes of a seed
 * (`CHAOS_SEED`), three rounds unless `CHAOS_ROUNDS` says otherwise; `scripts/chaos-nodes` runs a hundred.
 */
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runAny } from '../support/command.ts';
import { nodesFaults } from '../support/nodes-faults.ts';
import { report, summary, type RoundFigures } from '../support/nodes-figures.ts';
import { Load } from '../support/nodes-load.ts';
import { Nodes } from '../support/nodes.ts';
import { Random } from '../support/random.ts';
import { requires } from '../support/requires.ts';
import { NODE, SERVER } from '../support/server-process.ts';
import { pause } from '../support/until.ts';

const ROUNDS = Number(process.env['CHAOS_ROUNDS'] ?? 3);
const SEED = Number(process.env['CHAOS_SEED'] ?? 17);

describe.skipIf(!requires('postgres', 'haproxy', 'curl'))('nodes under chaos', () => {
  const disks = requires('ext4', 'root');
  const faults = nodesFaults(disks);
  let started: Nodes | undefined;
  let nodes: Nodes;
  let load: Load;
  const random = new Random(SEED);
  const figures: RoundFigures[] = [];
  /** Each fault once before any comes again, in an order of the seed's. */
  let left: string[] = [];
  const next = (): string => {
    if (left.length === 0) left = Object.keys(faults);
    return left.splice(Math.floor(random.next() * left.length), 1)[0] ?? '';
  };

  beforeAll(async () => {
    nodes = started = await Nodes.start({ disks, probes: { fall: 2, check: 2 } });
    load = new Load(nodes);
  });
  afterAll(async () => {
    await started?.stop();
    if (ROUNDS > 10) console.log(`seed ${SEED}\n\n${summary(figures)}`);
  });

  test.each(Array.from({ length: ROUNDS }, (_, n) => [n + 1, next()] as const))(
    'round %i: %s, and nothing answered is lost, doubled or spent twice',
    async (round, fault) => {
      const before = countOf(load);
      load.start();
      await load.goesOn();
      await pause(random.next() * 2000);
      await faults[fault]?.(nodes, () => random.next());
      const mended = performance.now();
      await nodes.untilWell();
      const recovery = performance.now() - mended;
      await load.goesOn();
      await load.end();
      const after = countOf(load);
      const one = {
        ...{ seed: SEED, round, fault, recovery, longestPause: load.longestPause },
        certificates: after.certificates - before.certificates,
        refused: after.refused - before.refused,
        unanswered: after.unanswered - before.unanswered,
      };
      figures.push(one);
      report(one);
      await load.decide();
      await holds(nodes, load);
    },
    600_000,
  );

  test('and the audit chains of all nodes are whole afterwards', async () => {
    for (const node of nodes.all) {
      const args = [SERVER, 'audit', 'verify', '--config', join(nodes.dir, `${node.name}.toml`)];
      const { code, output } = await runAny(NODE, args, { env: nodes.environment(node), timeout: 300_000 });
      expect(output).toContain('3 nodes');
      expect(code).toBe(0);
    }
  });
});

/** How many answers there were of each kind. */
function countOf({ history }: Load): { certificates: number; refused: number; unanswered: number } {
  const statuses = history.flatMap((client) => client.statuses);
  return {
    certificates: statuses.filter((status) => status === 200).length,
    refused: statuses.filter((status) => status === 503).length,
    unanswered: history.reduce((sum, client) => sum + client.unanswered.length, 0),
  };
}

/** What the clients know has to agree with itself and with the store. */
async function holds(nodes: Nodes, { history, decisions }: Load): Promise<void> {
  expect(history.length).toBeGreaterThan(3);
  // Only 503 meanwhile, and at the end an answer.
  const others = history.filter(({ statuses }) => statuses.some((status) => status !== 200 && status !== 503));
  expect(others.map(({ cn, statuses }) => `${cn}: ${statuses.join(' ')}`)).toEqual([]);
  // One certificate for each use, however often it was asked for.
  expect(history.filter(({ serials }) => serials.size !== 1).map(({ cn }) => cn)).toEqual([]);
  const serials = history.flatMap((client) => [...client.serials]);
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
  await expect.poll(() => nodes.sql('SELECT request_id FROM reservation'), { interval: 1000 }).toEqual([]);
}
