import { hostname } from 'node:os';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { callsOf } from '../../../src/store/operation.ts';
import { run } from '../../../src/store/port.ts';
import { nodeReads } from '../../../src/store/postgres/operations.ts';
import { NodeLease, type NodeLeaseOptions } from '../../../src/store/postgres/nodes/node-lease.ts';
import { advanceSecret, shareSecret } from '../../../src/store/postgres/nodes/shared-secret.ts';
import { turnsOfNodes } from '../../../src/store/postgres/nodes/turns.ts';
import { MIGRATIONS } from '../../../src/store/postgres/schema.ts';
import { PostgresPort } from '../../../src/store/postgres/port.ts';
import { Queries } from '../../../src/store/postgres/queries.ts';
import { psql, sharedPostgres, type PostgresCluster } from '../../support/postgres.ts';
import { requires } from '../../support/requires.ts';
import { pause, until } from '../../support/until.ts';

const TABLES = `${MIGRATIONS[0]?.sql}
  DROP TABLE reservation, cmc_message;
  CREATE TABLE reservation (request_id text, instance text);
  CREATE TABLE cmc_message (key text, instance text);`;

function readsOver(client: pg.Client) {
  const queries = new Queries({ query: ({ text, values }) => client.query({ text, values: [...values] }) });
  return callsOf(
    nodeReads(new PostgresPort(queries)),
    (operation) =>
      (...args) =>
        run(operation.run(...args)),
  );
}

