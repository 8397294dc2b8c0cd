import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CmcMessage } from '../../../src/store/cmc-store.ts';
import { type PostgresCluster, sharedPostgres } from '../../support/postgres.ts';
import { requires } from '../../support/requires.ts';
import { T0 } from '../rows.ts';
import { emptied } from './support.ts';

describe.skipIf(!requires('postgres'))('CMC messages of several nodes', () => {
  let cluster: PostgresCluster;
  let url: string;
  beforeAll(async () => {
    cluster = await sharedPostgres();
    url = await cluster.createDatabase();
  });
  afterAll(() => cluster.dropDatabase(url));

  it('the start of a node frees what nobody works on any more, and nothing of a node that lives', async () => {
    const database = await emptied(url);
    const store = await database.open('node-1');
    await database.sql(`INSERT INTO node (name, incarnation, host, instance, started, heartbeat)
      VALUES ('node-2', gen_random_uuid(), 'here', 'process-2', now(), now())`);
    const [ofLiving, ofDead] = ['process-2', 'gone'].map((instance): CmcMessage => ({
      key: randomBytes(32).toString('hex'),
      id: randomBytes(8).toString('hex'),
      transaction_key: 'transaction',
      instance,
      created_at: T0,
    }));
    if (ofLiving === undefined || ofDead === undefined) throw new Error('no messages');
    for (const message of [ofLiving, ofDead]) await store.claimCmcMessage(message);
    await store.releaseCmcMessages();
    const heir = { instance: 'heir' };
    expect(await store.claimCmcMessage({ ...ofLiving, ...heir })).toEqual({ state: 'under-way' });
    expect(await store.claimCmcMessage({ ...ofDead, ...heir })).toEqual({ state: 'claimed', id: ofDead.id });
  });
});
