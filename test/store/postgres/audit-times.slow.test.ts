/** A search of audit records by time does not scan the records before that time. */
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { AuditFilter } from '../../../src/store/audit-store.ts';
import { run } from '../../../src/store/port.ts';
import { auditReads } from '../../../src/store/postgres/audit.ts';
import { PostgresPort } from '../../../src/store/postgres/port.ts';
import { type Prepared, Queries } from '../../../src/store/postgres/queries.ts';
import { MIGRATIONS } from '../../../src/store/postgres/schema.ts';
import { type PostgresCluster, sharedPostgres } from '../../support/postgres.ts';
import { requires } from '../../support/requires.ts';

const RECORDS = 50_000;
const SECOND = 1000;

/** A step of a plan, as EXPLAIN shows it. */
interface Step {
  readonly 'Node Type': string;
  readonly 'Actual Rows': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly Plans?: readonly Step[];
}

const stepsOf = (step: Step): Step[] => [step, ...(step.Plans ?? []).flatMap(stepsOf)];

describe.skipIf(!requires('postgres'))('audit records of a time', () => {
  let cluster: PostgresCluster;
  let url: string;
  let client: pg.Client;
  beforeAll(async () => {
    cluster = await sharedPostgres();
    url = await cluster.createDatabase();
    client = new pg.Client({ connectionString: url });
    await client.connect();
    for (const { sql } of MIGRATIONS) await client.query(sql);
    // Each tenth record was recorded later than the others of its time.
    await client.query(
      `INSERT INTO audit (node, seq, time, type, line)
       SELECT 'n', n, (n - CASE WHEN n % 10 = 0 THEN 5 ELSE 0 END) * ${SECOND}, 'admin.access',
         '{"seq":' || n || ',"time":"2030-01-01T00:00:00.000Z","type":"admin.access","hash":"","prev_hash":""}'
       FROM generate_series(1, ${RECORDS}) AS n`,
    );
    await client.query('VACUUM ANALYZE audit');
  });
  afterAll(async () => {
    await client.end();
    await cluster.dropDatabase(url);
  });

  const plans: Step[] = [];
  const reads = (): ReturnType<typeof auditReads> =>
    auditReads(
      new PostgresPort(
        new Queries({
          async query({ text, values }: Prepared) {
            const explained = await client.query<{ 'QUERY PLAN': readonly { Plan: Step }[] }>(
              `EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) ${text}`,
              [...values],
            );
            plans.push(...(explained.rows[0]?.['QUERY PLAN'] ?? []).flatMap(({ Plan }) => stepsOf(Plan)));
            return client.query<object>(text, [...values]);
          },
        }),
      ),
      'n',
    );

  async function found(filter: Omit<AuditFilter, 'limit'>): Promise<readonly number[]> {
    plans.length = 0;
    const { items } = await run(reads().listAudit.run({ ...filter, limit: 3 }));
    return items.map(({ seq }) => seq);
  }

  test.each<[string, Omit<AuditFilter, 'limit'>, readonly number[]]>([
    ['since, oldest first', { since: 40_001 * SECOND }, [40_001, 40_002, 40_003]],
    ['since the newest', { since: 49_999 * SECOND }, [49_999]],
    ['since a time after all records', { since: 60_000 * SECOND }, []],
    ['since, newest first', { since: 40_001 * SECOND, order: 'desc' }, [50_000, 49_999, 49_998]],
    ['until, newest first', { until: 10_001 * SECOND, order: 'desc' }, [10_001, 10_000, 9999]],
    ['until, oldest first', { until: 10_001 * SECOND }, [1, 2, 3]],
    ['since and until', { since: 30_000 * SECOND, until: 30_001 * SECOND }, [30_000 + 1]],
    [
      'since and until, newest first',
      { since: 30_001 * SECOND, until: 30_002 * SECOND, order: 'desc' },
      [30_002, 30_001],
    ],
  ])('%s: found along the index of times, without those before', async (_, filter, expected) => {
    expect(await found(filter)).toEqual(expected);
    for (const step of plans) expect(step['Rows Removed by Filter'] ?? 0).toBeLessThan(100);
    expect(plans.some((step) => step['Node Type'] === 'Seq Scan')).toBe(false);
  });

  test('a record that was recorded late is found, too', async () => {
    expect(await found({ since: 39_995 * SECOND })).toEqual([39_995, 39_996, 39_997]);
    const late = await run(reads().listAudit.run({ since: 39_995 * SECOND, until: 39_995 * SECOND, limit: 10 }));
    expect(late.items.map(({ seq }) => seq)).toEqual([39_995, 40_000]);
  });
});