describe.skipIf(!requires('postgres'))('nodes on one PostgreSQL', () => {
  let cluster: PostgresCluster;
  let template: string;
  let url: string;
  beforeAll(async () => {
    cluster = await sharedPostgres();
    const made = await cluster.createDatabase();
    template = new URL(made).pathname.slice(1);
    await psql(made, TABLES);
  });
  beforeEach(async () => {
    url = await cluster.createDatabase(template);
  });
  afterAll(() => cluster.dropDatabase(cluster.url(template)));

  const connect = async (): Promise<pg.Client> => {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    return client;
  };

  interface Joined {
    readonly lease: NodeLease;
    readonly closed: readonly string[];
    /** What it logged of warnings and errors. */
    readonly said: readonly string[];
    /** Its connection to the database, which a test may end or hold up. */
    readonly connection: { away: boolean; last: pg.Client | undefined };
  }

  async function joined(name: string, options: Partial<NodeLeaseOptions> = {}): Promise<Joined> {
    const closed: string[] = [];
    const said: string[] = [];
    const note = (_: object, text: string): void => void said.push(text);
    const connection: Joined['connection'] = { away: false, last: undefined };
    const lease = await NodeLease.join({
      name,
      instance: name,
      beat: 100,
      // A busy machine can hold a node up for seconds, which must not end its lease.
      lease: 10_000,
      log: { info: () => undefined, warn: note, error: note },
      connect: async () => {
        if (connection.away) throw new Error('away');
        connection.last = await connect();
        return connection.last;
      },
      closeLeftOpen: async (instance) => {
        await psql(url, `DELETE FROM reservation WHERE instance = '${instance}'`);
        await psql(url, `UPDATE cmc_message SET instance = NULL WHERE instance = '${instance}'`);
        closed.push(instance);
      },
      ...options,
    });
    onTestFinished(() => lease.stop());
    return { lease, closed, said, connection };
  }

  it('refuses a second live node of the same name, with a sentence, and not the one that comes after it', async () => {
    const { lease } = await joined('est-1');
    await expect(joined('est-1')).rejects.toMatchObject({
      code: 'NODE_NAME_IN_USE',
      message: expect.stringMatching(
        /^A node named "est-1" runs on .+\. Give this node a different store\.node_name\.$/,
      ) as string,
    });
    await joined('est-2');
    await lease.stop();
    expect((await joined('est-1')).lease.held).toBe(true);
  });

  it('closes what a dead node left open, and nothing of the living', async () => {
    const [one, two] = [await joined('est-1', { instance: 'a' }), await joined('est-2', { instance: 'b' })];
    await psql(url, "INSERT INTO reservation VALUES ('1', 'a'), ('2', 'b'); INSERT INTO cmc_message VALUES ('3', 'a')");
    await pause(400);
    expect([...one.closed, ...two.closed]).toEqual([]);
    one.connection.away = true;
    await one.connection.last?.end();
    await until('the living node closes it', () => two.closed.includes('a'));
    expect(two.said).toContain('a node is dead');
    expect(await psql(url, 'SELECT request_id FROM reservation')).toEqual([['2']]);
    expect(one.lease.held).toBe(false);
    await until('the living node has its lease', () => two.lease.held);
    // It recovers automatically.
    one.connection.away = false;
    await until('the node has a lease again', () => one.lease.held);
    expect(one.said).toContain('other nodes considered this node dead; it continues as a new incarnation');
    await psql(url, "INSERT INTO reservation VALUES ('4', 'a')");
    await pause(400);
    expect(await psql(url, 'SELECT request_id FROM reservation ORDER BY 1')).toEqual([['2'], ['4']]);
  });

  it('lists them by name, with how long ago each said that it lives, and who of them is on duty', async () => {
    const client = await connect();
    onTestFinished(() => client.end());
    const { listNodes } = readsOver(client);
    expect(await listNodes()).toEqual([]);
    const { lease } = await joined('est-2');
    await joined('est-1');
    const seen = await listNodes();
    const alive = { host: hostname(), age: expect.any(Number) as number, alive: true };
    expect(seen).toEqual([
      { ...alive, name: 'est-1', on_duty: false },
      { ...alive, name: 'est-2', on_duty: true },
    ]);
    await lease.stop();
    expect((await listNodes()).map(({ name }) => name)).toEqual(['est-1']);
  });

  it('tells one that is dead as such, until another one has closed what it left open', async () => {
    const client = await connect();
    onTestFinished(() => client.end());
    await psql(
      url,
      `INSERT INTO node VALUES ('est-9', gen_random_uuid(), 'far', 'gone', now(), clock_timestamp() - interval '30 seconds')`,
    );
    const { listNodes } = readsOver(client);
    expect(await listNodes()).toMatchObject([{ name: 'est-9', host: 'far', alive: false, on_duty: false }]);
  });

  it('takes the name of a node that was killed at once, and of one that was stopped when its lease is over', async () => {
    const dead = await joined('est-1');
    dead.connection.away = true;
    await dead.connection.last?.end();
    const { lease } = await joined('est-1');
    expect(lease.held).toBe(true);
    // The other one is back, and has to find that its name is taken.
    dead.connection.away = false;
    await until('the other node has found out', () => dead.said.some((text) => text.includes('as a new incarnation')));
    await until('the new node has its lease', () => lease.held);
    expect(dead.lease.held).toBe(false);
  });

  it('has one node on duty, and another one when that is gone', async () => {
    const nodes = [await joined('est-1'), await joined('est-2'), await joined('est-3')];
    const onDuty = (): Joined[] => nodes.filter(({ lease }) => lease.onDuty);
    await until('a node is on duty', () => onDuty().length > 0);
    expect(onDuty()).toEqual([nodes[0]]);
    await nodes[0]?.lease.stop();
    await until('one node is on duty', () => onDuty().length === 1);
    const [second] = onDuty();
    if (second === undefined) throw new Error('nobody is on duty');
    second.connection.away = true;
    await second.connection.last?.end();
    await until('another node is on duty', () => onDuty().some((node) => node !== second));
    expect(onDuty()).toHaveLength(1);
  });

  it('gives turns to one of all processes at a time, and to the next when its holder is gone', async () => {
    const clients: pg.Client[] = [];
    const keeping = async (): Promise<pg.Client> => {
      const client = await connect();
      clients.push(client);
      return client;
    };
    const [one, two] = [turnsOfNodes(keeping)('cmc:lab', 8), turnsOfNodes(keeping)('cmc:lab', 8)];
    const first = await one.acquire({ waitMs: 60_000 });
    await expect(two.acquire({ waitMs: 100 })).rejects.toThrow('no permit within 100 ms');
    const waiting = two.acquire({ waitMs: 60_000 });
    first();
    const second = await waiting;
    const third = one.acquire({ waitMs: 60_000 });
    await psql(
      url,
      "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
    );
    (await third)();
    second();
    await Promise.all(clients.map((client) => client.end().catch(() => undefined)));
  });

  it('shares a secret sealed, goes on to the next one, and opens nothing under another key', async () => {
    const client = await connect();
    onTestFinished(() => client.end());
    const [key, other] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)];
    const mine = { secret: '11'.repeat(48), period: 7 };
    expect(await shareSecret(client, key, 'tickets', mine)).toEqual(mine);
    expect(await shareSecret(client, key, 'tickets', { secret: '22'.repeat(48), period: 7 })).toEqual(mine);
    expect(await shareSecret(client, other, 'tickets', mine)).toBeUndefined();
    const next = { secret: '33'.repeat(48), period: 8 };
    await advanceSecret(client, key, 'tickets', next);
    await advanceSecret(client, key, 'tickets', mine);
    expect(await shareSecret(client, key, 'tickets', mine)).toEqual(next);
    const [row] = await psql(url, "SELECT encode(sealed, 'hex') FROM shared_secret");
    expect(row?.[0]).not.toContain('33'.repeat(8));
  });
});
