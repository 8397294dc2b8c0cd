/** The audit chain is verifiable across all nodes, and missing records are detected, also at the end. */
import { generateKeyPairSync } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createLogger } from '../../../src/log.ts';
import { anchoring, checkpointing } from '../../../src/main/node-tasks.ts';
import { nodeLines, verifyNodes } from '../../../src/store/postgres/read-audit.ts';
import type { Store } from '../../../src/store/store.ts';
import { type PostgresCluster, sharedPostgres } from '../../support/postgres.ts';
import { requires } from '../../support/requires.ts';
import { event } from '../support.ts';
import { emptied, type SharedDatabase } from './support.ts';

describe.skipIf(!requires('postgres'))('the audit chains of several nodes', () => {
  let cluster: PostgresCluster;
  let url: string;
  const log = createLogger('silent');
  beforeAll(async () => {
    cluster = await sharedPostgres();
    url = await cluster.createDatabase();
  });
  afterAll(() => cluster.dropDatabase(url));

  const verify = (database: SharedDatabase, node = 'one') =>
    verifyNodes({ server: { url: database.url }, node, auditFile: database.auditFile(node) });

  /** Three records of each of two nodes; the other has noted the end of the first. */
  async function written(): Promise<{ database: SharedDatabase; one: Store; other: Store }> {
    const database = await emptied(url);
    const [one, other] = [await database.open('one'), await database.open('other')];
    for (const store of [one, other, one, other, one, other])
      await store.audit([event('auth.otp', { subject: 'CN=device-1' })]);
    await anchoring(other)();
    return { database, one, other };
  }

  test('are whole, from whichever node they are looked at', async () => {
    const { database } = await written();
    expect(await verify(database)).toMatchObject({ ok: true, nodes: 2, records: 7, ahead: 0 });
    expect(await verify(database, 'other')).toMatchObject({ ok: true, nodes: 2, records: 7 });
    expect(await verify(database, 'third')).toMatchObject({ ok: false, seq: null });
    const seen: number[] = [];
    await nodeLines({ url }, {}, ({ seq }) => void seen.push(seq));
    expect(seen).toEqual([1, 2, 3, 1, 2, 3, 4]);
  });

  test('nodes at rest do not go on noting each other', async () => {
    const { one, other } = await written();
    const [ofOne, ofOther] = [anchoring(one), anchoring(other)];
    for (let round = 0; round < 3; round++) for (const anchor of [ofOne, ofOther]) await anchor();
    const { items } = await one.listAudit({ limit: 100, type: 'audit.anchored' });
    expect(items.map(({ node, anchors }) => [node, anchors?.map(({ seq }) => seq)])).toEqual([
      ['other', [3]],
      ['one', [4]],
      ['other', [4]],
    ]);
  });

  const HEAD =
    'UPDATE audit_head SET seq = 2, hash = (SELECT substring(line FROM \'"hash":"([0-9a-f]*)"}$\') FROM audit';
  test.each<[string, readonly string[], string]>([
    [
      'the last record of another node is taken out, and its end set back',
      [
        "DELETE FROM audit WHERE node = 'one' AND seq = 3",
        `${HEAD} WHERE node = 'one' AND seq = 2) WHERE node = 'one'`,
      ],
      'node "other": record 3 of node "one" is missing, although node "other" noted it in its record 4',
    ],
    [
      'a record of another node is taken out',
      ["DELETE FROM audit WHERE node = 'one' AND seq = 2"],
      'node "one": record 2 is missing from the store',
    ],
    [
      'a record of another node is changed',
      ["UPDATE audit SET line = replace(line, 'device-1', 'device-2') WHERE node = 'one' AND seq = 2"],
      'node "one": record 2 in the store was changed: its hash does not fit',
    ],
    [
      'two records change places',
      [
        "UPDATE audit SET seq = -seq WHERE node = 'one' AND seq < 3",
        "UPDATE audit SET seq = 3 + seq WHERE node = 'one' AND seq < 0",
      ],
      'node "one": record 1 in the store is out of order: it holds record 2',
    ],
    [
      'all of a node is taken out',
      ["DELETE FROM audit WHERE node = 'one'", "DELETE FROM audit_head WHERE node = 'one'"],
      'record 3 of node "one" is missing, although node "other" noted it in its record 4',
    ],
    [
      'what a node has noted is another record',
      [
        "UPDATE audit SET line = (SELECT line FROM audit WHERE node = 'other' AND seq = 3) WHERE node = 'other' AND seq = 4",
      ],
      'node "other": record 4 in the store is out of order: it holds record 3',
    ],
  ])('it is found when %s', async (_, statements, problem) => {
    const { database } = await written();
    for (const statement of statements) await database.sql(statement);
    expect(await verify(database, 'other')).toMatchObject({ ok: false, problem });
  });

  test.each(['subject', 'ca', 'serial', 'request_id', 'device_key', 'position'])(
    'a changed search column is found: %s',
    async (column) => {
      const { database, one } = await written();
      const named = { subject: 'CN=\u0000\ud800É', ca: 'devices', serial: '0a', request_id: 'r', device_key: 'k' };
      await one.audit([event('certificate.issued', named), event('auth.otp')]);
      expect(await verify(database, 'other')).toMatchObject({ ok: true });
      for (const value of column === 'position' ? ['0', '1000000'] : ["''", 'NULL', "'x'"]) {
        await database.sql(
          `CREATE TEMP TABLE changed AS SELECT * FROM audit WHERE node = 'one' AND seq = 4;
           DELETE FROM audit WHERE node = 'one' AND seq = 4;
           UPDATE changed SET ${column} = ${value};
           INSERT INTO audit OVERRIDING SYSTEM VALUE SELECT * FROM changed;
           DROP TABLE changed`,
        );
        const seq = value === '1000000' ? 5 : 4;
        expect(await verify(database, 'other')).toEqual({
          ok: false,
          seq,
          problem: `node "one": record ${seq} in the store was changed: its column "${column}" differs from the record`,
        });
      }
    },
  );

  test("the node's own audit file reveals a truncation that no other node recorded", async () => {
    const { database } = await written();
    await (await database.open('late')).audit([event('admin.access')]);
    await database.sql("DELETE FROM audit WHERE node = 'late'");
    expect(await verify(database, 'late')).toMatchObject({ ok: false, seq: 1 });
  });

  test('each node signs the end of the chain that it writes', async () => {
    const { database, one, other } = await written();
    const { privateKey } = generateKeyPairSync('ed25519');
    for (const [node, store] of [
      ['one', one],
      ['other', other],
    ] as const)
      await checkpointing(store, node, log, privateKey)();
    const { items } = await one.listAudit({ limit: 100, type: 'audit.checkpoint' });
    expect(items.map(({ node, checkpoint }) => [node, checkpoint?.seq])).toEqual([
      ['one', 3],
      ['other', 4],
    ]);
    expect(await verify(database)).toMatchObject({ ok: true, nodes: 2 });
  });
});
