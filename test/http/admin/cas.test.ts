import { X509Certificate } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import { Ca } from '../../../src/ca/router.ts';
import { parseCertificate } from '../../../src/pki/x509/certificate.ts';
import { CrlPublisher } from '../../../src/publication/crl-publisher.ts';
import type { Store } from '../../../src/store/store.ts';
import { issue } from '../../store/support.ts';
import { makeCa as makeOpensslCa } from '../../support/ca.ts';
import { makeCa, makeClient } from '../../support/certificates.ts';
import { fileCaConfig } from '../../support/file-ca.ts';
import { temporaryFolder } from '../../support/openssl.ts';
import { openFileCa } from '../../support/own-ca.ts';
import { adminFixture, ailingCa, DAY, failure, fileCa, issueFrom } from './support.ts';
import { ask, expectBody } from './typed.ts';

describe('GET /admin/cas', () => {
  const folder = temporaryFolder();
  let devices: Ca;
  let lab: Ca;
  beforeAll(async () => {
    devices = await fileCa(folder, 'devices', true);
    lab = await fileCa(folder, 'lab');
  });
  afterAll(() => folder.remove());

  it('shows label, default, driver, subject, not_after, days_left, health, certificate and chain', async () => {
    const api = await adminFixture({ cas: [devices, lab], start: Date.now() });
    const { call, advance } = api;
    const body = await ask(api, 'get', '/admin/cas/{label}', 200, { path: { label: 'devices' } });
    expect(body).toEqual({
      label: 'devices',
      default: true,
      driver: 'file',
      subject: 'CN=devices,O=Estuary',
      not_after: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.000Z$/) as string,
      days_left: 3649,
      health: 'ok',
      certificate: expect.stringContaining('BEGIN CERTIFICATE') as string,
      chain: [expect.anything(), expect.anything()],
      contents: [
        expect.objectContaining({ subject: 'CN=devices,O=Estuary', not_after: body.not_after, key_type: 'ec:P-256' }),
        expect.objectContaining({ issuer: body.contents[0]?.issuer }),
      ],
    });
    const chain = body.chain.map((pem) => new X509Certificate(pem));
    expect(chain[0]?.raw).toEqual(new X509Certificate(body.certificate ?? '').raw);
    expect(new Date(body.not_after ?? '')).toEqual(new Date(chain[0]?.validTo ?? ''));
    const root = chain[1];
    expect(root !== undefined && chain[0]?.checkIssued(root) && root.checkIssued(root)).toBe(true);
    advance(3650 * DAY);
    expectBody(await call('GET', '/admin/cas/devices'), { days_left: -1 });
  });

  it('lists all CAs in the order of the configuration, in pages', async () => {
    const api = await adminFixture({ cas: [devices, lab], start: Date.now() });
    const all = await ask(api, 'get', '/admin/cas', 200);
    expect(all.items.map(({ label }) => label)).toEqual(['devices', 'lab']);
    expect(all.next_cursor).toBeNull();
    const first = await ask(api, 'get', '/admin/cas', 200, { query: { limit: 1 } });
    expect(first.items).toEqual(all.items.slice(0, 1));
    const second = await ask(api, 'get', '/admin/cas', 200, { query: { limit: 1, cursor: first.next_cursor ?? '' } });
    expect(second).toEqual({ items: all.items.slice(1), next_cursor: null });
  });

  it('404 for a label that is not configured', async () => {
    const { call } = await adminFixture({ cas: [devices, lab] });
    expect(failure(await call('GET', '/admin/cas/nowhere')).statusCode).toBe(404);
  });

  it('shows a CA that is down as down, and one whose certificate is not known yet without it', async () => {
    const cas = [
      devices,
      ailingCa('throws', () => Promise.reject(new Error('HSM gone'))),
      ailingCa('weak', () => Promise.resolve({ health: 'degraded', detail: 'one replica of two' })),
    ];
    const { items } = await ask(await adminFixture({ cas, start: Date.now() }), 'get', '/admin/cas', 200);
    expect(items.map(({ label, health }) => [label, health])).toEqual([
      ['devices', 'ok'],
      ['throws', 'down'],
      ['weak', 'degraded'],
    ]);
    expect(items[1]).toMatchObject({ subject: null, not_after: null, days_left: null, certificate: null, chain: [] });
  });
});

