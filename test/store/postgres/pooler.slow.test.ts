/** PgBouncer between a node and its database: session pooling works as it is, and other modes are refused at the start. */
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { refuseSharedSessions } from '../../../src/store/postgres/connection.ts';
import { runAny } from '../../support/command.ts';
import { makeKey, onTheWire, simpleCsr } from '../../support/csr.ts';
import { Estuary } from '../../support/estuary.ts';
import { startPgBouncer } from '../../support/pgbouncer.ts';
import { type PostgresCluster, sharedPostgres } from '../../support/postgres.ts';
import { requires } from '../../support/requires.ts';
import { NODE, SERVER } from '../../support/server-process.ts';
import { withStoreIn } from '../../support/store-in-postgres.ts';

describe.skipIf(!requires('postgres', 'pgbouncer'))('a node behind PgBouncer', () => {
  let cluster: PostgresCluster;
  let direct: string;
  beforeAll(async () => {
    cluster = await sharedPostgres();
    direct = await cluster.createDatabase();
  });
  afterAll(() => cluster.dropDatabase(direct));

  test('issues with session pooling and the default settings of PgBouncer', async () => {
    const pooler = await startPgBouncer(cluster, 'session');
    onTestFinished(() => pooler.stop());
    const estuary = await Estuary.start(withStoreIn({}, pooler.url(direct), 'pooled'));
    onTestFinished(() => estuary.stop());
    const { token } = await estuary.otp();
    expect((await estuary.enroll(onTheWire(simpleCsr(makeKey())), { password: token })).status).toBe(200);
    expect((await estuary.admin('GET', '/readyz')).status).toBe(200);
    const config = join(estuary.dir, 'est.toml');
    expect((await runAny(NODE, [SERVER, 'check', '--config', config])).code).toBe(0);
    await estuary.server.stop();

    // The same configuration, with a pooler that does not work.
    const other = await startPgBouncer(cluster, 'transaction');
    onTestFinished(() => other.stop());
    estuary.reconfigure((table, dir) => withStoreIn({}, other.url(direct), 'pooled').configure?.(table, dir));
    const refused = `The connection pooler at 127.0.0.1:${other.port} (such as PgBouncer) uses transaction pooling. Set pool_mode = session`;
    const started = await runAny(NODE, [SERVER, '--config', config]);
    expect([started.code, started.output]).toEqual([1, expect.stringContaining(refused)]);
    const checked = await runAny(NODE, [SERVER, '--config', config, '--check']);
    expect([checked.code, checked.output]).toEqual([2, expect.stringContaining(`${config}: store.url: ${refused}`)]);
    const offline = await runAny(NODE, [SERVER, 'check', '--offline', '--config', config]);
    expect(offline.code).toBe(0);

    await other.stop();
    const unreachable = await runAny(NODE, [SERVER, 'check', '--config', config]);
    expect([unreachable.code, unreachable.output]).toEqual([
      0,
      expect.stringMatching(/store\.url: warning: .*ECONNREFUSED/),
    ]);
  });

  test.each(['transaction', 'statement'] as const)('is refused with %s pooling', async (mode) => {
    const pooler = await startPgBouncer(cluster, mode);
    onTestFinished(() => pooler.stop());
    await expect(refuseSharedSessions({ url: pooler.url(direct) })).rejects.toMatchObject({ code: 'STORE_POOLED' });
  });

  test('a direct connection and session pooling are accepted', async () => {
    await refuseSharedSessions({ url: direct });
    const pooler = await startPgBouncer(cluster, 'session');
    onTestFinished(() => pooler.stop());
    await refuseSharedSessions({ url: pooler.url(direct) });
  });
});
