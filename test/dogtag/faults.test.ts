/** Faults of the real Dogtag under an Estuary: nothing issued twice, nothing lost, the right 202 and 503. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeKey, onTheWire, simpleCsr, type TestKey } from '../support/csr.ts';
import { AUTO, QUEUE, type DogtagProfile } from '../support/dogtag-profiles.ts';
import type { DogtagSettings } from '../support/dogtag-stand-in/index.ts';
import { Dogtag, OPEN_TIMEOUT } from '../support/dogtag.ts';
import { certificatesOf, Estuary, itemsOf, section } from '../support/estuary.ts';
import type { Answer } from '../support/https.ts';
import { requires } from '../support/requires.ts';
import { parseCertificate } from '../../src/pki/x509/certificate.ts';
import { pause } from '../support/until.ts';

const RUN = Date.now().toString(36);

interface Client {
  readonly cn: string;
  readonly key: TestKey;
  readonly token: string;
}

describe.skipIf(!requires('dogtag'))('faults of the real Dogtag', { timeout: 600_000 }, () => {
  let dogtag: Dogtag;
  let estuary: Estuary;

  beforeAll(async () => {
    dogtag = await Dogtag.open();
  }, OPEN_TIMEOUT);
  afterAll(() => dogtag.close());

  async function withEstuary(
    profile: DogtagProfile,
    more: Partial<DogtagSettings>,
    work: () => Promise<void>,
  ): Promise<void> {
    estuary = await Estuary.start({
      configure: (config, dir) => {
        const file = join(dir, 'dogtag-anchors.pem');
        writeFileSync(file, dogtag.ca);
        dogtag.configure(config, dir, profile, { check_interval: 1, trust_anchors: file, ...more });
        section(config, 'est')['retry_after'] = 1;
      },
    });
    try {
      await work();
    } finally {
      await estuary.stop();
    }
  }

  async function client(name: string): Promise<Client> {
    const cn = `fault-${name}-${RUN}`;
    return { cn, key: makeKey(), token: (await estuary.otp({ client_id: cn })).token };
  }

  /** One request; it fails the test when no answer comes within the 20 s of the test's own client. */
  const attempt = ({ cn, key, token }: Client): Promise<Answer> =>
    estuary.enroll(onTheWire(simpleCsr(key, cn, [`${cn}.example.com`])), { password: token });

  /** A client that does as Retry-After says until it has its certificate. */
  async function enrollPatiently(one: Client, seen: Set<number>): Promise<string> {
    for (let tries = 0; tries < 200; tries++) {
      const answer = await attempt(one);
      seen.add(answer.status);
      if (answer.status === 200) {
        const [der = Buffer.alloc(0)] = certificatesOf(answer);
        return parseCertificate(der).serialNumber;
      }
      if (answer.status !== 202 && answer.status !== 503) throw new Error(`${answer.status}: ${answer.text}`);
      expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0);
      await pause(1000);
    }
    throw new Error(`${one.cn} got no certificate`);
  }

  /** Estuary and Dogtag agree: this client has the one certificate that it was handed. */
  async function expectOnce(one: Client, serial: string): Promise<void> {
    expect(await dogtag.certificatesOf(one.cn)).toEqual([serial]);
    const { json } = await estuary.admin('GET', `/admin/certificates?subject=${one.cn}`);
    expect(itemsOf(json).map((item) => item['serial'])).toEqual([serial]);
  }

  test.each(['stop', 'kill'] as const)('Tomcat: %s and start under a load of enrollments', async (how) => {
    await withEstuary(AUTO, { timeout: 5 }, async () => {
      const seen = new Set<number>();
      const clients = await Promise.all(Array.from({ length: 24 }, (_, n) => client(`${how}-${n}`)));
      const serials = new Map<Client, string>();
      const waiting = [...clients];
      const worker = async (): Promise<void> => {
        for (let next = waiting.shift(); next !== undefined; next = waiting.shift())
          serials.set(next, await enrollPatiently(next, seen));
      };
      const load = Promise.all(Array.from({ length: 4 }, worker));
      const outage = (async () => {
        // Some are served before, some are under way, some come later.
        await expect.poll(() => serials.size, { timeout: 120_000, interval: 50 }).toBeGreaterThanOrEqual(3);
        await dogtag.stop('tomcat', how);
        // The workers may all be polling for what they had sent before, so somebody else comes as well.
        const late = await client(`${how}-late`);
        clients.push(late);
        seen.add((await attempt(late)).status);
        await pause(3000);
        await dogtag.start('tomcat');
        serials.set(late, await enrollPatiently(late, seen));
      })();
      await Promise.all([load, outage]);
      expect([...seen].sort()).toContain(503);
      for (const [one, serial] of serials) await expectOnce(one, serial);
      expect(serials.size).toBe(clients.length);
    });
  });

  test('the directory is down: what Dogtag seems to queue is lost there, and reported, never submitted again', async () => {
    await withEstuary(QUEUE, { timeout: 5, lost_after: 5 }, async () => {
      const before = await client('kept');
      expect((await attempt(before)).status).toBe(202);
      await dogtag.stop('directory');
      const during = await client('lost');
      let first;
      try {
        first = await attempt(during);
        // Dogtag answers "not found" to polls now: that is not final.
        for (let poll = 0; poll < 4; poll++) {
          expect((await attempt(before)).status).toBe(202);
          await pause(1100);
        }
      } finally {
        await dogtag.start('directory');
      }
      expect([202, 503]).toContain(first.status);
      await expect.poll(() => dogtag.pending(`CN=${before.cn}`), { interval: 1000 }).toHaveLength(1);
      const [id = ''] = await dogtag.pending(`CN=${before.cn}`);
      await dogtag.decide('approve', id);
      await expectOnce(before, await enrollPatiently(before, new Set()));

      if (first.status === 202) {
        // Lost at Dogtag. The administrator sees it, and the client is told to ask again.
        await expect.poll(async () => (await attempt(during)).status, { timeout: 90_000, interval: 1100 }).toBe(503);
        const { json } = await estuary.admin('GET', '/admin/requests?status=failed');
        expect(itemsOf(json)).toContainEqual(
          expect.objectContaining({
            subject: `CN=${during.cn}`,
            reason: expect.stringContaining('no longer knows it') as string,
          }),
        );
      }
      expect(await dogtag.pending(`CN=${during.cn}`)).toEqual([]);
      // The same password asks again, and this time it is queued.
      expect((await attempt(during)).status).toBe(202);
      await expect.poll(() => dogtag.pending(`CN=${during.cn}`), { interval: 1000 }).toHaveLength(1);
    });
  });

  test('the directory is down with a profile that issues at once: 503, and the same request succeeds afterwards', async () => {
    await withEstuary(AUTO, { timeout: 5 }, async () => {
      const one = await client('directory');
      await dogtag.stop('directory');
      const seen = new Set<number>();
      let answered;
      try {
        answered = await attempt(one);
      } finally {
        await dogtag.start('directory');
      }
      expect([202, 503]).toContain(answered.status);
      await expectOnce(one, await enrollPatiently(one, seen));
    });
  });
});
