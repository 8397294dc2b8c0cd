/**
 * Three nodes behind HAProxy are replaced one by one, under load, by a release that expands the schema, and then by one that
 * contracts it; docs/guides/postgresql.md has the procedure. The releases are made for the test (test/support/releases.ts).
 */
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { MIGRATIONS } from '../../src/store/postgres/schema.ts';
import { FIRST_VERSION } from '../../src/store/calls/errors.ts';
import { runAny } from '../support/command.ts';
import { Load } from '../support/nodes-load.ts';
import { Nodes } from '../support/nodes.ts';
import { makeReleases, type Releases } from '../support/releases.ts';
import { requires } from '../support/requires.ts';
import { NODE, SERVER } from '../support/server-process.ts';
import { removeFolder } from '../support/folders.ts';

describe.skipIf(!requires('postgres', 'haproxy', 'curl'))('a rolling upgrade', () => {
  const dir = mkdtempSync(join(tmpdir(), 'estuary-releases-'));
  let started: Nodes | undefined;
  let nodes: Nodes;
  let releases: Releases;
  let load: Load;

  beforeAll(async () => {
    releases = makeReleases(dir, FIRST_VERSION + MIGRATIONS.length - 1);
    nodes = started = await Nodes.start();
    load = new Load(nodes, { adminOverBalancer: true });
  });
  afterAll(async () => {
    await load.end().catch(() => undefined);
    await started?.stop();
    removeFolder(dir);
  });

  /** Under load for a while longer, with an administrator at each of two nodes deciding one request differently. */
  async function goesOn(): Promise<void> {
    await load.goesOn();
    await load.decide();
    expect(load.decisions.at(-1)?.statuses).toEqual([200, 409]);
  }

  const schema = async (): Promise<readonly number[]> => {
    const [row = []] = await nodes.sql('SELECT version, serves FROM estuary_schema');
    return row.map(Number);
  };

  test('replaces every node by one that expands the schema, then by one that contracts it, without a failed request', async () => {
    const { expanding, contracting, versions } = releases;
    const [now, expanded, contracted] = versions;
    load.start(2);
    await goesOn();
    for (const [n, node] of nodes.all.entries()) {
      await nodes.replace(node, expanding);
      expect(await schema()).toEqual([expanded, now]);
      // The version before works on, and starts on what the new one has made of the schema.
      if (n === 0) await nodes.replace(nodes.node(2), undefined);
      await goesOn();
    }
    for (const node of nodes.all) {
      await nodes.replace(node, contracting);
      expect(await schema()).toEqual([contracted, expanded]);
      await goesOn();
    }
    await load.end();

    const { history, failedTokens } = load;
    expect(failedTokens).toEqual([]);
    const failed = history.filter(
      (client) => client.unanswered.length > 0 || client.statuses.some((status) => status !== 200),
    );
    expect(failed.map(({ cn, statuses, unanswered }) => ({ cn, statuses, unanswered }))).toEqual([]);
    // Who asked again got the same certificate, whichever release had issued it.
    expect(history.some(({ statuses }) => statuses.length === 2)).toBe(true);
    expect(history.filter(({ serials }) => serials.size !== 1)).toEqual([]);
    const stored = await nodes.sql("SELECT serial FROM certificate WHERE subject LIKE 'CN=device-%'");
    expect(stored.flat().sort()).toEqual(history.flatMap((client) => [...client.serials]).sort());
    // What nodes of both releases had noted under either name is under the new one.
    expect(
      await nodes.sql('SELECT request_id FROM otp_use JOIN certificate USING (request_id) WHERE answered_at IS NULL'),
    ).toEqual([]);
  }, 900_000);

  test('and refuses a node of the first release from then on', async () => {
    const [node] = nodes.all;
    if (node === undefined) throw new Error('no node');
    const config = join(nodes.dir, 'est-4.toml');
    const of1 = readFileSync(join(nodes.dir, 'est-1.toml'), 'utf8');
    writeFileSync(config, of1.replaceAll('est-1', 'est-4').replaceAll(/^port = .*$/gm, 'port = 0'));
    const env = nodes.environment(node);
    const { code, output } = await runAny(NODE, [SERVER, '--config', config], { env, timeout: 120_000 });
    expect(output).toContain('a newer version of Estuary created the database');
    expect(code).not.toBe(0);
  });
});
