/** Anonymous OCSP requests do not take the CA's key away from enrollment. */
import { randomBytes } from 'node:crypto';
import { afterAll, expect, test } from 'vitest';
import type { StatusSigner } from '../../src/ca/driver.ts';
import { parseCertificate } from '../../src/pki/x509/certificate.ts';
import { OcspResponder } from '../../src/publication/ocsp-responder.ts';
import type { Store } from '../../src/store/store.ts';
import { issueFrom } from '../http/admin/support.ts';
import { temporaryFolder } from '../support/openssl.ts';
import { fixture, log, madeUp, SUCCESSFUL, TRY_LATER, UNAUTHORIZED, type Fixture } from './support.ts';
import { ocspRequest } from '../support/ocsp.ts';
import { until } from '../support/until.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());

interface Loaded extends Fixture {
  /** Serial number of a certificate that the CA issued. */
  readonly serial: string;
  /** How often the store was asked, and has answered. */
  readonly lookups: { count: number };
  readonly responder: OcspResponder;
  /** The response in hex. */
  readonly ask: (request: Buffer, signer?: StatusSigner) => Promise<string>;
}

async function loaded(): Promise<Loaded> {
  const made = await fixture(folder);
  const { store, ca, clock } = made;
  const { serial } = await issueFrom(ca, store, 'CN=device');
  const lookups = { count: 0 };
  const counted: Pick<Store, 'getCertificates'> = {
    getCertificates: async (...args) => {
      const rows = await store.getCertificates(...args);
      lookups.count += 1;
      return rows;
    },
  };
  const responder = new OcspResponder({ store: counted, validity: 300, log, now: () => clock.now });
  const ask = async (request: Buffer, signer = made.signer): Promise<string> =>
    (await responder.answer(ca, signer, request)).der.toString('hex');
  return { ...made, serial, lookups, responder, ask };
}

const times = <T>(count: number, make: () => T): T[] => Array.from({ length: count }, make);
const tally = (answers: readonly string[]): Record<string, number> => {
  const kinds = answers.map((answer) => (SUCCESSFUL.test(answer) ? 'successful' : answer));
  return Object.fromEntries([...new Set(kinds)].map((kind) => [kind, kinds.filter((each) => each === kind).length]));
};

/** The key, as slow as the test wants it: signatures that have begun wait to be let go. */
function slow({ signer, key }: Fixture): {
  signer: StatusSigner;
  begun: () => number;
  atOnce: () => number;
  go: () => void;
} {
  const gate = Promise.withResolvers<undefined>();
  let [begun, now, most] = [0, 0, 0];
  const sign = async (statement: Buffer): Promise<Buffer> => {
    begun += 1;
    most = Math.max(most, (now += 1));
    await gate.promise;
    now -= 1;
    return signer.sign(statement);
  };
  expect(key.used).toBe(0);
  return { signer: { ...signer, sign }, begun: () => begun, atOnce: () => most, go: () => gate.resolve(undefined) };
}

test.each([
  ['one', () => [madeUp()], undefined],
  ['one, with a nonce', () => [madeUp()], randomBytes(16)],
  ['32 at once', () => times(32, madeUp), undefined],
  ['longer than any serial number', () => ['7f'.repeat(4000)], undefined],
])('made-up serial numbers (%s) are unauthorized and cost no signature', async (_, serials, nonce) => {
  const { ca, key, ask } = await loaded();
  const answers = await Promise.all(times(50, () => ask(ocspRequest(ca, serials(), nonce))));
  expect(tally(answers)).toEqual({ [UNAUTHORIZED]: 50 });
  expect(key.used).toBe(0);
});

test('so is a certificate of another issuer', async () => {
  const { ca, key, ask, serial } = await loaded();
  const [, root = Buffer.alloc(0)] = ca.driver.chain();
  expect(await ask(ocspRequest({ certificate: parseCertificate(root) }, [serial]))).toBe(UNAUTHORIZED);
  expect(key.used).toBe(0);
});

