/** Contract §6 with `server.workers` above 1: whichever process of the service is killed, under load. */
import { execFileSync } from 'node:child_process';
import { randomBytes, randomInt, X509Certificate } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { Agent } from 'node:https';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { certificatesOf, Estuary, section } from '../support/estuary.ts';
import { NODE, SERVER } from '../support/server-process.ts';
import { storedRows } from '../support/stored-rows.ts';
import { fromEachWorker, processesOf } from '../support/service-processes.ts';

const CLIENTS = 6;
/** Enrolments of each client in a round. */
const EACH = 8;
/** Whose token only shows that the service answers again. */
const PROBE = 'probe';
const WAIT = { timeout: 120_000, interval: 100 };

type Victim = 'writer' | 'worker' | 'supervisor';
const ROUNDS: readonly Victim[] = ['writer', 'worker', 'writer', 'worker', 'writer', 'worker', 'writer', 'supervisor'];

let estuary: Estuary;

beforeAll(async () => {
  estuary = await Estuary.start({
    configure: (config, dir) => {
      section(config, 'server')['workers'] = 2;
      // A cheap hash, so that the kill hits issuance and not argon2.
      section(config, 'otp')['hash_algorithm'] = 'sha256-hmac';
      section(config, 'otp')['hmac_key_file'] = 'otp.key';
      // A device that got no answer asks again.
      section(config, 'otp')['retry_window'] = 3600;
      writeFileSync(join(dir, 'otp.key'), randomBytes(32), { mode: 0o600 });
    },
  });
}, 120_000);
afterAll(() => estuary.stop());

/**
 * All of the service answers again, by itself. Each worker is asked, and has to write: what `/readyz` says of the store may be a second old,
 * and the worker that it asks need not be the one that has not found the new writer yet.
 */
const up = (): Promise<void> =>
  expect
    .poll(
      () =>
        fromEachWorker(estuary.server.pid, async () => {
          await estuary.otp({ client_id: PROBE });
          return (await estuary.admin('GET', '/readyz')).json['status'];
        }).catch(() => 'away'),
      WAIT,
    )
    .toEqual(['ok', 'ok']);

async function kill(victim: Victim): Promise<void> {
  if (victim === 'supervisor') {
    estuary.server.signal('SIGKILL');
    await estuary.server.exited;
    await estuary.restart();
    return;
  }
  const [pid] = processesOf(estuary.server.pid, victim);
  if (pid === undefined) throw new Error(`there is no ${victim}`);
  process.kill(pid, 'SIGKILL');
  // Until then all may look as before.
  await expect.poll(() => processesOf(estuary.server.pid, victim), WAIT).not.toContain(pid);
}

/** Each client enrols with single-use tokens, and tries again until it is answered, as a device does; the kill falls among their first half. */
async function load(round: number): Promise<{ name: string; serial: string }[]> {
  const names = Array.from({ length: CLIENTS * EACH }, (_, n) => `r${round}-${n}`);
  const tokens = await Promise.all(
    names.map(async (name) => ({ name, token: (await estuary.otp({ client_id: name })).token })),
  );
  const key = makeKey();
  const answered: { name: string; serial: string }[] = [];
  const killAfter = randomInt((CLIENTS * EACH) / 2);
  let killed: Promise<void> | undefined;
  const clients = Array.from({ length: CLIENTS }, async (_, client) => {
    let agent = new Agent({ keepAlive: true, maxSockets: 1 });
    for (const { name, token } of tokens.slice(client * EACH, (client + 1) * EACH)) {
      const wire = onTheWire(simpleCsr(key, name));
      if (answered.length >= killAfter) killed ??= kill(ROUNDS[round] ?? 'writer');
      for (let tries = 0; ; tries++) {
        const answer = await estuary.enroll(wire, { password: token, agent }).catch(() => undefined);
        if (answer?.status === 200) {
          const [der] = certificatesOf(answer);
          if (der !== undefined) answered.push({ name, serial: new X509Certificate(der).serialNumber.toLowerCase() });
          break;
        }
        if (tries > 300) throw new Error(`${name}: ${answer?.status} ${answer?.body.toString()}`);
        agent.destroy();
        agent = new Agent({ keepAlive: true, maxSockets: 1 });
        await sleep(200);
      }
    }
    agent.destroy();
  });
  await Promise.all(clients);
  await killed;
  return answered;
}

test(
  'issue 14.3: kill -9 of the writer, of workers and of the supervisor under load: nothing answered is missing, every device gets its one certificate, and the service goes on by itself',
  { timeout: 900_000 },
  async () => {
    const answered: { name: string; serial: string }[] = [];
    // Before that, a process that dies is a start that failed.
    await expect.poll(() => estuary.server.log().some(({ msg }) => msg === 'all workers listen'), WAIT).toBe(true);
    for (const round of ROUNDS.keys()) {
      answered.push(...(await load(round)));
      await up();
    }
    expect(answered).toHaveLength(ROUNDS.length * CLIENTS * EACH);
    // What nobody waits for any more is closed in the background.
    await expect.poll(() => storedRows(estuary.dir, 'SELECT request_id FROM reservation'), WAIT).toEqual([]);
    const stored = await storedRows<{ serial: string; subject: string }>(
      estuary.dir,
      'SELECT serial, subject FROM certificate',
    );
    const bySerial = new Map(stored.map(({ serial, subject }) => [serial, subject]));
    expect(answered.filter(({ serial, name }) => bySerial.get(serial) !== `CN=${name}`)).toEqual([]);
    expect(stored, 'one certificate for each token').toHaveLength(answered.length);
    expect(await storedRows(estuary.dir, `SELECT id FROM otp WHERE uses <> 1 AND client_id <> '${PROBE}'`)).toEqual([]);
    const verdict = execFileSync(NODE, [SERVER, 'audit', 'verify', '--config', join(estuary.dir, 'est.toml')]);
    expect(verdict.toString()).toMatch(/\d+ records/);
  },
);
