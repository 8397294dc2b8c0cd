/** `server.workers` above 1: what the workers have in force, and that none is missed for long. */
import { appendFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { Estuary, section, hashOtpsCheaply } from '../support/estuary.ts';
import { fromEachWorker } from '../support/service-processes.ts';

// Workers start again in most of these tests.
vi.setConfig({ testTimeout: 120_000 });

const WAIT = { timeout: 60_000, interval: 50 };
const wire = onTheWire(simpleCsr(makeKey()));
let estuary: Estuary;
let good: string;

beforeAll(async () => {
  estuary = await Estuary.start({
    configure: (config, dir) => {
      section(config, 'server')['workers'] = 2;
      hashOtpsCheaply(config, dir);
    },
  });
  // Before that, a worker that dies is a start that failed.
  await vi.waitFor(() => expect(logged('all workers listen')).toHaveLength(1), WAIT);
  good = readFileSync(configFile(), 'utf8');
}, 120_000);
beforeEach(() => writeFileSync(configFile(), good));
afterAll(() => estuary.stop());

const configFile = (): string => join(estuary.dir, 'est.toml');
const logged = (message: string) => estuary.server.log().filter(({ msg }) => msg === message);
const readyz = () => estuary.admin('GET', '/readyz').then(({ json }) => json);
const ofReloads = (): unknown[] =>
  readFileSync(join(estuary.dir, 'data/audit.log'), 'utf8')
    .split('\n')
    .filter((line) => line.includes('"config.reload"'));

async function reload(outcome: string): Promise<void> {
  const before = logged(outcome).length;
  estuary.server.signal('SIGHUP');
  await expect.poll(() => logged(outcome).length, WAIT).toBe(before + 1);
}

/** Of a worker; the same each time while none is replaced. */
function aWorker(): number {
  const victim = logged('listening').at(-1)?.['pid'];
  if (typeof victim !== 'number') throw new Error('no worker');
  return victim;
}

/** Kills a worker, sees that `/readyz` names it, and waits until it is replaced. */
async function loseWorker(): Promise<void> {
  const listening = logged('listening');
  const victim = aWorker();
  process.kill(victim, 'SIGKILL');
  await expect.poll(readyz, WAIT).toMatchObject({
    status: 'degraded',
    parts: expect.objectContaining({ [`worker:${await slotOf(victim)}`]: 'down' }) as unknown,
  });
  await expect.poll(() => logged('listening').length, WAIT).toBe(listening.length + 2);
  await expect.poll(readyz, WAIT).toMatchObject({ status: 'ok' });
}

async function slotOf(pid: number): Promise<number> {
  const death = () => logged('a worker process died').find((line) => line['worker_pid'] === pid);
  await expect.poll(death, WAIT).toBeDefined();
  return Number(death()?.['worker']);
}

const adminStatus = () => estuary.admin('GET', '/admin/otp').then(({ status }) => status);

/** The statuses that both workers answer with the admin token. */
const adminStatuses = async (): Promise<number[]> => [
  ...new Set(await fromEachWorker(estuary.server.pid, adminStatus)),
];

const otherToken = (): void =>
  estuary.reconfigure((config) => {
    const token = { token_hash: `sha256:${'0'.repeat(64)}`, description: 'another' };
    section(config, 'admin', 'bearer_token')['tokens'] = [token];
  });

describe('issue 11.16: the workers of one service', () => {
  test('one that dies is replaced while the configuration file is broken and a secret is gone', async () => {
    const { token } = await estuary.otp({ max_uses: 9 });
    const key = readFileSync(join(estuary.dir, 'otp.key'));
    appendFileSync(configFile(), '\n[oops]\n');
    rmSync(join(estuary.dir, 'otp.key'));
    await loseWorker();
    const enroll = () => estuary.enroll(wire, { password: token }).then(({ status }) => status);
    expect(await Promise.all([enroll(), enroll(), enroll(), enroll()])).toEqual([200, 200, 200, 200]);
    writeFileSync(join(estuary.dir, 'otp.key'), key, { mode: 0o600 });
  });

  test('one that replaces another has what is in force, not what nobody reloaded', async () => {
    otherToken();
    await loseWorker();
    expect(await adminStatuses()).toEqual([200]);
  });

  test('issue 16.9: no connection waits for one that hangs, nor is lost in its death', async () => {
    process.kill(aWorker(), 'SIGSTOP');
    expect(await Promise.all(Array.from({ length: 6 }, adminStatus))).toEqual(Array(6).fill(200));
    await loseWorker();
  });

  test('a reload counts in all of them, has one audit record, and is what a later one gets', async () => {
    const before = ofReloads().length;
    otherToken();
    await reload('configuration reloaded');
    expect(await adminStatuses()).toEqual([401]);
    expect(ofReloads()).toHaveLength(before + 1);
    writeFileSync(configFile(), good);
    await loseWorker();
    expect(await adminStatuses()).toEqual([401]);
    await reload('configuration reloaded');
    expect(await adminStatuses()).toEqual([200]);
  });

  test('a reload that fails changes none of them, has one record, and `/readyz` names it until one succeeds', async () => {
    const before = ofReloads().length;
    const file = join(estuary.dir, 'tls/server.key');
    const key = readFileSync(file);
    otherToken();
    writeFileSync(file, 'not a key');
    await reload('reload failed; the old configuration stays in force');
    expect(await adminStatuses()).toEqual([200]);
    expect(await readyz()).toMatchObject({ status: 'degraded', parts: { reload: 'degraded' } });
    expect(ofReloads()).toEqual([
      ...ofReloads().slice(0, before),
      expect.stringContaining('"outcome":"failure"') as unknown,
    ]);
    writeFileSync(file, key);
    writeFileSync(configFile(), good);
    await reload('configuration reloaded');
    expect((await readyz())['status']).toBe('ok');
  });

  test('issue 16.7: POST /admin/reload of one reloads all, with an answer; a dry run changes nothing', async () => {
    const before = ofReloads().length;
    const post = (query = '') => estuary.admin('POST', `/admin/reload${query}`);
    expect(await post('?dry_run=true')).toMatchObject({ status: 200, json: { dry_run: true, changed: [] } });
    estuary.reconfigure((config) => {
      section(config, 'est')['retry_after'] = 77;
      section(config, 'log')['level'] = 'debug';
    });
    const report = { changed: ['log.level'], needs_restart: ['est.retry_after'] };
    expect(await post('?dry_run=true')).toMatchObject({ status: 200, json: { dry_run: true, ...report } });
    expect(ofReloads()).toHaveLength(before);
    const reloaded = await post();
    expect(reloaded).toMatchObject({ status: 200, json: { dry_run: false, ...report } });
    expect(JSON.stringify(reloaded.json['certificates'])).toMatch(
      /"use":"tls".*"use":"ca","ca":"devices".*"new":false/,
    );
    expect(ofReloads().slice(before)).toEqual([expect.stringContaining('"subject":"quickstart') as unknown]);
    // The log is written after the answer.
    await expect
      .poll(() => logged('configuration reloaded').at(-1)?.['certificates'] ?? [], WAIT)
      .toContainEqual(
        expect.objectContaining({ use: 'ca', ca: 'lab', notAfter: expect.stringMatching(/Z$/) as unknown }),
      );

    appendFileSync(configFile(), '\n[oops]\n');
    for (const query of ['?dry_run=true', ''])
      expect(await post(query)).toMatchObject({
        status: 409,
        json: { code: 'RELOAD_FAILED', message: expect.stringContaining('oops') as unknown },
      });
    await expect.poll(readyz, WAIT).toMatchObject({ parts: { reload: 'degraded' } });
    writeFileSync(configFile(), good);
    expect((await post()).status).toBe(200);
    await expect.poll(readyz, WAIT).toMatchObject({ status: 'ok' });
  });

  test('no secret stands in the command line or the environment of a worker', () => {
    const secret = readFileSync(join(estuary.dir, 'otp.key'));
    for (const pid of new Set(logged('listening').map((line) => Number(line['pid'])))) {
      let seen;
      try {
        seen = [readFileSync(`/proc/${pid}/cmdline`), readFileSync(`/proc/${pid}/environ`)];
      } catch {
        continue;
      }
      for (const text of seen) expect(text.includes(secret) || text.includes(secret.toString('base64'))).toBe(false);
    }
  });

  test('the end of the service is recorded', async () => {
    expect(await estuary.server.stop()).toEqual({ code: 0, signal: null });
    const last = readFileSync(join(estuary.dir, 'data/audit.log'), 'utf8').trimEnd().split('\n').at(-1);
    expect(last).toContain('"type":"service.stop"');
  });
});
