/** PostgreSQL as others run it: in another language, encoding and schema (docs/guides/postgresql.md). */
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { EstuaryError } from '../../../src/errors.ts';
import { isRefusedLogin } from '../../../src/store/postgres/errors.ts';
import { checkDatabase, migrateDatabase } from '../../../src/store/postgres/migrate.ts';
import { temporaryFolder } from '../../support/openssl.ts';
import { PostgresCluster } from '../../support/postgres.ts';
import { requires } from '../../support/requires.ts';
import { pause } from '../../support/until.ts';
import { event, otpRow } from '../rows.ts';
import { emptied } from './support.ts';

describe.skipIf(!requires('postgres', 'locales'))('PostgreSQL with lc_messages = de_DE.UTF-8', () => {
  const folder = temporaryFolder();
  let cluster: PostgresCluster;
  beforeAll(async () => {
    chmodSync(folder.path, 0o755);
    if (!existsSync(folder.file('de_DE.UTF-8')))
      execFileSync('localedef', ['-i', 'de_DE', '-f', 'UTF-8', folder.file('de_DE.UTF-8')], { stdio: 'pipe' });
    cluster = await PostgresCluster.start({
      settings: { lc_messages: "'de_DE.UTF-8'" },
      env: { LOCPATH: folder.path },
    });
  });
  afterAll(async () => {
    await cluster.stop();
    folder.remove();
  });

  test('a rejected statement fails its own call, and the connection goes on', async () => {
    const database = await emptied(await cluster.createDatabase());
    await expect(database.sql('SELECT 1/0')).rejects.toMatchObject({ severity: 'FEHLER' });
    const store = await database.open('node-1');
    const connections = async (): Promise<unknown> =>
      database.sql("SELECT pid FROM pg_stat_activity WHERE application_name = 'estuary node-1 writes'");
    const before = await connections();
    const outcomes = await Promise.allSettled([
      store.insertOtp(otpRow({ expires_at: 0.5 }), []),
      ...Array.from({ length: 15 }, () => store.insertOtp(otpRow(), [event('otp.created')])),
    ]);
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', ...Array<string>(15).fill('fulfilled')]);
    expect(outcomes[0]).toMatchObject({ reason: { status: 500, code: 'STORE_FAILED' } });
    expect(await connections()).toEqual(before);
  });

  test('a database that is not UTF8 is refused by name; one without an encoding is taken', async () => {
    const encoded = (encoding: string) => cluster.createDatabase('template0', `ENCODING '${encoding}' LOCALE 'C'`);
    const latin = await encoded('LATIN1');
    const refused = { code: 'STORE_ENCODING', message: expect.stringContaining('the encoding LATIN1') as string };
    await expect(checkDatabase({ url: latin })).rejects.toMatchObject(refused);
    await expect((await emptied(latin)).open('node-1')).rejects.toMatchObject(refused);
    const store = await (await emptied(await encoded('SQL_ASCII'))).open('node-1');
    const row = otpRow({ client_id: '設備' });
    await store.insertOtp(row, []);
    expect(await store.getOtp(row.id)).toMatchObject({ client_id: '設備' });
  });

  test('what a role sets for its sessions changes nothing: isolation, limits, formats', async () => {
    const role = 'hostile';
    await cluster.sql(`CREATE ROLE ${role} LOGIN`);
    for (const setting of [
      "default_transaction_isolation = 'serializable'",
      "idle_session_timeout = '1s'",
      'statement_timeout = 200',
      'lock_timeout = 1',
      "idle_in_transaction_session_timeout = '1ms'",
      "client_min_messages = 'error'",
      "bytea_output = 'escape'",
      "datestyle = 'German, DMY'",
      "timezone = 'Asia/Kolkata'",
      'synchronous_commit = off',
    ])
      await cluster.sql(`ALTER ROLE ${role} SET ${setting}`);
    const url = await cluster.createDatabase('template0', `OWNER ${role}`);
    const database = await emptied(url);
    const server = { url: url.replace('//estuary@', `//${role}@`) };
    const stores = await Promise.all(['node-1', 'node-2'].map((node) => database.open(node, { server })));
    const sessions = () =>
      database.sql("SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'estuary node%' ORDER BY pid");
    const row = otpRow();
    await stores[0]?.insertOtp(row, []);
    const work = stores.flatMap((store) =>
      Array.from({ length: 20 }, async () => {
        await store.insertOtp(otpRow(), [event('otp.created')]);
        expect(await store.getOtp(row.id)).toMatchObject({ client_id: row.client_id });
      }),
    );
    expect((await Promise.allSettled(work)).filter(({ status }) => status === 'rejected')).toEqual([]);
    const before = await sessions();
    // Longer than idle_session_timeout.
    await pause(2000);
    for (const store of stores) await store.insertOtp(otpRow(), [event('otp.created')]);
    expect(await sessions()).toEqual(expect.arrayContaining([...before]));
    expect(cluster.log).not.toMatch(/could not serialize|(40001|57P05)/);
  });

  test('a database in which the role may create no tables says what to grant, also to --check', async () => {
    await cluster.sql('CREATE ROLE visitor LOGIN');
    const url = (await cluster.createDatabase()).replace('//estuary@', '//visitor@');
    const options = [
      [url, 'visitor may not create tables in the schema public: run GRANT CREATE ON SCHEMA public TO visitor'],
      [`${url}?options=-csearch_path%3Dnowhere`, 'no schema of search_path (nowhere) exists: run CREATE SCHEMA'],
    ] as const;
    for (const [place, detail] of options)
      for (const open of [checkDatabase, migrateDatabase])
        await expect(open({ url: place })).rejects.toMatchObject({
          code: 'STORE_FAILED',
          detail: expect.stringContaining(detail) as unknown,
        });
  });

  test('a password comes from the URL or a password file; without one, the message says so', async () => {
    await cluster.sql("CREATE ROLE guarded LOGIN PASSWORD 'geheim'");
    const rules = join(cluster.data, 'pg_hba.conf');
    writeFileSync(rules, `host all guarded all scram-sha-256\n${readFileSync(rules, 'utf8')}`);
    await cluster.sql('SELECT pg_reload_conf()');
    const url = (await cluster.createDatabase()).replace('//estuary@', '//guarded@');
    const outcome = () => checkDatabase({ url }).catch((error: unknown) => error);
    await expect.poll(outcome).toSatisfy((error) => error instanceof EstuaryError && isRefusedLogin(error));
    expect(await outcome()).toMatchObject({
      detail: expect.stringContaining('the database asks for a password') as string,
    });
    const file = folder.file('pgpass');
    writeFileSync(file, '*:*:*:guarded:geheim\n', { mode: 0o600 });
    vi.stubEnv('PGPASSFILE', file);
    onTestFinished(() => void vi.unstubAllEnvs());
    expect(await outcome()).toMatchObject({ detail: expect.stringContaining('may not create tables') as string });
  });

  test('`options` of the URL is honored: the tables are in the schema of search_path', async () => {
    const url = await cluster.createDatabase();
    const database = await emptied(url);
    await database.sql('CREATE SCHEMA pki');
    const store = await database.open('node-1', { server: { url: `${url}?options=-csearch_path%3Dpki` } });
    await store.insertOtp(otpRow(), []);
    expect(await database.sql("SELECT DISTINCT schemaname FROM pg_tables WHERE tablename IN ('otp', 'audit')")).toEqual(
      [{ schemaname: 'pki' }],
    );
  });
});
