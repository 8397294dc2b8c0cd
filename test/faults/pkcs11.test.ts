/** Contract §3: what a failing HSM costs the requests it hits, under load, and that it costs nothing else. */
import { randomBytes, X509Certificate } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { Agent } from 'node:https';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';

import { makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { certificatesOf, Estuary, section } from '../support/estuary.ts';
import type { Answer } from '../support/https.ts';
import { withKeysInHsm } from '../support/keys-in-hsm.ts';
import { requires } from '../support/requires.ts';
import { softHsm, type SoftHsm } from '../support/softhsm.ts';

const CLIENTS = 4;
const key = makeKey();

interface Load {
  /** Statuses of enrolments, in the order of the answers. */
  readonly statuses: number[];
  /** Ends the load and gives back what it saw. */
  stop(): Promise<void>;
}

describe.skipIf(!requires('softhsm'))('an HSM that fails under a load of enrolments', () => {
  let hsm: SoftHsm;
  let estuary: Estuary;
  let otp: { id: string; token: string };
  let names = 0;
  /** Serials of all certificates that were answered. */
  const answered: string[] = [];
  const problems: string[] = [];

  beforeAll(async () => {
    hsm = softHsm();
    hsm.addToken('est');
    const options = withKeysInHsm(
      {
        configure: (config, dir) => {
          // A cheap hash, so that the load reaches the HSM.
          section(config, 'otp')['hash_algorithm'] = 'sha256-hmac';
          section(config, 'otp')['hmac_key_file'] = 'otp.key';
          writeFileSync(join(dir, 'otp.key'), randomBytes(32), { mode: 0o600 });
        },
      },
      hsm,
      { max_sessions: 1, timeout: 6 },
    );
    estuary = await Estuary.start(options);
    otp = await estuary.otp({ max_uses: 100_000 });
  });
  afterEach(() => {
    expect(problems.splice(0)).toEqual([]);
  });
  afterAll(async () => {
    await estuary.stop();
    hsm.remove();
  });

  async function enroll(agent?: Agent): Promise<Answer> {
    names += 1;
    const csr = onTheWire(simpleCsr(key, `device-${names}`));
    const answer = await estuary.enroll(csr, { password: otp.token, ...(agent === undefined ? {} : { agent }) });
    if (answer.status === 200) {
      const [der] = certificatesOf(answer);
      if (der === undefined) problems.push('200 without a certificate');
      else answered.push(new X509Certificate(der).serialNumber.toLowerCase());
    } else if (answer.status === 503) {
      if (!/^[1-9]\d*$/.test(answer.headers['retry-after'] ?? '')) problems.push('503 without Retry-After');
    } else if (answer.status !== 500) problems.push(`status ${answer.status}: ${answer.text}`);
    if (answer.status !== 200 && /pkcs11|softhsm|CKR_|token|\//i.test(answer.text)) problems.push(answer.text);
    return answer;
  }

  function startLoad(): Load {
    const statuses: number[] = [];
    let running = true;
    const client = async (): Promise<void> => {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      while (running) {
        statuses.push((await enroll(agent)).status);
        await sleep(5);
      }
      agent.destroy();
    };
    // What needs no HSM goes on all the time.
    const bystander = async (): Promise<void> => {
      while (running) {
        const cacerts = await estuary.est('cacerts');
        if (cacerts.status !== 200) problems.push(`cacerts: ${cacerts.status}`);
        await estuary.otp({ client_id: 'another' });
        await sleep(50);
      }
    };
    const all = [bystander(), ...Array.from({ length: CLIENTS }, client)];
    return {
      statuses,
      async stop() {
        running = false;
        await Promise.all(all);
      },
    };
  }

  async function until(condition: () => boolean, what: string): Promise<void> {
    for (let i = 0; i < 1000; i += 1) {
      if (condition()) return;
      await sleep(20);
    }
    throw new Error(`never happened: ${what}`);
  }

  const readiness = async (): Promise<number> => (await estuary.admin('GET', '/readyz')).status;

  /** The process that holds the default CA's token, from the log. */
  function childPid(): number {
    const start = estuary.server.log().findLast(({ ca, child }) => ca === 'devices' && typeof child === 'number');
    const pid = start?.['child'];
    if (typeof pid !== 'number') throw new Error('no token process in the log');
    return pid;
  }

  /** Enrolments answered with 200 from now on. */
  async function recovers(load: Load): Promise<void> {
    const from = load.statuses.length;
    await until(() => load.statuses.slice(from).filter((status) => status === 200).length >= 20, 'recovery');
  }

  async function under(fault: (load: Load) => Promise<void>): Promise<readonly number[]> {
    const load = startLoad();
    try {
      await recovers(load);
      const from = load.statuses.length;
      await fault(load);
      await recovers(load);
      return load.statuses.slice(from);
    } finally {
      await load.stop();
    }
  }

  test('its token vanishes and returns: 500 and 503 meanwhile, and signatures again without a restart', async () => {
    const { pid } = estuary.server;
    const statuses = await under(async (load) => {
      hsm.moveAway();
      try {
        const from = load.statuses.length;
        await until(() => load.statuses.slice(from).filter((status) => status === 503).length >= 20, '503s');
        expect(await readiness()).toBe(503);
        await sleep(1000);
      } finally {
        hsm.moveBack();
      }
    });
    expect(statuses).toContain(500);
    expect(statuses).toContain(503);
    expect(estuary.server.pid).toBe(pid);
    expect(await readiness()).toBe(200);
  });

  test('its process is killed: the calls in flight fail, and another process takes over', async () => {
    const before = childPid();
    await under((load) => {
      process.kill(before, 'SIGKILL');
      return until(() => load.statuses.includes(503) || load.statuses.includes(500), 'a failed enrolment');
    });
    expect(childPid()).not.toBe(before);
  });

  test('its library hangs (SIGSTOP): the deadline ends it', async () => {
    const before = childPid();
    const statuses = await under(async (load) => {
      const from = load.statuses.length;
      process.kill(before, 'SIGSTOP');
      await until(() => load.statuses.slice(from).some((status) => status !== 200), 'a failed enrolment');
    });
    expect(statuses).toContain(500);
    expect(childPid()).not.toBe(before);
  });

  test('its sessions are exhausted: 503 with Retry-After for those beyond the queue, certificates for the rest', async () => {
    const pid = childPid();
    process.kill(pid, 'SIGSTOP');
    const statuses: number[] = [];
    const burst = Array.from({ length: 150 }, async () => statuses.push((await enroll()).status));
    // One in the session and 64 behind it; the rest is refused at once, long before the deadline.
    await until(() => statuses.includes(503), 'a refused enrolment');
    process.kill(pid, 'SIGCONT');
    await Promise.all(burst);
    expect(statuses.every((status) => status === 503 || status === 200)).toBe(true);
    expect(statuses.filter((status) => status === 503).length).toBeGreaterThan(0);
    expect(statuses.filter((status) => status === 200).length).toBeGreaterThan(0);
    expect((await enroll()).status).toBe(200);
  });

  test('afterwards: every certificate answered is recorded once, no serial twice, no OTP use lost', async () => {
    expect(new Set(answered).size).toBe(answered.length);
    const db = new Database(join(estuary.dir, 'data/est.db'), { readonly: true });
    const stored = db.prepare<[], { serial: string; subject: string }>('SELECT serial, subject FROM certificate').all();
    const open = db.prepare('SELECT request_id FROM reservation').all();
    db.close();
    expect(open).toEqual([]);
    expect(stored.map(({ serial }) => serial).sort()).toEqual([...answered].sort());
    expect(new Set(stored.map(({ subject }) => subject)).size).toBe(stored.length);
    const { json } = await estuary.admin('GET', `/admin/otp/${otp.id}`);
    expect(json['uses']).toBe(answered.length);
  });
});
