/** Enrollments that continue while an HSM fails, and the requirements on each response. */
import { X509Certificate } from 'node:crypto';
import { Agent } from 'node:https';
import { expect } from 'vitest';

import { makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { certificatesOf, Estuary } from '../support/estuary.ts';
import { call, type Answer } from '../support/https.ts';
import { withKeysInHsm } from '../support/keys-in-hsm.ts';
import type { SoftHsm } from '../support/softhsm.ts';
import { storedRows } from '../support/stored-rows.ts';
import { pause, until } from '../support/until.ts';

const CLIENTS = 4;
const key = makeKey();

export interface Load {
  /** Statuses of enrollments, in the order of the answers. */
  readonly statuses: number[];
  /** Ends the load. */
  stop(): Promise<void>;
}

/** A server with its CA keys in an HSM, under a load of enrollments when told. */
export class HsmUnderLoad {
  readonly estuary: Estuary;
  readonly #otp: { readonly id: string; readonly token: string };
  /** Serials of all certificates that were answered. */
  readonly #answered: string[] = [];
  readonly #problems: string[] = [];
  #names = 0;

  private constructor(estuary: Estuary, otp: { readonly id: string; readonly token: string }) {
    this.estuary = estuary;
    this.#otp = otp;
  }

  /** @param pkcs11 further keys of `[ca.pkcs11]` */
  static async start(
    hsm: SoftHsm,
    pkcs11: Readonly<Record<string, string | number>>,
    env: Readonly<Record<string, string>> = {},
  ): Promise<HsmUnderLoad> {
    hsm.addToken('est');
    const options = withKeysInHsm({ env }, hsm, pkcs11);
    const estuary = await Estuary.start(options);
    return new HsmUnderLoad(estuary, await estuary.otp({ max_uses: 1_000_000 }));
  }

  async enroll(agent?: Agent): Promise<Answer> {
    this.#names += 1;
    const csr = onTheWire(simpleCsr(key, `device-${this.#names}`));
    const answer = await this.estuary.enroll(csr, {
      password: this.#otp.token,
      ...(agent === undefined ? {} : { agent }),
    });
    if (answer.status === 200) {
      const [der] = certificatesOf(answer);
      if (der === undefined) this.#problems.push('200 without a certificate');
      else this.#answered.push(new X509Certificate(der).serialNumber.toLowerCase());
    } else if (answer.status === 503) {
      if (!/^[1-9]\d*$/.test(answer.headers['retry-after'] ?? '')) this.#problems.push('503 without Retry-After');
    } else if (answer.status !== 500) this.#problems.push(`status ${answer.status}: ${answer.text}`);
    if (answer.status !== 200 && /pkcs11|softhsm|CKR_|token|\//i.test(answer.text)) this.#problems.push(answer.text);
    return answer;
  }

  #startLoad(): Load {
    const statuses: number[] = [];
    let running = true;
    const client = async (): Promise<void> => {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      while (running) {
        statuses.push((await this.enroll(agent)).status);
        await pause(5);
      }
      agent.destroy();
    };
    // What needs no HSM goes on all the time.
    const bystander = async (): Promise<void> => {
      while (running) {
        const cacerts = await this.estuary.est('cacerts');
        if (cacerts.status !== 200) this.#problems.push(`cacerts: ${cacerts.status}`);
        await this.estuary.otp({ client_id: 'another' });
        await pause(50);
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

  async readiness(): Promise<number> {
    return (await this.estuary.admin('GET', '/readyz?ca=devices')).status;
  }

  /** What `estuary_dependency_up` says of the default CA's HSM. */
  async isHsmUp(): Promise<string | undefined> {
    const { text } = await call({
      port: this.estuary.server.port('admin'),
      path: '/metrics',
      headers: { Authorization: `Bearer ${this.estuary.adminToken}` },
      tls: { ca: this.estuary.root },
    });
    return /^estuary_dependency_up\{dependency="hsm",ca="devices"\} (\d)$/m.exec(text)?.[1];
  }

  /** The process that holds the default CA's token, from the log. */
  childPid(): number {
    const start = this.estuary.server.log().findLast(({ ca, child }) => ca === 'devices' && typeof child === 'number');
    const pid = start?.['child'];
    if (typeof pid !== 'number') throw new Error('no token process in the log');
    return pid;
  }

  /** Enrollments answered with 200 from now on. */
  async #recovers(load: Load): Promise<void> {
    const from = load.statuses.length;
    await until('recovery', () => load.statuses.slice(from).filter((status) => status === 200).length >= 20);
  }

  async under(fault: (load: Load) => Promise<void>): Promise<readonly number[]> {
    const load = this.#startLoad();
    try {
      await this.#recovers(load);
      const from = load.statuses.length;
      await fault(load);
      await this.#recovers(load);
      return load.statuses.slice(from);
    } finally {
      await load.stop();
    }
  }

  /** Fails with what was wrong with any answer so far. */
  expectNoProblems(): void {
    expect(this.#problems.splice(0)).toEqual([]);
  }

  /** Every certificate answered is recorded once, no serial twice, nothing left open, no OTP use lost. */
  async expectConsistency(): Promise<void> {
    expect(new Set(this.#answered).size).toBe(this.#answered.length);
    const { dir } = this.estuary;
    const stored = await storedRows<{ serial: string; subject: string }>(
      dir,
      'SELECT serial, subject FROM certificate',
    );
    expect(await storedRows(dir, 'SELECT request_id FROM reservation')).toEqual([]);
    expect(stored.map(({ serial }) => serial).sort()).toEqual([...this.#answered].sort());
    expect(new Set(stored.map(({ subject }) => subject)).size).toBe(stored.length);
    const { json } = await this.estuary.admin('GET', `/admin/otp/${this.#otp.id}`);
    expect(json['uses']).toBe(this.#answered.length);
  }
}