test('a response that is kept holds no more memory than its own octets', async () => {
  const { ca, signer, serial, responder } = await loaded();
  const { der } = await responder.answer(ca, signer, ocspRequest(ca, [serial]));
  expect(SUCCESSFUL.test(der.toString('hex'))).toBe(true);
  expect(der.buffer.byteLength).toBe(der.length);
});

test('one signature answers all who ask about a certificate, and a revocation is seen at once', async () => {
  const { store, ca, key, clock, serial, ask } = await loaded();
  const request = ocspRequest(ca, [serial]);
  const good = await Promise.all(times(50, () => ask(request)));
  expect(new Set(good).size).toBe(1);
  expect(key.used).toBe(1);
  const order = { ca: ca.label, serial, revoked_at: clock.now, reason: 'keyCompromise', invalidity_date: null };
  await store.revokeCertificate(order, []);
  const revoked = await Promise.all(times(50, () => ask(request)));
  expect(new Set(revoked).size).toBe(1);
  expect(revoked[0]).not.toBe(good[0]);
  expect(key.used).toBe(2);
});

test('a response says when its status was looked up, however long its signature took', async () => {
  const made = await loaded();
  const { ca, clock, serial, responder } = made;
  const asked = Math.floor(clock.now / 1000) * 1000;
  const held = slow(made);
  const answer = responder.answer(ca, held.signer, ocspRequest(ca, [serial]));
  await until('1 signatures have begun', () => held.begun() === 1);
  const second = responder.answer(ca, held.signer, ocspRequest(ca, [serial]));
  clock.now += 60_000;
  held.go();
  for (const { cacheable } of [await answer, await second]) expect(cacheable?.thisUpdate).toBe(asked);
});

test('with nonces one response at a time is signed; who finds the queue full gets the one without', async () => {
  const made = await loaded();
  const { ca, key, serial, lookups, ask } = made;
  const held = slow(made);
  const answers = times(200, () => ask(ocspRequest(ca, [serial], randomBytes(16)), held.signer));
  await until('200 lookups', () => lookups.count === 200);
  held.go();
  const distinct = new Set(await Promise.all(answers));
  expect(tally([...distinct])).toEqual({ successful: distinct.size });
  // One in hand, sixteen that waited, and one for all others.
  expect(key.used).toBe(18);
  expect(distinct.size).toBe(18);
  expect(held.atOnce()).toBe(1);
});

test('a response about several certificates waits like one with a nonce; too many are told to try later', async () => {
  const made = await loaded();
  const { ca, serial, lookups, ask } = made;
  const held = slow(made);
  const answers = times(100, () => ask(ocspRequest(ca, [serial, madeUp()]), held.signer));
  await until('200 lookups', () => lookups.count === 200);
  const plain = ask(ocspRequest(ca, [serial]), held.signer);
  held.go();
  expect(tally(await Promise.all(answers))).toEqual({ successful: 17, [TRY_LATER]: 83 });
  expect(await plain, 'at the same time').toMatch(SUCCESSFUL);
  expect(held.atOnce()).toBe(1);
});

test.each([
  [undefined, 1],
  [1, 1],
  [8, 2],
])('of %s signatures that a key makes at a time, OCSP takes %i', async (concurrency, share) => {
  const made = await loaded();
  const { store, ca, ask } = made;
  const serials = await Promise.all(times(6, async () => (await issueFrom(ca, store, 'CN=device')).serial));
  const held = slow(made);
  const answers = serials.map((serial) => ask(ocspRequest(ca, [serial]), { ...held.signer, concurrency }));
  await until('share signatures have begun', () => held.begun() === share);
  held.go();
  expect(tally(await Promise.all(answers))).toEqual({ successful: 6 });
  expect(held.atOnce()).toBe(share);
});

test('an answer that failed is not kept', async () => {
  const { ca, key, serial, ask } = await loaded();
  key.works = false;
  expect(tally(await Promise.all(times(5, () => ask(ocspRequest(ca, [serial])))))).toEqual({ [TRY_LATER]: 5 });
  key.works = true;
  expect(await ask(ocspRequest(ca, [serial]))).toMatch(SUCCESSFUL);
});
