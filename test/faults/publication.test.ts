/** What relying parties get while the CA's key is unavailable, and the timely renewal of CRLs. */
import { afterAll, expect, test } from 'vitest';
import type { StatusSigner } from '../../src/ca/driver.ts';
import { Ca } from '../../src/ca/router.ts';
import { unavailable } from '../../src/errors.ts';
import { isListSignedBy, parseCertificateList, revokedEntries } from '../../src/pki/x509/crl.ts';
import { CrlPublisher } from '../../src/publication/crl-publisher.ts';
import { OcspResponder } from '../../src/publication/ocsp-responder.ts';
import type { Store } from '../../src/store/store.ts';
import { issueFrom } from '../http/admin/support.ts';
import { makeCa } from '../support/ca.ts';
import { temporaryFolder } from '../support/openssl.ts';
import { certify, newKey, OCSP_SIGNER } from '../support/rollover.ts';
import { fixture, INTERVAL, log, SUCCESSFUL, TRY_LATER } from '../publication/support.ts';
import { ocspRequest } from '../support/ocsp.ts';
import { openFileCa } from '../support/own-ca.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());

test('a list is signed once for however many ask, and anew when half of its time has passed', async () => {
  const { ca, signer, clock, key, publisher } = await fixture(folder);
  const lists = await Promise.all(Array.from({ length: 5 }, () => publisher.current(ca, signer)));
  expect(new Set(lists.map(({ number }) => number))).toEqual(new Set([1]));
  clock.now += (INTERVAL / 2 - 2) * 1000;
  expect((await publisher.current(ca, signer)).number).toBe(1);
  clock.now += 2000;
  expect((await publisher.current(ca, signer)).number).toBe(2);
  expect(key.used).toBe(2);
});

test('a second process takes the list of the first from the store', async () => {
  const { store, ca, signer, clock, key, publisher } = await fixture(folder);
  const first = await publisher.current(ca, signer);
  const other = new CrlPublisher({ store, cas: () => [ca], interval: INTERVAL, log, now: () => clock.now });
  expect(await other.current(ca, signer)).toEqual(first);
  expect(key.used).toBe(1);
});

test('RFC 5280 §5.2.3: a process that was slower with a lower number gives out the later list', async () => {
  const { store, ca, signer, clock, publisher } = await fixture(folder);
  const [begun, slow] = [Promise.withResolvers<undefined>(), Promise.withResolvers<undefined>()];
  const slowly: StatusSigner = {
    ...signer,
    sign: async (statement) => {
      begun.resolve(undefined);
      await slow.promise;
      return signer.sign(statement);
    },
  };
  const first = publisher.current(ca, slowly);
  await begun.promise;
  const other = new CrlPublisher({ store, cas: () => [ca], interval: INTERVAL, log, now: () => clock.now });
  const later = await other.current(ca, signer);
  slow.resolve(undefined);
  expect(later.number).toBe(2);
  expect(await first).toEqual(later);
  expect(await publisher.current(ca, signer)).toEqual(later);
});

test('a list of another key under the same label is not given out', async () => {
  const { store, ca, signer, clock, publisher } = await fixture(folder);
  await publisher.current(ca, signer);
  const made = makeCa(folder.file, 'successor', { kind: 'ec:P-384' });
  const driver = await openFileCa(
    {
      label: 'devices',
      certificate: made.certificate,
      chain: made.root,
      profile: ca.profile,
      file: { private_key: made.privateKey },
    },
    { now: () => clock.now },
  );
  const successor = new Ca(ca.config, driver);
  const next = new CrlPublisher({ store, cas: () => [successor], interval: INTERVAL, log, now: () => clock.now });
  const list = await next.current(successor, driver.statusSigner);
  expect(list.number).toBe(2);
  expect(await isListSignedBy(parseCertificateList(list.der), successor.certificate.publicKey)).toBe(true);
  // Where a reload has brought the new key, the publisher is the same.
  const same = await publisher.current(successor, driver.statusSigner);
  expect(same).toEqual(list);
});

test('while the key is away the old list is given out until it ends, and 503 afterwards; then it recovers', async () => {
  const { ca, signer, clock, key, publisher } = await fixture(folder);
  const list = await publisher.current(ca, signer);
  key.works = false;
  clock.now += (INTERVAL - 2) * 1000;
  expect(await publisher.current(ca, signer)).toEqual(list);
  clock.now += 3000;
  await expect(publisher.current(ca, signer)).rejects.toMatchObject({ status: 503 });
  key.works = true;
  expect((await publisher.current(ca, signer)).number).toBeGreaterThan(list.number);
});

