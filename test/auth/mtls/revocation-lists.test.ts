import { writeFileSync } from 'node:fs';

import { afterAll, describe, expect, test } from 'vitest';

import type { ClientTrust } from '../../../src/auth/mtls/client-trust.ts';
import {
  contextConstructed,
  contextPrimitive,
  explicit,
  NULL,
  oid,
  printableString,
  sequence,
  tlv,
  integer,
  implicitPrimitive,
} from '../../../src/pki/der/der.ts';
import { encodeCrlDistributionPoints, type Extension } from '../../../src/pki/x509/extensions.ts';
import { OID } from '../../../src/pki/der/oids.ts';
import { encodePem } from '../../../src/pki/der/pem.ts';
import { parseCertificate } from '../../../src/pki/x509/certificate.ts';
import { parseDistinguishedName } from '../../../src/pki/x509/name.ts';
import {
  basicConstraints,
  extension,
  keyUsage,
  makeCa,
  makeCertificate,
  makeClient,
  type Issuer,
} from '../../support/certificates.ts';
import { openssl, temporaryFolder } from '../../support/openssl.ts';
import { CLIENT_USAGES, NOW, UNKNOWN } from '../chain.ts';
import { clientTrust, type CrlFile } from '../../support/client-trust.ts';
import { crl, DAY, good, intermediate, pem, refusal, root } from './crl-support.ts';

const folder = temporaryFolder();
afterAll(folder.remove);

const revoked = await makeClient('CN=revoked', root, { serial: '0badca11' });

const impostor = await makeCa('CN=Root', { slot: 'impostor' });
const unknown = await makeCa('CN=Nobody');
const noCrlSign = await makeCertificate({
  subject: 'CN=No CRL',
  extensions: [basicConstraints(true), keyUsage('keyCertSign')],
});

