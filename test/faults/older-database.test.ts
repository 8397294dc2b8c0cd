/**
 * A database that went back in time: nodes refuse it, and the operator accepts it. The same replay updates a restored
 * backup.
 */
import Database from 'better-sqlite3';
import { X509Certificate } from 'node:crypto';
import { copyFileSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildControl } from '../../src/pki/cmc/controls.ts';
import { certificateOf, exchange, issuedBy, postCmc, requestBy, tcr } from '../support/cmc.ts';
import { runAny, type CommandResult } from '../support/command.ts';
import { makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { caSection, Estuary, section, type ClientIdentity, type EstuaryOptions } from '../support/estuary.ts';
import { openssl } from '../support/openssl.ts';
import { PostgresCluster, psql, sharedPostgres } from '../support/postgres.ts';
import { requires } from '../support/requires.ts';
import { NODE, SERVER } from '../support/server-process.ts';
import { withStoreIn } from '../support/store-in-postgres.ts';

const key = makeKey();
const INVALID_SINCE = '2026-01-02T03:04:05Z';
const serialOf = (cert: string): string => new X509Certificate(cert).serialNumber.toLowerCase();

const OPTIONS: EstuaryOptions = {
  listeners: ['est', 'admin', 'publication'],
  configure(config) {
    const base_url = 'http://pki.example.test';
    const listener = { enabled: true, host: '127.0.0.1', port: 0, base_url };
    // The numbers of CRLs are compared: none is signed unless the test asks.
    Object.assign(section(config, 'publication'), listener, { crl_after_revocation: 0 });
    caSection(config)['devices'] = 'required';
  },
};

/** A store that can go back to an earlier state. */
interface Driver {
  start(): Promise<Estuary>;
  /** Keeps the state of a store that no server uses. */
  snapshot(estuary: Estuary): Promise<void>;
  goBack(estuary: Estuary): Promise<void>;
  query(estuary: Estuary, sql: string): Promise<unknown[][]>;
}

const database = ({ dir }: Estuary): string => join(dir, 'data/est.db');
const sqlite: Driver = {
  start: () => Estuary.start(OPTIONS),
  async snapshot(estuary) {
    await this.query(estuary, 'PRAGMA wal_checkpoint(TRUNCATE)');
    copyFileSync(database(estuary), `${database(estuary)}.old`);
  },
  goBack(estuary) {
    for (const end of ['-wal', '-shm']) rmSync(`${database(estuary)}${end}`, { force: true });
    copyFileSync(`${database(estuary)}.old`, database(estuary));
    return Promise.resolve();
  },
  query(estuary, sql) {
    const db = new Database(database(estuary));
    try {
      return Promise.resolve(db.prepare<[], Record<string, unknown>>(sql).all().map(Object.values));
    } finally {
      db.close();
    }
  },
};

function inPostgres(): Driver {
  const urls: string[] = [];
  const urlFile = ({ dir }: Estuary): string => join(dir, 'store.url');
  return {
    async start() {
      const url = await (await sharedPostgres()).createDatabase();
      return Estuary.start(withStoreIn(OPTIONS, url, 'node-1'));
    },
    async snapshot(estuary) {
      const { pathname } = new URL(readFileSync(urlFile(estuary), 'utf8'));
      urls.push(await (await sharedPostgres()).createDatabase(pathname.slice(1)));
    },
    async goBack(estuary) {
      const { pathname } = new URL(urls[0] ?? '');
      // The snapshot stays for the next time.
      writeFileSync(urlFile(estuary), await (await sharedPostgres()).createDatabase(pathname.slice(1)));
    },
    query: (estuary, sql) => psql(readFileSync(urlFile(estuary), 'utf8'), sql),
  };
}

const DRIVERS: readonly [string, Driver, boolean][] = [
  ['SQLite', sqlite, requires('storeInFile')],
  ['PostgreSQL', inPostgres(), requires('postgres')],
];

describe.each(DRIVERS.filter(([, , isThere]) => isThere))('a %s database that went back in time', (_name, driver) => {
  let estuary: Estuary;
  let before: unknown;
  let after: unknown;
  let unused: { readonly token: string };

  const command = (...args: string[]): Promise<CommandResult> =>
    runAny(NODE, [SERVER, ...args, '--config', join(estuary.dir, 'est.toml')]);
  const device = (id: string) => estuary.admin('POST', '/admin/devices', { id });
  const change = async (id: string, fields: object): Promise<void> =>
    expect((await estuary.admin('PATCH', `/admin/devices/${id}`, fields)).status).toBe(200);
  const revoke = async (cert: string, order: object): Promise<void> =>
    expect((await estuary.admin('POST', `/admin/certificates/${serialOf(cert)}/revoke`, order)).status).toBe(200);
  const password = async (token: string, cn: string, path = 'simpleenroll') =>
    (await estuary.enroll(onTheWire(simpleCsr(key, cn)), { password: token, path })).status;
  const crl = () => fetch(`http://127.0.0.1:${estuary.server.port('publication')}/crl/devices.crl`);
  const byCmc = async (who: ClientIdentity): Promise<void> => {
    const { issuer, serialNumber } = certificateOf(who);
    const order = { issuer, serialNumber, reason: 'keyCompromise' as const, invalidityDate: new Date(INVALID_SINCE) };
    const der = await requestBy(who, { controlSequence: [buildControl(1, 'revokeRequest', order)] });
    expect((await postCmc(estuary, der, who)).status).toBe(200);
  };
  /** Signed by the CA's key outside of the server. */
  const foreign = (cn: string): string => {
    const ca = ['-CA', join(estuary.dir, 'ca/issuing.pem'), '-CAkey', join(estuary.dir, 'ca/issuing.key')];
    return openssl(['x509', '-req', '-inform', 'DER', ...ca, '-days', '9'], simpleCsr(key, cn)).toString();
  };

  /** What must survive, of the tokens and devices that the snapshot has. */
  async function facts(): Promise<unknown> {
    const query = (sql: string): Promise<unknown[][]> => driver.query(estuary, sql);
    return {
      certificates: await query(
        `SELECT ca, serial, subject, sans, not_after, requester, method, request_id, device, device_key, required_device, reason, invalidity_date,
           CASE WHEN revoked_at IS NULL THEN 0 ELSE 1 END AS revoked FROM certificate ORDER BY serial`,
      ),
      tokens: await query(
        `SELECT client_id, uses, expires_at, CASE WHEN revoked_at IS NULL THEN 0 ELSE 1 END AS revoked FROM otp
           WHERE client_id LIKE 'old-%' ORDER BY client_id`,
      ),
      devices: await query("SELECT id, key, enabled FROM device WHERE id LIKE 'old-%' ORDER BY id"),
      crls: await query('SELECT ca, last_number FROM crl ORDER BY ca'),
      reservations: await query('SELECT request_id FROM reservation'),
    };
  }

  beforeAll(async () => {
    estuary = await driver.start();
    for (const id of ['device-1', 'old-used', 'old-disabled', 'old-enabled', 'old-csv', 'old-unused', 'old-deleted'])
      await device(id);
    await change('old-enabled', { enabled: false });
    const used = await estuary.otp({ client_id: 'old-used', max_uses: 3 });
    const dead = await estuary.otp({ client_id: 'old-dead' });
    const extended = await estuary.otp({ client_id: 'old-extended' });
    unused = await estuary.otp({ client_id: 'old-unused', max_uses: 9 });
    const early = await estuary.enrolled(key, 'early');
    const held = await estuary.enrolled(key, 'held');
    await crl();
    await estuary.server.stop();
    before = await facts();
    if (driver === sqlite) expect((await command('backup', '--to', join(estuary.dir, 'backup'))).code).toBe(0);
    await driver.snapshot(estuary);
    await estuary.restart();

    // Every kind of event, on every way in.
    expect(await password(used.token, 'old-used')).toBe(200);
    expect(await password(used.token, 'old-used', 'serverkeygen')).toBe(200);
    const late = await estuary.enrolled(key, 'late', ['late.example.com']);
    const { status } = await estuary.enroll(onTheWire(simpleCsr(key, 'late', ['late.example.com'])), {
      client: late,
      path: 'simplereenroll',
    });
    expect(status).toBe(200);
    const request = requestBy(late, {
      reqSequence: [tcr(1, simpleCsr(makeKey(), 'late', ['late.example.com']))],
    });
    expect(issuedBy(await exchange(estuary, request, late))).toHaveLength(1);
    const imported = foreign('imported');
    for (const pem of [imported, foreign('imported-and-kept')])
      expect((await estuary.admin('POST', '/admin/certificates', { pem, ca: 'devices' })).status).toBe(201);
    await revoke(early.cert, { reason: 'keyCompromise', invalidity_date: INVALID_SINCE });
    await revoke(held.cert, { reason: 'certificateHold' });
    await revoke(imported, {});
    await byCmc(await estuary.enrolled(key, 'by-cmc'));
    expect((await estuary.admin('DELETE', `/admin/otp/${dead.id}`)).status).toBe(204);
    const expires_at = new Date(Date.now() + 40 * 86_400_000).toISOString();
    expect((await estuary.admin('PATCH', `/admin/otp/${extended.id}`, { expires_at })).status).toBe(200);
    await change('old-disabled', { enabled: false, note: 'lost: enabled true' });
    await change('old-enabled', { enabled: true });
    await estuary.admin('POST', '/admin/devices?mode=upsert', { id: 'old-csv', enabled: false });
    expect((await estuary.admin('DELETE', '/admin/devices/old-deleted')).status).toBe(204);
    await crl();
    await estuary.server.stop();
    after = await facts();
  });
  afterAll(() => estuary.stop());

  test('is refused at the start with the missing records, and is not changed', async () => {
    await driver.goBack(estuary);
    const { code, output } = await command('serve');
    expect(code).toBe(1);
    expect(output).toMatch(
      /the database is older than the audit file: records \d+ to \d+ \(\S+Z to \S+Z\) of \S+audit\.log are missing/,
    );
    expect(await facts()).toEqual(before);
  });

  test('gets every fact back from the audit file when the operator accepts it, and the decision is on record', async () => {
    expect(after).not.toEqual(before);
    const { code, output } = await command('store', 'accept-older-database');
    expect(output).toContain('The database is accepted.');
    expect(output).toContain('applied: 4 revocations\n');
    expect(code).toBe(0);
    expect(await facts()).toEqual(after);
    expect(readFileSync(join(estuary.dir, 'data/audit.log'), 'utf8')).toContain('"type":"store.accepted"');
    expect((await command('audit', 'verify')).output).toMatch(/the audit log is intact/);
  });

  test('is not accepted twice, and serves', async () => {
    const again = await command('store', 'accept-older-database');
    expect(again.output).toContain('There is nothing to accept.');
    expect(again.code).toBe(0);
    await estuary.restart();
    expect(await password(unused.token, 'old-unused')).toBe(200);
    const running = await command('store', 'accept-older-database');
    expect(running.output).toContain('the store is in use');
    expect(running.code).toBe(1);
    await estuary.server.stop();
  });

  if (driver === sqlite)
    test('a restored backup gets the same facts back', async () => {
      const expected = await facts();
      const { code, output } = await command('restore', '--from', join(estuary.dir, 'backup'));
      expect(output).not.toContain('may be unknown');
      expect(code).toBe(0);
      expect(await facts()).toEqual(expected);
    });

  test('is refused if the audit file was rotated since', async () => {
    await driver.goBack(estuary);
    const log = join(estuary.dir, 'data/audit.log');
    renameSync(log, `${log}.1`);
    expect((await command('serve')).output).toMatch(/records \d+ to \d+ .* of \S+audit\.log\.1 are missing/);
    renameSync(`${log}.1`, log);
  });

  test('without the audit file, unused tokens are revoked and CRL numbers advance by 1,000', async () => {
    await driver.goBack(estuary);
    rmSync(join(estuary.dir, 'data/audit.log'));
    const numbers = async () => driver.query(estuary, 'SELECT last_number FROM crl');
    const [[number] = []] = await numbers();
    const { code, output } = await command('store', 'accept-older-database');
    expect(output).toMatch(/revoked: \d+ unused tokens/);
    expect(code).toBe(0);
    expect(Number((await numbers())[0]?.[0])).toBe(Number(number) + 1000);
    await estuary.restart();
    expect(await password(unused.token, 'old-unused')).toBe(401);
    expect((await command('audit', 'verify')).output).toMatch(/the audit log is intact/);
  });
});

describe.skipIf(!requires('postgres'))('a node that reconnects to an old primary after a failover', () => {
  test('issues nothing, names the missing records and ends with exit code 1', async () => {
    const primary = await PostgresCluster.start();
    let standby: PostgresCluster | undefined;
    let estuary: Estuary | undefined;
    try {
      await primary.sql('CREATE DATABASE est');
      standby = await primary.standby();
      const url = `postgresql://estuary@127.0.0.1:${primary.port},127.0.0.1:${standby.port}/est`;
      estuary = await Estuary.start(withStoreIn({}, url, 'node-1'));
      await primary.end();
      await standby.promote();
      const { token } = await eventually(estuary);
      await standby.end();
      await primary.launch();
      const enroll = estuary.enroll(onTheWire(simpleCsr(key, 'device-1')), { password: token });
      expect((await enroll.catch(() => undefined))?.status).not.toBe(200);
      expect(await estuary.server.exited).toMatchObject({ code: 1 });
      expect(estuary.server.output()).toMatch(/the database is older than the audit file: records \d+ to \d+ /);
    } finally {
      await estuary?.stop();
      await standby?.stop();
      await primary.stop();
    }
  });
});

/** A token, once the database is there again. */
async function eventually(estuary: Estuary): Promise<{ token: string }> {
  let made: { token: string } | undefined;
  await expect
    .poll(
      async () => {
        made = await estuary.otp().catch(() => undefined);
        return made;
      },
      { timeout: 60_000 },
    )
    .toBeDefined();
  if (made === undefined) throw new Error('no token');
  return made;
}