const HOUR = 3_600_000;
const folder = temporaryFolder();
const start = Math.floor(Date.now() / 1000) * 1000;
let devices: Ca;
let lab: Ca;
beforeAll(async () => {
  devices = await fileCa(folder, 'devices', true);
  lab = await fileCa(folder, 'lab');
});
afterAll(() => folder.remove());

const publication = { enabled: true, base_url: 'http://pki.example/' };
const quiet = { info: () => undefined, error: () => undefined };

/** Signs a list that is valid for an hour. */
async function sign(ca: Ca, store: Store): Promise<void> {
  const signer = ca.driver.statusSigner;
  if (signer === undefined) throw new Error('it signs none');
  const publisher = new CrlPublisher({ store, cas: () => [ca], interval: 3600, log: quiet, now: () => start });
  await publisher.current(ca, signer);
}

describe('POST /admin/cas/{label}/crl', () => {
  test('signs a CRL that has every revocation until now, also of a hold and its end', async () => {
    const api = await adminFixture({ cas: [devices, lab], start });
    const { serial } = await issueFrom(devices, api.store, 'CN=lost');
    const hold = { ca: 'devices', serial, reason: 'certificateHold', invalidity_date: null, revoked_at: start };
    const sign = () => ask(api, 'post', '/admin/cas/{label}/crl', 200, { path: { label: 'devices' } });
    expect((await sign()).crl).toMatchObject({ number: 1, entries: 0 });
    await api.store.revokeCertificate(hold, []);
    expect((await sign()).crl).toMatchObject({ number: 2, entries: 1 });
    await api.store.releaseCertificate(hold, start, []);
    expect((await sign()).crl).toMatchObject({ number: 3, entries: 0 });
  });

  test('409 CRL_SIGNED_ELSEWHERE for a CA elsewhere, 404 for a label that does not exist', async () => {
    const api = await adminFixture({ cas: [devices, ailingCa('remote', () => Promise.resolve({ health: 'ok' }))] });
    expect(failure(await api.call('POST', '/admin/cas/remote/crl'))).toMatchObject({ code: 'CRL_SIGNED_ELSEWHERE' });
    expect(failure(await api.call('POST', '/admin/cas/nowhere/crl')).statusCode).toBe(404);
  });
});