describe('RFC 5280 §6.3: CRLs of client CAs', () => {
  test('a listed certificate is refused, another is not', async () => {
    const trust = await clientTrust({
      trustAnchors: pem(root),
      crls: [await crl(root, { revoked: ['0badca11', '77'] })],
    });
    expect(await refusal(trust, revoked)).toBe('client certificate revoked');
    expect(await refusal(trust, good)).toBeUndefined();
  });

  test('OpenSSL reads the same of the same list', async () => {
    writeFileSync(folder.file('root.pem'), pem(root));
    writeFileSync(folder.file('list.pem'), encodePem('X509 CRL', (await crl(root, { revoked: ['0badca11'] })).der));
    const verify = (leaf: Issuer): string => {
      writeFileSync(folder.file('leaf.pem'), pem(leaf));
      const files = ['-trusted', folder.file('root.pem'), '-CRLfile', folder.file('list.pem'), folder.file('leaf.pem')];
      return openssl(['verify', '-crl_check', '-attime', String(NOW / 1000), ...files]).toString();
    };
    expect(verify(good)).toContain('OK');
    expect(() => verify(revoked)).toThrow('certificate revoked');
  });

  test('an expired list, and one from the future, refuse every certificate of their issuer and no other', async () => {
    const other = await makeCa('CN=Other Root');
    const trustAnchors = pem(root, other);
    for (const times of [{ nextUpdate: NOW }, { thisUpdate: NOW + 1000 }]) {
      const trust = await clientTrust({ trustAnchors, crls: [await crl(root, times)] });
      expect(await refusal(trust, good)).toBe('client certificate revocation status unknown');
      expect(await refusal(trust, await makeClient('CN=a', other))).toBeUndefined();
    }
  });

  test('freshness is judged at every request, from one snapshot', async () => {
    const trust = await clientTrust({ trustAnchors: pem(root), crls: [await crl(root)] });
    expect(await refusal(trust, good)).toBeUndefined();
    expect(await refusal(trust, good, NOW + DAY)).toBe('client certificate revocation status unknown');
  });

  test('of two lists the newer counts', async () => {
    const older = await crl(root, { thisUpdate: NOW - 2 * DAY, revoked: ['600d'] });
    const newer = await crl(root, { thisUpdate: NOW - DAY, revoked: ['0badca11'] });
    for (const crls of [
      [older, newer],
      [newer, older],
    ]) {
      const trust = await clientTrust({ trustAnchors: pem(root), crls });
      expect(await refusal(trust, good)).toBeUndefined();
      expect(await refusal(trust, revoked)).toBe('client certificate revoked');
    }
  });

  test('a list counts from its thisUpdate; of two lists of one moment the first counts', async () => {
    const lists = await Promise.all(
      [['0badca11'], ['600d']].map((all) => crl(root, { thisUpdate: NOW, revoked: all })),
    );
    const trust = await clientTrust({ trustAnchors: pem(root), crls: lists });
    expect(await refusal(trust, good)).toBeUndefined();
    expect(await refusal(trust, revoked)).toBe('client certificate revoked');
  });

  test('of two CAs with one name, only the list of the same key speaks for a certificate', async () => {
    const lists = [await crl(root), await crl(impostor, { revoked: ['600d'] })];
    const trust = await clientTrust({ trustAnchors: pem(root, impostor), crls: lists });
    expect(await refusal(trust, good)).toBeUndefined();
    expect(await refusal(trust, await makeClient('CN=good', impostor, { serial: '600d' }))).toBe(
      'client certificate revoked',
    );
  });

  test('extensions that are not critical, and a critical reason, leave a list valid', async () => {
    const spec = {
      revoked: ['0badca11'],
      extensions: [extension('1.2.3.4', false, NULL)],
      entryExtensions: [extension('1.2.3.4', false, NULL), extension(OID.cRLReason, true, tlv(10, Buffer.of(1)))],
    };
    const trust = await clientTrust({ trustAnchors: pem(root), crls: [await crl(root, spec)] });
    expect(await refusal(trust, revoked)).toBe('client certificate revoked');
  });

  test('RFC 5280 §7.1: a list with its issuer in another string type, or NULL in its algorithm, is read', async () => {
    const printable = `CN=#${printableString('Smith & Sons').toString('hex')}`;
    for (const issuerName of [printable, 'CN=Smith & Sons']) {
      const ca = await makeCa(printable, { slot: 'smith' });
      const algorithmDer = sequence(oid(OID.ecdsaWithSHA256), NULL);
      const list = await crl(ca, { issuerName, algorithmDer, revoked: ['0badca11'] });
      const trust = await clientTrust({ trustAnchors: pem(ca), crls: [list] });
      const leaf = (serial: string) => makeClient('CN=a', ca, { serial, algorithmDer });
      expect(await refusal(trust, await leaf('0badca11'))).toBe('client certificate revoked');
      expect(await refusal(trust, await leaf('01'))).toBeUndefined();
    }
  });

  test('a revoked intermediate takes everything below with it', async () => {
    const trust = await clientTrust({
      trustAnchors: pem(root),
      intermediates: [intermediate.der],
      crls: [await crl(root, { revoked: ['0c0a'] })],
    });
    expect(await refusal(trust, await makeClient('CN=a', intermediate))).toBe('client certificate issuer revoked');
  });

  test("a list under the CA's new key speaks for certificates of the old one", async () => {
    const renewed = await makeCa('CN=Root', { slot: 'new key' });
    const trust = await clientTrust({
      trustAnchors: pem(root, renewed),
      crls: [await crl(renewed, { revoked: ['0badca11'] })],
    });
    expect(await refusal(trust, revoked)).toBe('client certificate revoked');
    expect(await refusal(trust, good)).toBeUndefined();
  });

  const scope = (...fields: Buffer[]): Extension => extension(OID.issuingDistributionPoint, true, sequence(...fields));
  const flag = (n: number): Buffer => implicitPrimitive(n, Buffer.of(0xff));
  const point = (url: string): Buffer =>
    tlv(contextConstructed(0), tlv(contextConstructed(0), tlv(contextPrimitive(6), Buffer.from(url))));

  test('RFC 5280 §5.2.5: a list speaks only of what its issuingDistributionPoint covers', async () => {
    const one = 'http://crl.example/1.crl';
    const partition = await crl(root, { extensions: [scope(point(one))], revoked: ['0badca11'] });
    const trust = await clientTrust({ trustAnchors: pem(root), crls: [partition] });
    const leaf = (url: string, serial: string): Promise<Issuer> =>
      makeClient('CN=a', root, {
        serial,
        extensions: [...CLIENT_USAGES, extension(OID.cRLDistributionPoints, false, encodeCrlDistributionPoints([url]))],
      });
    expect(await refusal(trust, await leaf(one, '01'))).toBeUndefined();
    expect(await refusal(trust, await leaf(one, '0badca11'))).toBe('client certificate revoked');
    expect(await refusal(trust, await leaf('http://crl.example/2.crl', '02'))).toBe(
      'client certificate revocation status unknown',
    );
    expect(await refusal(trust, good)).toBe('client certificate revocation status unknown');
    const malformed = await makeClient('CN=a', root, {
      extensions: [...CLIENT_USAGES, extension(OID.cRLDistributionPoints, false, NULL)],
    });
    expect(await refusal(trust, malformed)).toBe('client certificate revocation status unknown');
  });

  test('a list for CAs only is no list for end entities', async () => {
    const trust = await clientTrust({
      trustAnchors: pem(root),
      intermediates: [intermediate.der],
      crls: [await crl(root, { extensions: [scope(flag(2))] })],
    });
    expect(await refusal(trust, await makeClient('CN=a', intermediate))).toBeUndefined();
    expect(await refusal(trust, good)).toBe('client certificate revocation status unknown');
  });

  test('one name of a distribution point suffices, and every list that covers the certificate must be fresh', async () => {
    const [one, two] = ['http://crl.example/1.crl', 'http://crl.example/2.crl'];
    const names = [one, two].map((url) => tlv(contextPrimitive(6), Buffer.from(url)));
    const both = scope(tlv(contextConstructed(0), tlv(contextConstructed(0), ...names)));
    const leaf = await makeClient('CN=a', root, {
      extensions: [...CLIENT_USAGES, extension(OID.cRLDistributionPoints, false, encodeCrlDistributionPoints([one]))],
    });
    const partition = await crl(root, { extensions: [both] });
    expect(await refusal(await clientTrust({ trustAnchors: pem(root), crls: [partition] }), leaf)).toBeUndefined();
    const crls = [partition, await crl(root, { nextUpdate: NOW })];
    expect(await refusal(await clientTrust({ trustAnchors: pem(root), crls }), leaf)).toBe(
      'client certificate revocation status unknown',
    );
  });

  test('a list for end entities only is no list for CAs', async () => {
    const users = await crl(root, { extensions: [scope(flag(1))] });
    const trust = await clientTrust({
      trustAnchors: pem(root),
      intermediates: [intermediate.der],
      crls: [users],
    });
    expect(await refusal(trust, good)).toBeUndefined();
    expect(await refusal(trust, await makeClient('CN=a', intermediate))).toBe(
      'client certificate revocation status unknown',
    );
  });

  test("a revoked signer's list vouches for nobody, and what it lists stays revoked", async () => {
    const crlKey = await makeCa('CN=Intermediate', { issuer: root, slot: 'CRL key', serial: '0c21' });
    const mine = await crl(crlKey, { revoked: ['0badca11'] });
    const inputs = { trustAnchors: pem(root), intermediates: [intermediate.der, crlKey.der] };
    const before = await clientTrust({ ...inputs, crls: [await crl(root), mine] });
    const after = await clientTrust({ ...inputs, crls: [await crl(root, { revoked: ['0c21'] }), mine] });
    const fine = await makeClient('CN=fine', intermediate, { serial: '600d' });
    const listed = await makeClient('CN=listed', intermediate, { serial: '0badca11' });
    expect(await refusal(before, fine)).toBeUndefined();
    expect(await refusal(before, listed)).toBe('client certificate revoked');
    expect(await refusal(after, fine)).toBe('client certificate revocation status unknown');
    expect(await refusal(after, listed)).toBe('client certificate revoked');
    const other = await clientTrust({
      ...inputs,
      crls: [await crl(root, { revoked: ['0c21'] }), mine, await crl(intermediate)],
    });
    expect(await refusal(other, fine)).toBeUndefined();
  });

  test("a signer below a revoked CA vouches for nobody; the CA's revocation is what the client is told", async () => {
    const inputs = { trustAnchors: pem(root), intermediates: [intermediate.der] };
    const fine = await makeClient('CN=fine', intermediate);
    const crls = [await crl(root, { revoked: ['0c0a'] }), await crl(intermediate)];
    const trust = await clientTrust({ ...inputs, crls });
    expect(await refusal(trust, fine)).toBe('client certificate issuer revoked');
  });

  test('a signer is valid while one of its certificates is', async () => {
    const below = await makeCa('CN=Below', { issuer: intermediate });
    const crossed = await makeCa('CN=Below', { issuer: root });
    const leaf = parseCertificate((await makeClient('CN=a', below)).der);
    const crls = [await crl(root, { revoked: ['0c0a'] }), await crl(below)];
    const status = async (...helpers: Issuer[]): Promise<string> => {
      const intermediates = [intermediate, ...helpers].map(({ der }) => der);
      const trust = await clientTrust({ trustAnchors: pem(root), intermediates, crls });
      return trust.revocation.status(leaf, parseCertificate(below.der), NOW);
    };
    expect(await status(below)).toBe('unknown');
    expect(await status(below, crossed)).toBe('good');
  });

  test.each([
    ['-1', Buffer.of(0xff), '255', Buffer.of(0, 0xff)],
    ['-128', Buffer.of(0x80), '128', Buffer.of(0, 0x80)],
    ['-255', Buffer.of(0xff, 0x01), '1', Buffer.of(0x01)],
  ])('the serial number %s is not %s (PKITS 4.4.14)', async (_, negative, __, positive) => {
    const numbered = (serialDer: Buffer): Promise<Issuer> => makeClient('CN=n', root, { serialDer: tlv(2, serialDer) });
    const trust = async (revokedDer: Buffer): Promise<ClientTrust> =>
      clientTrust({ trustAnchors: pem(root), crls: [await crl(root, { revokedDer: [tlv(2, revokedDer)] })] });
    expect(await refusal(await trust(negative), await numbered(negative))).toBe('client certificate revoked');
    expect(await refusal(await trust(positive), await numbered(positive))).toBe('client certificate revoked');
    expect(await refusal(await trust(negative), await numbered(positive))).toBeUndefined();
    expect(await refusal(await trust(positive), await numbered(negative))).toBeUndefined();
  });

  test('a list of the same key that does not cover the certificate leaves room for one that does (PKITS 4.5.4)', async () => {
    const renewed = await makeCa('CN=Root', { slot: 'new key' });
    const elsewhere = await crl(root, { extensions: [scope(point('http://crl.example/cas.crl'))] });
    const trust = await clientTrust({
      trustAnchors: pem(root, renewed),
      crls: [elsewhere, await crl(renewed, { revoked: ['0badca11'] })],
    });
    expect(await refusal(trust, good)).toBeUndefined();
    expect(await refusal(trust, revoked)).toBe('client certificate revoked');
  });

  test('name constraints do not hold for a self-issued helper (PKITS 4.13.19)', async () => {
    const constraint = extension(
      OID.nameConstraints,
      true,
      sequence(tlv(contextConstructed(0), sequence(explicit(4, parseDistinguishedName('O=Within').der)))),
    );
    const constrained = await makeCa('CN=Old Key', { extensions: [constraint] });
    const selfIssued = await makeCa('CN=Old Key', { issuer: constrained, slot: 'rolled over' });
    const trust = await clientTrust({ trustAnchors: pem(constrained), intermediates: [selfIssued.der] });
    expect(await refusal(trust, await makeClient('CN=a,O=Within', selfIssued))).toBeUndefined();
    expect(await refusal(trust, await makeClient('CN=a,O=Outside', selfIssued))).toBe(UNKNOWN);
  });

  test.each<[string, Promise<CrlFile>, string]>([
    [
      'a delta CRL',
      crl(root, { extensions: [extension(OID.deltaCRLIndicator, true, integer(1))] }),
      'delta CRLs are not supported',
    ],
    ['an indirect CRL', crl(root, { extensions: [scope(flag(4))] }), 'indirect CRLs are not supported'],
    [
      'a list for some reasons',
      crl(root, { extensions: [scope(tlv(contextPrimitive(3), Buffer.from([6, 0x40])))] }),
      'only some revocation reasons',
    ],
    ['a list of attribute certificates', crl(root, { extensions: [scope(flag(5))] }), 'attribute certificates'],
    [
      'an unknown critical extension',
      crl(root, { extensions: [extension('1.2.3.4', true, NULL)] }),
      'critical extension 1.2.3.4',
    ],
    [
      'an unknown critical entry extension',
      crl(root, { revoked: ['01'], entryExtensions: [extension('1.2.3.4', true, NULL)] }),
      'critical extension 1.2.3.4',
    ],
    ['a list without nextUpdate', crl(root, { nextUpdate: null }), 'no nextUpdate'],
    ['a list of an unknown issuer', crl(unknown), 'issuer is neither'],
    ['a list of somebody else under the name', crl(impostor), 'verifies its signature'],
    ['a wrong signature', crl(root, { sign: () => Buffer.alloc(70) }), 'verifies its signature'],
    ['an issuer without cRLSign', crl(noCrlSign), 'verifies its signature'],
  ])('%s is a problem that names the file', async (_, source, reason) => {
    const { revocation } = await clientTrust({ trustAnchors: pem(root, noCrlSign), crls: [await source] });
    expect(revocation.problems).toEqual([expect.stringMatching(new RegExp(`^test\\.crl: .*${reason}`)) as string]);
  });

  test('a list of 20,000 entries is read whole', async () => {
    const serials = Array.from({ length: 20_000 }, (_, i) => (i + 0x100000).toString(16).padStart(8, '0'));
    const trust = await clientTrust({ trustAnchors: pem(root), crls: [await crl(root, { revoked: serials })] });
    const last = await makeClient('CN=a', root, { serial: serials.at(-1) ?? '' });
    expect(await refusal(trust, last)).toBe('client certificate revoked');
  });
});

