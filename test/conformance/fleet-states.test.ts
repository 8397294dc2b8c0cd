/** Who is about to lose its certificate: what the server sees of certificates over real TLS, and the states that follow. */
import { X509Certificate } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { postCmc, requestBy, tcr } from '../support/cmc.ts';
import { buildCsr, challengePassword, commonName, makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { caSection, type ClientIdentity, Estuary, section } from '../support/estuary.ts';
import { requestsOf } from '../support/queued-requests.ts';
import { until } from '../support/until.ts';

const key = makeKey();
let estuary: Estuary;
beforeAll(async () => {
  estuary = await Estuary.start({
    configure: (config) =>
      Object.assign(caSection(config), {
        renewal: { start: 0.5, end: 0.75, retry_after: 600 },
      }),
  });
});
afterAll(() => estuary.stop());

type Holder = Readonly<Record<string, string | null>>;

const holders = async (query = ''): Promise<readonly Holder[]> => {
  const { status, json } = await estuary.admin('GET', `/admin/fleet${query}`);
  expect(status, (await estuary.outputSoFar()).slice(-2000)).toBe(200);
  return (json as { items: readonly Holder[] }).items;
};
const holderOf = async (name: string): Promise<Holder | undefined> =>
  (await holders(`?subject=${encodeURIComponent(`CN=${name}`)}`))[0];
const reloaded = async (configure: Parameters<Estuary['reconfigure']>[0]): Promise<void> => {
  estuary.reconfigure(configure);
  expect((await estuary.admin('POST', '/admin/reload')).status).toBe(200);
};
const renew = (who: ClientIdentity, name: string) =>
  estuary.enroll(onTheWire(simpleCsr(key, name)), { path: 'simplereenroll', client: who });

test('a certificate is first used in any operation, and its holder fails after a rejected renewal', async () => {
  const who = await estuary.enrolled(key, 'press-1');
  expect(await holderOf('press-1')).toMatchObject({
    ...{ state: 'ok', ca: 'devices', subject: 'CN=press-1', device: null, first_used_at: null, last_used_at: null },
    ...{ tls_version: 'TLSv1.3', last_code: null, renewal_info_at: null },
  });
  const cacerts = await estuary.est('devices/cacerts', { client: who });
  expect(cacerts.status).toBe(200);
  const used = await holderOf('press-1');
  expect(used?.['first_used_at']).toBe(used?.['last_used_at']);
  expect(Date.parse(used?.['first_used_at'] ?? '')).toBeLessThanOrEqual(Date.now());

  expect((await renew(who, 'press-2')).status).toBe(403);
  expect(await holderOf('press-1')).toMatchObject({ state: 'failing', last_code: 'SUBJECT_MISMATCH' });
  expect((await renew(who, 'press-1')).status).toBe(200);
  expect(await holderOf('press-1')).toMatchObject({ state: 'ok', first_used_at: null });
});

test('another enrollment with the certificate for the same names is a renewal, too; for other names it is not', async () => {
  const withChallenge = (name: string) =>
    buildCsr(key, { subject: commonName(name), attributes: [challengePassword('wrong')] });
  const who = await estuary.enrolled(key, 'mixer-1');
  const send = {
    simpleenroll: (name: string) => estuary.enroll(onTheWire(withChallenge(name)), { client: who }),
    fullcmc: async (name: string) =>
      postCmc(estuary, await requestBy(who, { reqSequence: [tcr(1, withChallenge(name))] }), who),
  };
  for (const operation of ['simpleenroll', 'fullcmc'] as const) {
    expect((await send[operation]('mixer-2')).status, operation).toBeGreaterThanOrEqual(400);
    expect(await holderOf('mixer-1'), operation).toMatchObject({ state: 'ok' });
    expect((await send[operation]('mixer-1')).status, operation).toBe(400);
    const failing = { state: 'failing', last_code: 'POP_LINKING_MISMATCH' };
    expect(await holderOf('mixer-1'), operation).toMatchObject(failing);
    const { json } = await estuary.admin('GET', '/admin/audit?type=certificate.denied&limit=1&order=desc');
    expect(json['items'], operation).toMatchObject([{ operation, renewal: true }]);
    expect((await renew(who, 'mixer-1')).status).toBe(200);
  }
});

test('the summary counts what the list has, and the table has its columns', async () => {
  const { json } = await estuary.admin('GET', '/admin/fleet/summary');
  const all = await holders();
  expect(json).toMatchObject({ labels: { devices: { ok: all.length, failing: 0, never: 0 } } });
  const refused = await estuary.admin('GET', '/admin/fleet?state=lost');
  expect(refused.status).toBe(400);
});

test('a device is never seen until it has a certificate; a rejected password is its failure', async () => {
  await estuary.admin('POST', '/admin/devices', { id: 'device' });
  expect(await holders('?device=device')).toMatchObject([{ state: 'never', ca: null, serial: null, sans: null }]);
  expect(await holders('?device=device&seen_before=2026-01-01T00:00:00Z')).toHaveLength(1);
  await estuary.enroll(onTheWire(simpleCsr(key, 'device')), { password: 'x'.repeat(40) });
  const failed = () => holders('?device=device');
  await until('the failure is known', async () => (await failed())[0]?.['last_code'] === 'OTP_INVALID');
});

test('a queued renewal waits, its decision counts, and its polls do not', async () => {
  const who = await estuary.enrolled(key, 'queued-1');
  await reloaded((config) => void (caSection(config)['approval'] = 'manual'));
  const csr = onTheWire(simpleCsr(makeKey(), 'queued-1'));
  const send = async (body = csr) => (await estuary.enroll(body, { path: 'simplereenroll', client: who })).status;
  expect(await send()).toBe(202);
  const waiting = await holderOf('queued-1');
  expect(waiting).toMatchObject({ state: 'waiting', last_code: null });
  expect(await send()).toBe(202);
  expect(await holderOf('queued-1')).toMatchObject({ state: 'waiting', since: waiting?.['since'] });
  const decide = async (decision: string, body?: object) =>
    estuary.admin(
      'POST',
      `/admin/requests/${String((await requestsOf(estuary, 'queued-1')).at(-1)?.['id'])}/${decision}`,
      body,
    );
  expect((await decide('reject', { reason: 'sold' })).status).toBe(200);
  const failing = await holderOf('queued-1');
  expect(failing).toMatchObject({ state: 'failing', last_code: 'REQUEST_REJECTED', last_message: 'sold' });
  expect(await send()).toBe(403);
  const { since, last_failed_at } = failing ?? {};
  expect(await holderOf('queued-1')).toMatchObject({ state: 'failing', since, last_failed_at });
  const other = onTheWire(simpleCsr(makeKey(), 'queued-1'));
  expect(await send(other)).toBe(202);
  expect(await holderOf('queued-1')).toMatchObject({ state: 'failing', since });
  expect((await decide('approve')).status).toBe(200);
  expect(await send(other)).toBe(200);
  expect(await holderOf('queued-1')).toMatchObject({ state: 'ok' });
  expect(await send()).toBe(403);
  expect(await holderOf('queued-1')).toMatchObject({ state: 'ok' });
  await reloaded((config) => void (caSection(config)['approval'] = 'auto'));
});

test('the former certificate is failing again once the one that was issued after the rejection is revoked', async () => {
  const who = await estuary.enrolled(key, 'twice-1');
  expect((await renew(who, 'twice-2')).status).toBe(403);
  const failing = await holderOf('twice-1');
  const next = await estuary.enrolled(key, 'twice-1');
  expect(await holderOf('twice-1')).toMatchObject({ state: 'ok' });
  const { serialNumber } = new X509Certificate(next.cert);
  expect((await estuary.admin('POST', `/admin/certificates/${serialNumber}/revoke`, {})).status).toBe(200);
  expect(await holderOf('twice-1')).toEqual(failing);
});

test('a certificate in cmc.ra_certificates has no holder, from the reload on', async () => {
  const { cert } = await estuary.enrolled(key, 'authority');
  expect(await holderOf('authority')).toMatchObject({ state: 'ok' });
  await reloaded((config, dir) => {
    writeFileSync(join(dir, 'authority.pem'), cert);
    section(config, 'cmc')['ra_certificates'] = ['authority.pem'];
  });
  await until('it is in no list', async () => (await holderOf('authority')) === undefined);
});
