import { Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
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
        return settled.map((result): unknown =>
          result.status === 'rejected' ? Reflect.get(Object(result.reason) as object, 'code') : 'done',
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

  it('send the statements of one turn of the event loop with one system call', async () => {
    const connection = await connect({ url }, 'test');
    const writes = vi.spyOn(Socket.prototype, '_writev');
    try {
      const numbers = [1, 2, 3, 4, 5, 6, 7, 8];
      const answers = await Promise.all(
        numbers.map((n) => connection.query({ name: `n${n}`, text: `SELECT ${n} AS n`, values: [] })),
      );
      expect(answers.flatMap(({ rows }) => rows)).toEqual(numbers.map((n) => ({ n })));
      expect(writes).toHaveBeenCalledOnce();
    } finally {
      writes.mockRestore();
      connection.end();
    }
  });
});
