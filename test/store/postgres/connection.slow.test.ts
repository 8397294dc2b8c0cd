import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connect } from '../../../src/store/postgres/connection.ts';
import { type PostgresCluster, sharedPostgres } from '../../support/postgres.ts';
import { requires } from '../../support/requires.ts';

describe.skipIf(!requires('postgres'))('connections to PostgreSQL', () => {
  let cluster: PostgresCluster;
  let url: string;
  beforeAll(async () => {
    cluster = await sharedPostgres();
    url = await cluster.createDatabase();
  });
  afterAll(() => cluster.dropDatabase(url));

  it('tell of every statement of an aborted transaction why it was aborted', async () => {
    const connection = await connect({ url }, 'test');
    try {
      const codesOf = async (...statements: readonly string[]): Promise<readonly unknown[]> => {
        const settled = await Promise.allSettled(
          ['BEGIN', ...statements].map((text) => connection.query({ name: text, text, values: [] })),
        );
        await connection.script('ROLLBACK');
        return settled.map((one): unknown =>
          one.status === 'rejected' ? Reflect.get(Object(one.reason) as object, 'code') : 'done',
        );
      };
      // As a full disk would: what is sent behind it must not look like a fault of the program.
      expect(await codesOf('SELECT 1 / 0', 'SELECT 1', 'SELECT 2')).toEqual(['done', '22012', '22012', '22012']);
      expect(await codesOf('SELECT 3', "SELECT 'x'::int", 'SELECT 4')).toEqual(['done', 'done', '22P02', '22P02']);
      expect(await codesOf('SELECT 5')).toEqual(['done', 'done']);
    } finally {
      connection.end();
    }
  });
});
