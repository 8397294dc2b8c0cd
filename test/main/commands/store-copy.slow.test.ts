/** `estuary store copy`. */
import Database from 'better-sqlite3';
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { run } from '../../support/command.ts';
import { makeKey, onTheWire, simpleCsr } from '../../support/csr.ts';
import { Estuary, itemsOf } from '../../support/estuary.ts';
import { psql, sharedPostgres } from '../../support/postgres.ts';
import { requires } from '../../support/requires.ts';
import { NODE, SERVER } from '../../support/server-process.ts';

/** More failures than are copied at once, many at the same time. @returns what the store has counted, in all */
function failMany(path: string): unknown {
  const db = new Database(path);
  const insert = db.prepare('INSERT INTO failure (key, at) VALUES (?, ?)');
  for (let n = 0; n < 1200; n++) insert.run('address:192.0.2.1', Math.floor(n / 100));
  const counted = db.prepare('SELECT sum(count) FROM statistic').pluck().get();
  db.close();
  return counted;
}

describe.skipIf(!requires('postgres'))('estuary store copy', () => {
  let estuary: Estuary;
  let url: string;
  const folder = (): string => estuary.dir;
  const copy = (...options: string[]): Promise<string> =>
    run(NODE, [SERVER, 'store', 'copy', '--config', join(folder(), 'est.toml'), ...options], {
      env: { DATABASE: url },
    }).then((said) => said.toString());
  const certificates = async (): Promise<unknown[]> =>
    itemsOf((await estuary.admin('GET', '/admin/certificates')).json);

  beforeAll(async () => {
    url = await (await sharedPostgres()).createDatabase();
    estuary = await Estuary.start({ env: { DATABASE: url } });
  });
  afterAll(() => estuary.stop());

  test('copies a store to PostgreSQL and back, verified by count and hash, and not one in use', async () => {
    const key = makeKey();
    await estuary.enrolled(key, 'device-1');
    const { token } = await estuary.otp({ max_uses: 2 });
    await estuary.enroll(onTheWire(simpleCsr(key, 'device-1')), { password: token });
    await estuary.admin('POST', '/admin/devices', { id: 'd1', match: { fingerprint_sha256: 'a'.repeat(64) } });
    const before = await certificates();
    expect(before).toHaveLength(2);
    copyFileSync(join(folder(), 'data/otp-lookup.key'), join(folder(), 'lookup.key'));
    estuary.reconfigure((config) => {
      config['store'] = { driver: 'postgres', url_env: 'DATABASE', node_name: 'est-1' };
      Object.assign(config['otp'] ?? {}, { lookup_key_file: 'lookup.key' });
    });
    await expect(copy('--from', 'sqlite', '--to', 'postgres')).rejects.toThrow(/in use|pid/);
    await estuary.server.stop();
    const counted = failMany(join(folder(), 'data/est.db'));

    const said = await copy('--from', 'sqlite', '--to', 'postgres');
    expect(said).toMatch(/^certificate: 2 rows, SHA-256 [0-9a-f]{64}$/m);
    expect(said).toMatch(/^failure: 1200 rows/m);
    expect(await psql(url, 'SELECT sum(count) FROM statistic')).toEqual([[String(counted)]]);
    expect(said).toContain('the copy is complete: every table has the same rows in both stores');
    await expect(copy('--from', 'sqlite', '--to', 'postgres')).rejects.toThrow('not empty');

    await estuary.restart();
    expect(await certificates()).toEqual(before);
    // The token has one use left, and no more.
    const again = (cn: string) => estuary.enroll(onTheWire(simpleCsr(makeKey(), cn)), { password: token });
    expect((await again('device-1')).status).toBe(200);
    expect((await again('device-1')).status).toBe(401);
    await expect(copy('--from', 'postgres', '--to', 'sqlite', '--path', join(folder(), 'back.db'))).rejects.toThrow(
      'the node "est-1" runs on',
    );
    await estuary.server.stop();

    const back = await copy('--from', 'postgres', '--to', 'sqlite', '--path', join(folder(), 'back.db'));
    expect(back).toMatch(/^certificate: 3 rows/m);
    const [count] = await psql(url, 'SELECT count(*) FROM audit');
    expect(back).toMatch(new RegExp(`^audit: ${count?.[0]} rows`, 'm'));
    estuary.reconfigure((config) => {
      config['store'] = { path: 'back.db', node_name: 'est-1' };
    });
    await estuary.restart();
    expect(await certificates()).toHaveLength(3);
    const verdict = await run(NODE, [SERVER, 'audit', 'verify', '--config', join(folder(), 'est.toml')]);
    expect(verdict.toString()).toContain('the audit log is intact');
  });
});
