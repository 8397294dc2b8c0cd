/** A PostgreSQL that can keep no commit, or takes no connection: 503 meanwhile, nothing lost or doubled, automatic recovery. */
import { execFileSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { mkdtempSync, statSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { certificatesOf, Estuary } from '../support/estuary.ts';
import { PostgresCluster, psql } from '../support/postgres.ts';
import { requires } from '../support/requires.ts';
import { withStoreIn } from '../support/store-in-postgres.ts';
import { storedRows } from '../support/stored-rows.ts';
import { removeFolder } from '../support/folders.ts';

const WAIT = { timeout: 120_000, interval: 500 };
const key = makeKey();

interface Device {
  readonly name: string;
  readonly token: string;
}

async function started(url: string): Promise<Estuary> {
  const estuary = await Estuary.start(withStoreIn({}, url, 'est-1'));
  onTestFinished(() => estuary.stop());
  return estuary;
}

const devicesOf = (estuary: Estuary): Promise<Device[]> =>
  Promise.all(
    ['device-a', 'device-b', 'device-c'].map(async (name) => ({
      name,
      token: (await estuary.otp({ client_id: name })).token,
    })),
  );

/** The status, or the serial number of the certificate. */
async function enroll(estuary: Estuary, { name, token }: Device): Promise<number | string> {
  const answer = await estuary.enroll(onTheWire(simpleCsr(key, name)), { password: token });
  const [der] = answer.status === 200 ? certificatesOf(answer) : [];
  return der === undefined ? answer.status : new X509Certificate(der).serialNumber.toLowerCase();
}

const readiness = async (estuary: Estuary): Promise<number> => (await estuary.admin('GET', '/readyz')).status;

/** Only 503 while it lasts; each device gets its one certificate afterwards, and nothing stays open. */
async function only503(estuary: Estuary, devices: readonly Device[], recover: () => Promise<unknown>): Promise<void> {
  for (let round = 0; round < 2; round++)
    expect(await Promise.all(devices.map((device) => enroll(estuary, device)))).toEqual(devices.map(() => 503));
  await expect.poll(() => readiness(estuary), WAIT).toBe(503);
  // What needs no store goes on.
  expect((await estuary.est('cacerts')).status).toBe(200);
  await recover();
  const serials = new Map<string, number | string>();
  for (const device of devices)
    await expect
      .poll(async () => {
        const answer = await enroll(estuary, device);
        serials.set(device.name, answer);
        return typeof answer;
      }, WAIT)
      .toBe('string');
  await expect.poll(() => readiness(estuary), WAIT).toBe(200);
  await expect.poll(() => storedRows(estuary.dir, 'SELECT request_id FROM reservation'), WAIT).toEqual([]);
  const stored = await storedRows<{ name: string; serial: string }>(
    estuary.dir,
    "SELECT substr(subject, 4) AS name, serial FROM certificate WHERE subject LIKE 'CN=device-_' ORDER BY subject",
  );
  expect(stored).toEqual(devices.map(({ name }) => ({ name, serial: serials.get(name) })));
  expect(await storedRows(estuary.dir, 'SELECT client_id FROM otp WHERE uses <> 1')).toEqual([]);
}

describe.skipIf(!requires('postgres'))('a database in trouble', () => {
  test(
    'the synchronous standby is gone: a commit that nobody confirms is answered with 503, and nothing of it as issued',
    { timeout: 600_000 },
    async () => {
      const primary = await PostgresCluster.start();
      onTestFinished(() => primary.stop());
      const standby = await primary.standby();
      onTestFinished(() => standby.stop());
      const estuary = await started(await primary.createDatabase());
      const devices = await devicesOf(estuary);
      await standby.end('SIGQUIT');
      await only503(estuary, devices, () => standby.launch());
    },
  );

  test.skipIf(!requires('root'))(
    'the tablespace of the certificates is full: 503, also of /readyz, until there is room',
    { timeout: 600_000 },
    async () => {
      const cluster = await PostgresCluster.start();
      const url = await cluster.createDatabase();
      const disk = await certificatesOnSmallDisk(cluster, url);
      const estuary = await started(url);
      const devices = await devicesOf(estuary);
      await disk.use();
      disk.fill();
      await only503(estuary, devices, disk.empty);
    },
  );

  test(
    'all connections are taken: 503 until some are free, then automatic recovery',
    { timeout: 600_000 },
    async () => {
      const cluster = await PostgresCluster.start({ settings: { max_connections: '20' } });
      onTestFinished(() => cluster.stop());
      // A few connections are kept for superusers, whom the tests' own role is one of.
      await cluster.sql('CREATE ROLE est LOGIN');
      await cluster.sql('CREATE DATABASE est OWNER est');
      const url = cluster.url('est').replace('estuary@', 'est@');
      const estuary = await started(url);
      const devices = await devicesOf(estuary);
      const taken: pg.Client[] = [];
      const ours = "FROM pg_stat_activity WHERE application_name LIKE 'estuary %'";
      await expect
        .poll(
          async () => {
            await cluster.sql(`SELECT pg_terminate_backend(pid) ${ours}`);
            taken.push(...(await asManyAsThereAre(url)));
            return taken.length;
          },
          { ...WAIT, interval: 20 },
        )
        // All but three, which are the superusers'.
        .toBe(17);
      await only503(estuary, devices, () => Promise.all(taken.map((client) => client.end())));
    },
  );
});

/** Mounts a small disk for the certificates of a cluster. @returns what fills it, and what empties it */
async function certificatesOnSmallDisk(cluster: PostgresCluster, url: string) {
  const folder = mkdtempSync(join(tmpdir(), 'estuary-tablespace-'));
  const { uid, gid } = statSync(cluster.data);
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=1m,mode=700,uid=${uid},gid=${gid}`, 'tmpfs', folder]);
  // Runs after the cluster has ended.
  onTestFinished(() => {
    execFileSync('umount', ['-l', folder]);
    removeFolder(folder);
  });
  onTestFinished(() => cluster.stop());
  await cluster.sql(`CREATE TABLESPACE small LOCATION '${folder}'`);
  const filler = join(folder, 'filler');
  return {
    use: () => psql(url, 'ALTER TABLE certificate SET TABLESPACE small'),
    fill: () => expect(() => writeFileSync(filler, Buffer.alloc(2 << 20))).toThrow(/ENOSPC/),
    empty: () => rm(filler),
  };
}

/** Takes connections until none is left. */
async function asManyAsThereAre(url: string): Promise<pg.Client[]> {
  const clients: pg.Client[] = [];
  for (;;) {
    const client = new pg.Client({ connectionString: url, application_name: 'taken' });
    // The end of the test ends the server under it.
    client.on('error', () => undefined);
    try {
      await client.connect();
    } catch {
      return clients;
    }
    clients.push(client);
  }
}
