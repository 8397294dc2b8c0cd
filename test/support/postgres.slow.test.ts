import { describe, expect, it } from 'vitest';
import { PostgresCluster, psql, sharedPostgres } from './postgres.ts';
import { requires } from './requires.ts';

describe.skipIf(!requires('postgres'))('PostgreSQL for tests', () => {
  it('shares one cluster, and makes databases of templates', async () => {
    const [one, two] = await Promise.all([sharedPostgres(), sharedPostgres()]);
    expect(two.port).toBe(one.port);
    const template = await one.createDatabase();
    await psql(template, 'CREATE TABLE a (b bigint); INSERT INTO a VALUES (7)');
    const copy = await two.createDatabase(new URL(template).pathname.slice(1));
    expect(await psql(copy, 'SELECT b FROM a')).toStrictEqual([['7']]);
    await two.dropDatabase(copy);
    await expect(psql(copy, 'SELECT 1')).rejects.toThrow('does not exist');
  });

  it('has a synchronous standby take over', async () => {
    const primary = await PostgresCluster.start({ durable: true });
    const standby = await primary.standby().catch(async (error: unknown) => {
      await primary.stop();
      throw error;
    });
    try {
      await primary.sql('CREATE TABLE a (b bigint); INSERT INTO a VALUES (7)');
      await primary.end('SIGQUIT');
      await standby.promote();
      await standby.sql('INSERT INTO a VALUES (8)');
      expect(await standby.sql('SELECT b FROM a ORDER BY b')).toStrictEqual([['7'], ['8']]);
    } finally {
      await standby.stop();
      await primary.stop();
    }
  });
});