describe('GET /admin/cas/{label}/revocation', () => {
  test('the latest CRL, its size and entries; late, and then past its end', async () => {
    const api = await adminFixture({ cas: [devices, lab], start, settings: { publication } });
    const look = () => ask(api, 'get', '/admin/cas/{label}/revocation', 200, { path: { label: 'devices' } });
    const urls = { crl: ['http://pki.example/crl/devices.crl'], ocsp: ['http://pki.example/ocsp/devices'] };
    const ocsp = { signed_by: 'ca', responder: null };
    expect(await look()).toEqual({ ca: 'devices', published_by: 'estuary', urls, crl: null, ocsp });
    const { serial } = await issueFrom(devices, api.store, 'CN=stolen');
    const revocation = { reason: 'keyCompromise', invalidity_date: null, revoked_at: start - 10_000 } as const;
    await api.store.revokeCertificate({ ca: 'devices', serial, ...revocation }, []);
    await sign(devices, api.store);
    const { crl } = await look();
    expect(crl).toEqual({
      number: 1,
      // As in the list, which is never before the newest revocation.
      this_update: new Date(start - 10_000).toISOString(),
      next_update: new Date(start + HOUR).toISOString(),
      bytes: (await api.store.getCrl('devices'))?.der.length,
      entries: 1,
      state: 'current',
    });
    api.advance(0.9 * HOUR);
    expect((await look()).crl?.state).toBe('overdue');
    api.advance(0.2 * HOUR);
    expect((await look()).crl?.state).toBe('expired');
  });

  test("a further label shows its CA's; a list of a former key does not count", async () => {
    const further = new Ca({ ...devices.config, label: 'tablets', default: false }, devices.driver, {
      issuer: devices,
    });
    const api = await adminFixture({ cas: [devices, further], start, settings: { publication } });
    await sign(devices, api.store);
    const { ca, crl } = await ask(api, 'get', '/admin/cas/{label}/revocation', 200, { path: { label: 'tablets' } });
    expect([ca, crl?.number, crl?.entries]).toEqual(['devices', 1, 0]);

    const { certificate, root, privateKey } = makeOpensslCa(folder.file, 'renewed', { kind: 'ec:P-384' });
    const config = fileCaConfig('devices', true, { certificate, chain: root, key: privateKey });
    const renewed = new Ca(config, await openFileCa(config, { now: Date.now }));
    const after = await adminFixture({
      cas: [renewed],
      start,
      settings: { publication },
      wrapStore: (store) => ({
        ...store,
        crlHead: (...args) => api.store.crlHead(...args),
        getCrl: (...args) => api.store.getCrl(...args),
      }),
    });
    const path = { label: 'devices' };
    expect((await ask(after, 'get', '/admin/cas/{label}/revocation', 200, { path })).crl).toBeNull();
  });

  test('nobody publishes; lists that are asked for are there none the less, and never late', async () => {
    const api = await adminFixture({ cas: [devices], start });
    await sign(devices, api.store);
    api.advance(0.9 * HOUR);
    const shown = await ask(api, 'get', '/admin/cas/{label}/revocation', 200, { path: { label: 'devices' } });
    expect(shown).toMatchObject({ published_by: null, urls: { crl: [], ocsp: [] }, ocsp: null });
    expect(shown.crl).toMatchObject({ number: 1, state: 'current' });
  });

  test('a remote CA publishes its own', async () => {
    const cas = [ailingCa('remote', () => Promise.resolve({ health: 'ok' }), [], true)];
    const api = await adminFixture({ cas, settings: { publication } });
    expect(await ask(api, 'get', '/admin/cas/{label}/revocation', 200, { path: { label: 'remote' } })).toEqual({
      ca: 'remote',
      published_by: 'ca',
      urls: { crl: [], ocsp: [] },
      crl: null,
      ocsp: null,
    });
    expect(failure(await api.call('GET', '/admin/cas/nowhere/revocation')).code).toBe('UNKNOWN_LABEL');
  });

  test('the OCSP responder that the CA has delegated, and after its end the CA', async () => {
    const { der } = await makeClient('CN=OCSP,O=Estuary', await makeCa('CN=Any'));
    const certificate = parseCertificate(der);
    const signer = devices.driver.statusSigner;
    if (signer === undefined) throw new Error('it signs none');
    const delegate = { certificate, sign: () => Promise.reject(new Error('not asked')) };
    const chain = devices.driver.chain();
    const { driver } = ailingCa('devices', () => Promise.resolve({ health: 'ok' }), chain, true);
    const ca = new Ca(devices.config, { ...driver, statusSigner: { ...signer, delegate } });
    const [from, until] = [certificate.notBefore.getTime(), certificate.notAfter.getTime()];
    const api = await adminFixture({ cas: [ca], start: from, settings: { publication } });
    const ocsp = async () =>
      (await ask(api, 'get', '/admin/cas/{label}/revocation', 200, { path: { label: 'devices' } })).ocsp;
    expect(await ocsp()).toEqual({
      signed_by: 'responder',
      responder: {
        subject: 'CN=OCSP,O=Estuary',
        serial: certificate.serialNumber,
        not_after: new Date(until).toISOString(),
        days_left: Math.floor((until - from) / DAY),
      },
    });
    api.advance(until - from + 1);
    expect(await ocsp()).toMatchObject({ signed_by: 'ca', responder: { days_left: -1 } });
  });
});

describe('GET /admin/certificates/{serial}/chain', () => {
  test('whose key signed it first, up to the root', async () => {
    const api = await adminFixture({ cas: [devices, lab], start });
    const row = await issueFrom(devices, api.store, 'CN=press-1');
    const { chain } = await ask(api, 'get', '/admin/certificates/{serial}/chain', 200, {
      path: { serial: row.serial },
    });
    const [issuer, root, ...more] = chain.map((pem) => new X509Certificate(pem));
    expect([issuer?.raw, root?.raw, more]).toEqual([...devices.driver.chain(), []]);
    expect(issuer !== undefined && new X509Certificate(row.der).verify(issuer.publicKey)).toBe(true);
  });

  test('nothing of a CA that is no longer configured, or where the certificate itself is not known', async () => {
    const api = await adminFixture({ cas: [new Ca({ ...lab.config, default: true }, lab.driver)], start });
    const gone = await issueFrom(devices, api.store, 'CN=press-1');
    const lost = await issue(api.store, { ca: 'lab', der: Buffer.alloc(0) });
    for (const { serial } of [gone, lost])
      expect(await ask(api, 'get', '/admin/certificates/{serial}/chain', 200, { path: { serial } })).toEqual({
        chain: [],
        contents: [],
      });
    expect(failure(await api.call('GET', '/admin/certificates/00ff/chain')).code).toBe('CERTIFICATE_NOT_FOUND');
  });
});