test('while the store is away the list is given out until it ends, and 503 afterwards', async () => {
  const { store, ca, signer, clock } = await fixture(folder);
  const state = { isAway: false };
  const crlHead = (label: string) =>
    state.isAway ? Promise.reject(unavailable('STORE_UNAVAILABLE', 'away')) : store.crlHead(label);
  const options = { cas: () => [ca], interval: INTERVAL, log, now: () => clock.now };
  const publisher = new CrlPublisher({ ...options, store: Object.assign(Object.create(store), { crlHead }) as Store });
  const list = await publisher.current(ca, signer);
  state.isAway = true;
  clock.now += (INTERVAL - 2) * 1000;
  expect(await publisher.current(ca, signer)).toEqual(list);
  clock.now += 3000;
  await expect(publisher.current(ca, signer)).rejects.toMatchObject({ status: 503 });
});

test('a list that could not be signed after a revocation is signed once the key is back', async () => {
  const { store, ca, signer, clock, key } = await fixture(folder);
  const options = { store, cas: () => [ca], interval: INTERVAL, afterRevocation: 10, log, now: () => clock.now };
  const publisher = new CrlPublisher(options);
  const before = await publisher.current(ca, signer);
  const { serial } = await issueFrom(ca, store, 'CN=lost');
  const revoked_at = clock.now;
  await store.revokeCertificate({ ca: ca.label, serial, revoked_at, reason: 'superseded', invalidity_date: null }, []);
  clock.now += 10_000;
  key.works = false;
  expect(await publisher.current(ca, signer)).toEqual(before);
  key.works = true;
  // Another process: what is missing in the list is in the store.
  const { der } = await new CrlPublisher(options).current(ca, signer);
  expect([...revokedEntries(parseCertificateList(der))].map(({ serialNumber }) => serialNumber)).toEqual([serial]);
});

test('RFC 5280 §3.3: an entry stays until a list signed after the expiry has had it', async () => {
  const { store, ca, signer, clock, publisher } = await fixture(folder);
  const { serial, not_after } = await issueFrom(ca, store, 'CN=lost');
  await store.revokeCertificate(
    { ca: ca.label, serial, revoked_at: clock.now, reason: 'superseded', invalidity_date: null },
    [],
  );
  const hasIt = async (): Promise<boolean> =>
    (await publisher.current(ca, signer)).der.toString('hex').includes(serial);
  expect(await hasIt()).toBe(true);
  // thisUpdate is a minute before the signing.
  clock.now = not_after + 61_000;
  expect(await hasIt(), 'the first list after the expiry').toBe(true);
  clock.now += INTERVAL * 1000;
  expect(await hasIt(), 'the one after that').toBe(false);
});

test('RFC 6960 §2.6: no response outlives the certificate of a delegated responder; the CA answers itself then', async () => {
  const { store, ca, clock } = await fixture(folder);
  const made = makeCa(folder.file, 'delegating', { kind: 'ec:P-256' });
  newKey(folder.path, 'responder');
  certify(folder.path, 'responder', {
    subject: '/CN=Responder',
    key: 'responder',
    by: 'delegating-ca',
    extensions: OCSP_SIGNER,
  });
  // Made at real time, which has gone on: by the clock so far they might not be valid yet.
  clock.now = Date.now();
  const driver = await openFileCa(
    {
      label: 'devices',
      certificate: made.certificate,
      chain: made.root,
      profile: ca.profile,
      file: { private_key: made.privateKey },
      ocsp: { certificate: folder.file('responder.pem'), private_key: folder.file('responder.key') },
    },
    { now: () => clock.now },
  );
  const delegating = new Ca(ca.config, driver);
  const { serial } = await issueFrom(delegating, store, 'CN=device');
  const certificate = driver.statusSigner.delegate?.certificate;
  if (certificate === undefined) throw new Error('no delegate');
  const responder = new OcspResponder({ store, validity: 300, log, now: () => clock.now });
  const delegated = async (): Promise<boolean> => {
    const { der } = await responder.answer(delegating, driver.statusSigner, ocspRequest(delegating, [serial]));
    expect(der.toString('hex')).toMatch(SUCCESSFUL);
    return der.includes(certificate.der);
  };
  clock.now = certificate.notBefore.getTime();
  expect(await delegated()).toBe(true);
  clock.now = certificate.notAfter.getTime() - 299_000;
  expect(await delegated()).toBe(false);
  clock.now = certificate.notBefore.getTime() - 2000;
  expect(await delegated()).toBe(false);
});

test('RFC 6960 §2.3: OCSP answers tryLater while the key is away', async () => {
  const { store, ca, signer, clock, key } = await fixture(folder);
  const responder = new OcspResponder({ store, validity: 300, log, now: () => clock.now });
  const { serial } = await issueFrom(ca, store, 'CN=device');
  const request = ocspRequest(ca, [serial]);
  key.works = false;
  expect((await responder.answer(ca, signer, request)).der.toString('hex')).toBe(TRY_LATER);
  key.works = true;
  const { der } = await responder.answer(ca, signer, request);
  expect(der.toString('hex'), 'successful').toMatch(SUCCESSFUL);
});
