/** Nodes on one PostgreSQL with wrong machine clocks compare times by the database's clock. */
import { randomBytes, X509Certificate } from 'node:crypto';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { certificatePem, Estuary } from '../support/estuary.ts';
import { call } from '../support/https.ts';
import { sharedPostgres } from '../support/postgres.ts';
import { requires } from '../support/requires.ts';
import { ROOT } from '../support/root.ts';
import { withStoreIn } from '../support/store-in-postgres.ts';

const HOUR = 3_600_000;
const key = makeKey();
const csr = (): string => onTheWire(simpleCsr(key));

describe.skipIf(!requires('postgres'))('nodes whose clocks differ from the clock of the database', () => {
  const nodes = new Map<string, Estuary>();
  const node = (name: string): Estuary => {
    const found = nodes.get(name);
    if (found === undefined) throw new Error(`no node ${name}`);
    return found;
  };

  beforeAll(async () => {
    const url = await (await sharedPostgres()).createDatabase();
    const lookupKey = randomBytes(32);
    const shifts = { exact: 0, 'an hour ahead': HOUR, 'an hour behind': -HOUR, '30 s ahead': 30_000 };
    for (const [name, shift] of Object.entries(shifts)) {
      const loader = `--import=${join(ROOT, 'test/support/shifted-clock.ts')}`;
      // A node whose clock is behind would reject the certificates of its configuration, which are new.
      const env = { NODE_OPTIONS: loader, CLOCK_SHIFT: String(shift), ...(shift < 0 ? { CLOCK_STEP: '1' } : {}) };
      nodes.set(name, await Estuary.start({ ...withStoreIn({}, url, name.replaceAll(' ', '-'), lookupKey), env }));
    }
    node('an hour behind').server.signal('SIGUSR2');
    const isNotReady = async (): Promise<void> => expect((await get('an hour behind', '/readyz')).status).toBe(503);
    await vi.waitFor(isNotReady, { timeout: 60_000, interval: 200 });
  });
  afterAll(async () => {
    for (const one of nodes.values()) await one.stop();
  });

  test.each(['an hour ahead', 'an hour behind'])('a good token is accepted by a node that is %s', async (name) => {
    const expires_at = new Date(Date.now() + HOUR / 2).toISOString();
    const { token } = await node('exact').otp({ expires_at });
    const answer = await node(name).enroll(csr(), { password: token });
    expect(answer.status).toBe(200);
    const { validFrom, validTo } = new X509Certificate(certificatePem(answer));
    expect(Date.parse(validFrom)).toBeLessThanOrEqual(Date.now());
    expect(Date.parse(validFrom)).toBeGreaterThan(Date.now() - HOUR);
    expect(Date.parse(validTo)).toBeGreaterThan(Date.now());
    const made = await node(name).otp({ expires_at });
    expect((await node('exact').enroll(csr(), { password: made.token })).status).toBe(200);
  });

  test('an expired token is rejected by a node that is an hour behind', async () => {
    const { token } = await node('exact').otp({ expires_at: new Date(Date.now() + 15_000).toISOString() });
    const rejected = async (): Promise<number> =>
      (await node('an hour behind').enroll('no CSR', { password: token })).status;
    await expect.poll(rejected, { interval: 500 }).toBe(401);
  });

  test.each(['an hour ahead', 'an hour behind'])('a lockout holds at a node that is %s', async (name) => {
    const enroll = async (at: string, password: string): Promise<string> =>
      (await node(at).enroll(csr(), { password })).text;
    const { token } = await node('exact').otp();
    await expect.poll(() => enroll('exact', 'Wrong0Wrong0Wrong0Wr')).toContain('locked out');
    expect(await enroll(name, token)).toContain('locked out');
    expect((await node(name).admin('GET', '/admin/lockouts')).json['items']).toHaveLength(1);
    expect((await node('exact').admin('DELETE', '/admin/lockouts/address:127.0.0.1')).status).toBe(204);
    expect((await node(name).enroll(csr(), { password: token })).status).toBe(200);
    await expect.poll(() => enroll(name, 'Wrong0Wrong0Wrong0Wr')).toContain('locked out');
    expect(await enroll('exact', token)).toContain('locked out');
    expect((await node('exact').admin('DELETE', '/admin/lockouts/address:127.0.0.1')).status).toBe(204);
  });

  const get = (at: string, path: string) =>
    call({
      port: node(at).server.port('admin'),
      path,
      tls: { ca: node(at).root },
      headers: { Authorization: `Bearer ${node(at).adminToken}` },
    });

  test.each([
    ['an hour ahead', 503, 3600, 40],
    ['an hour behind', 503, -3600, 40],
    ['30 s ahead', 200, 30, 40],
    ['exact', 200, 0, undefined],
  ] as const)('a node that is %s: /readyz, log and metric', async (name, status, seconds, level) => {
    const ready = await get(name, '/readyz');
    expect(ready.status).toBe(status);
    const body: unknown = JSON.parse(ready.text);
    if (status === 503) expect(body).toMatchObject({ code: 'NOT_READY', message: 'not ready: clock' });
    else expect(body).toMatchObject({ parts: { clock: seconds === 0 ? 'ok' : 'degraded' } });
    const { text } = await get(name, '/metrics');
    const skew = Number(/^estuary_clock_skew_seconds (\S+)$/m.exec(text)?.[1]);
    expect(Math.abs(skew - seconds)).toBeLessThan(2);
    const warning = (): unknown =>
      node(name)
        .server.log()
        .find(({ msg }) => String(msg).startsWith('the clocks of this node and the database differ'))?.['level'];
    await expect.poll(warning).toBe(level);
  });

  test('audit records of all nodes have the time of the database', async () => {
    const { json } = await node('exact').admin('GET', '/admin/audit?limit=1000');
    const items = json['items'] as readonly { time: string }[];
    expect(items.length).toBeGreaterThan(20);
    for (const { time } of items) expect(Math.abs(Date.parse(time) - Date.now())).toBeLessThan(HOUR / 2);
  });
});