describe('one fault costs one issuer', async () => {
  const other = await makeCa('CN=Other Root');
  const third = await makeCa('CN=Third Root');
  const trustAnchors = pem(root, other, third);
  const [ofOther, ofThird] = [await makeClient('CN=a', other), await makeClient('CN=a', third)];
  const damaged = await crl(root, { sign: () => Buffer.alloc(70) });
  const states = async (trust: ClientTrust) =>
    Promise.all([good, ofOther, ofThird].map(async (leaf) => (await refusal(trust, leaf)) ?? 'accepted'));
  const reload = (before: ClientTrust, crls: readonly CrlFile[], more = {}) =>
    clientTrust({ trustAnchors, crls, before: before.revocation, ...more });
  const STATUS_UNKNOWN = 'client certificate revocation status unknown';

  test('at the start, anchors without a valid list fail while a list cannot be used', async () => {
    const started = await clientTrust({ trustAnchors, crls: [damaged, await crl(other)] });
    expect(await states(started)).toEqual([STATUS_UNKNOWN, 'accepted', STATUS_UNKNOWN]);
    expect(started.revocation.states(NOW).flatMap(({ problem = [] }) => problem)).toEqual([
      'there is no CRL of "CN=Root"',
      'there is no CRL of "CN=Third Root"',
    ]);
    const still = await reload(started, [await crl(other)], { crlsIncomplete: true });
    expect(await states(still)).toEqual([STATUS_UNKNOWN, 'accepted', STATUS_UNKNOWN]);
    expect(await states(await reload(still, [await crl(other)]))).toEqual(['accepted', 'accepted', 'accepted']);
  });

  test('a CA of this server, and one above it, needs no list', async () => {
    const own = [root, third].map(({ der }) => parseCertificate(der));
    expect(await states(await clientTrust({ trustAnchors, own, crlsIncomplete: true }))).toEqual([
      'accepted',
      STATUS_UNKNOWN,
      'accepted',
    ]);
  });

  test('a reload with a list that cannot be used keeps those in force, and takes the newer ones', async () => {
    const before = await clientTrust({ trustAnchors, crls: [await crl(root, { revoked: ['600d'] })] });
    const newer = await crl(other, { revoked: ['77'] });
    const after = await reload(before, [damaged, newer]);
    expect(await states(after)).toEqual(['client certificate revoked', 'accepted', 'accepted']);
    expect(await refusal(after, await makeClient('CN=b', other, { serial: '77' }))).toBe('client certificate revoked');
    const again = await reload(after, [], { crlsIncomplete: true });
    expect(await states(again)).toEqual(['client certificate revoked', 'accepted', 'accepted']);
  });

  test('an issuer whose list is missing after a reload is not trusted until it has one again', async () => {
    const before = await clientTrust({ trustAnchors, crls: [await crl(root), await crl(other)] });
    const without = await reload(before, [await crl(other)]);
    expect(await states(without)).toEqual([STATUS_UNKNOWN, 'accepted', 'accepted']);
    expect(await states(await reload(without, []))).toEqual([STATUS_UNKNOWN, STATUS_UNKNOWN, 'accepted']);
    expect(await states(await reload(without, [await crl(root)]))).toEqual(['accepted', STATUS_UNKNOWN, 'accepted']);
  });

  test('an expired list is named with its date', async () => {
    const { revocation } = await clientTrust({ trustAnchors, crls: [await crl(root)] });
    expect(revocation.states(NOW)).toEqual([{ issuer: 'CN=Root', nextUpdate: NOW + DAY }]);
    expect(revocation.states(NOW + DAY)).toMatchObject([{ problem: expect.stringContaining('expired on') as string }]);
  });
});
