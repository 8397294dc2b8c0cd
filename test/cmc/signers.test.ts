/** RFC 5272 §3.2 and RFC 6402 §2.3: which certificate signed a message, and who its holder is. */
import { afterAll, describe, expect, test } from 'vitest';
import type { Ca } from '../../src/ca/router.ts';
import { isSignedBy, Signers, signerSerial } from '../../src/cmc/signers.ts';
import type { Origin } from '../../src/cmc/sender.ts';
import { EstuaryError, failed } from '../../src/errors.ts';
import { parseSignedData, buildSignedData, issuerAndSerialNumber, keySigner } from '../../src/pki/cms/cms.ts';
import { OID } from '../../src/pki/der/oids.ts';
import { isSameCertificate, parseCertificate, type Certificate } from '../../src/pki/x509/certificate.ts';
import type { CertificateRow } from '../../src/store/certificate-store.ts';
import { crl, DAY, pem } from '../auth/mtls/crl-support.ts';
import { NOW } from '../auth/chain.ts';
import { certificateRow, reservation } from '../store/rows.ts';
import { openedIn } from '../store/support.ts';
import { extKeyUsage, keyUsage, makeCa, makeClient, ski, type Issuer } from '../support/certificates.ts';
import { clientTrust } from '../support/client-trust.ts';
import { keyPair } from '../support/keys.ts';
import { temporaryFolder } from '../support/openssl.ts';

const folder = temporaryFolder();
const store = await openedIn(folder, () => NOW);
afterAll(async () => {
  await store.close();
  folder.remove();
});

const parsed = ({ der }: Issuer): Certificate => parseCertificate(der);
const issuing = await makeCa('CN=Issuing');
const elsewhere = await makeCa('CN=Elsewhere');
const unknown = await makeCa('CN=Unknown');
const trust = await clientTrust({ trustAnchors: pem(issuing, elsewhere) });
const usages = (...purposes: string[]) => [keyUsage('digitalSignature'), extKeyUsage(...purposes)];

/** A client's certificate with a subjectKeyIdentifier; the slot names its key. */
const client = (slot: string, issuer = issuing, keyId = slot): Promise<Issuer> =>
  makeClient('CN=device-1', issuer, {
    slot,
    extensions: [...usages(OID.clientAuth), ski(keyPair('ec:P-256', keyId))],
  });

async function recorded(issuer: Issuer, more: Partial<CertificateRow> = {}): Promise<void> {
  const { der, serialNumber: serial, subjectKeyIdentifier, notAfter } = parsed(issuer);
  const key_identifier = subjectKeyIdentifier?.toString('hex') ?? null;
  const row = { serial, der, key_identifier, not_after: notAfter.getTime(), ...more };
  expect(await store.importCertificate(certificateRow(reservation(), row), [])).toBe('imported');
}

interface Options {
  readonly trusted?: ConstructorParameters<typeof Signers>[0]['trust'];
  readonly ras?: readonly Issuer[];
  readonly knownTo?: ConstructorParameters<typeof Signers>[0]['store'];
}

const signersWith = ({ trusted = () => trust, ras = [], knownTo = store }: Options = {}): Signers =>
  new Signers({ store: knownTo, trust: trusted, parties: () => ({ raCertificates: ras.map(parsed) }) });

interface At {
  readonly ownIsRecorded?: boolean;
  readonly accept?: boolean;
  readonly counts?: boolean;
  readonly isOfThisServer?: boolean;
  readonly presented?: readonly Issuer[];
}

/** A message at the CA `issuing`. */
function originOf({
  ownIsRecorded = false,
  accept = true,
  counts = true,
  isOfThisServer = false,
  presented = [],
}: At = {}): Origin {
  const ca = {
    certificate: parsed(issuing),
    ownIsRecorded,
    counts: () => Promise.resolve(counts),
    awaitsChain: () => Promise.resolve(false),
    clientIssuers: { accept: () => Promise.resolve(accept), isOfThisServer: () => isOfThisServer },
  };
  return {
    ca: ca as unknown as Ca,
    address: '192.0.2.1',
    now: NOW,
    tls: undefined,
    presented: presented.map(({ der }) => der),
    channelBinding: undefined,
  };
}

/** A message that this key signs, in the name of a certificate. */
async function signedBy(
  key: Issuer,
  by: 'issuerAndSerialNumber' | 'subjectKeyIdentifier',
  certificates: readonly Buffer[] = [],
  named = key,
) {
  const { publicKey } = parsed(key);
  const { subjectKeyIdentifier: keyIdentifier = Buffer.alloc(20) } = parsed(named);
  const sid = by === 'subjectKeyIdentifier' ? { kind: by, keyIdentifier } : issuerAndSerialNumber(parsed(named));
  const signedData = parseSignedData(
    await buildSignedData({
      contentType: OID.pkiData,
      content: Buffer.from('content'),
      certificates,
      signers: [keySigner(key.keys.privateKey, publicKey, sid)],
      signingTime: new Date(NOW),
    }),
  );
  const [signer] = signedData.signerInfos;
  if (signer === undefined) throw new Error('no signer');
  return { signedData, signer };
}
type Message = Awaited<ReturnType<typeof signedBy>>;

const IDENTIFIERS = ['issuerAndSerialNumber', 'subjectKeyIdentifier'] as const;

const inShort = (found: Awaited<ReturnType<Signers['presented']>>, among: Readonly<Record<string, Issuer>>) =>
  found && [
    Object.keys(among).find((name) => among[name]?.der.equals(found.certificate.der)),
    found.verified ? 'verified' : 'not verified',
  ];

describe('the certificate that a message, its TLS connection or the configuration has', async () => {
  const device = await client('device');
  const sameIds = { device, twin: await client('twin', issuing, 'device') };
  const presented = ({ signedData, signer }: Message, ras: Issuer[] = [], origin = originOf()) =>
    signersWith({ ras }).presented(signedData, signer, origin);

  test.each(IDENTIFIERS)('by %s: the one whose key signed, wherever it is', async (by) => {
    const expected = ['device', 'verified'];
    expect(inShort(await presented(await signedBy(device, by, [device.der])), sameIds)).toEqual(expected);
    const bare = await signedBy(device, by);
    expect(await presented(bare)).toBeUndefined();
    expect(inShort(await presented(bare, [device]), sameIds)).toEqual(expected);
    expect(inShort(await presented(bare, [], originOf({ presented: [device] })), sameIds)).toEqual(expected);
  });

  test.each(IDENTIFIERS)('by %s: another key did not sign', async (by) => {
    const forged = await signedBy(sameIds.twin, by, [device.der], device);
    expect(inShort(await presented(forged), sameIds)).toEqual(['device', 'not verified']);
  });

  test('the issuer and the serial number both count, and so does the whole key identifier', async () => {
    const spec = { slot: 'device', serial: parsed(device).serialNumber };
    const others = [
      await client('device'),
      await makeClient('CN=device-1', elsewhere, spec),
      await client('device', issuing, 'another'),
    ];
    const [serial, issuer, keyId] = others.map(({ der }) => der);
    const without = await makeClient('CN=device-1', issuing, { slot: 'device' });
    for (const der of [serial, issuer])
      expect(await presented(await signedBy(device, 'issuerAndSerialNumber', der && [der]))).toBeUndefined();
    for (const der of [keyId, without.der])
      expect(await presented(await signedBy(device, 'subjectKeyIdentifier', der && [der]))).toBeUndefined();
  });

  test('of certificates with one key identifier, the one whose key signed; at most four keys are tried', async () => {
    const { twin } = sameIds;
    const after = (others: number) => [...Array<Buffer>(others).fill(twin.der), device.der];
    const tried = async (others: number) =>
      inShort(await presented(await signedBy(device, 'subjectKeyIdentifier', after(others))), sameIds);
    expect(await tried(3)).toEqual(['device', 'verified']);
    expect(await tried(4)).toEqual(['twin', 'not verified']);
  });

  test('at most 16 certificates of a message are looked at, and malformed ones are passed over', async () => {
    const other = await client('other');
    const after = (others: number) => [Buffer.from('300130', 'hex'), ...Array<Buffer>(others).fill(other.der)];
    const { signedData, signer } = await signedBy(device, 'issuerAndSerialNumber', [device.der]);
    const having = (certificates: Buffer[]): Message => ({ signedData: { ...signedData, certificates }, signer });
    expect(inShort(await presented(having([...after(14), device.der])), sameIds)).toEqual(['device', 'verified']);
    expect(await presented(having([...after(15), device.der]))).toBeUndefined();
  });

  test('malformed attributes are not a signature', async () => {
    const { signedData, signer } = await signedBy(device, 'issuerAndSerialNumber', [device.der]);
    const malformed = { ...signer, signedAttributes: [] };
    expect(await isSignedBy(signedData, signer, parsed(device).publicKey)).toBe(true);
    expect(await isSignedBy(signedData, malformed, parsed(device).publicKey)).toBe(false);
    const broken = {
      ...signer,
      get signedAttributes(): never {
        throw new RangeError('broken');
      },
    };
    await expect(isSignedBy(signedData, broken, parsed(device).publicKey)).rejects.toThrow(RangeError);
  });

  test('its serial number: the one that the signer names, or of the certificate in the message', async () => {
    const { serialNumber } = parsed(device);
    const serialIn = ({ signedData, signer }: Message) => signerSerial({ kind: 'signed', signedData, signer });
    expect(serialIn(await signedBy(device, 'issuerAndSerialNumber'))).toBe(serialNumber);
    expect(serialIn(await signedBy(device, 'subjectKeyIdentifier'))).toBeUndefined();
    const other = await client('other');
    expect(serialIn(await signedBy(device, 'subjectKeyIdentifier', [other.der, device.der]))).toBe(serialNumber);
    const { signedData } = await signedBy(device, 'issuerAndSerialNumber');
    expect(signerSerial({ kind: 'unsigned', signedData })).toBeUndefined();
  });
});

describe('the certificate that the store has', () => {
  const stored = async (device: Issuer, by: (typeof IDENTIFIERS)[number]) => {
    const { signedData, signer } = await signedBy(device, by);
    return inShort(await signersWith().stored(signedData, signer, NOW), { device });
  };
  const revoked = { revoked_at: NOW - 1, reason: 'keyCompromise' };
  const found = ['device', 'verified'];

  test.each<[string, Partial<CertificateRow>, boolean]>([
    ['in force', {}, true],
    ['in the last millisecond of its validity', { not_after: NOW }, true],
    ['expired', { not_after: NOW - 1 }, false],
    ['revoked', revoked, false],
    ['revoked and expired', { ...revoked, not_after: NOW - 1 }, false],
  ])('%s: a key identifier finds certificates in force only, a serial number any', async (what, row, byKey) => {
    const device = await client(what);
    await recorded(device, row);
    expect(await stored(device, 'subjectKeyIdentifier')).toEqual(byKey ? found : undefined);
    expect(await stored(device, 'issuerAndSerialNumber')).toEqual(found);
  });

  test.each(IDENTIFIERS)('by %s: not a restored row without its certificate', async (by) => {
    const device = await client(`restored ${by}`);
    await recorded(device, { der: Buffer.alloc(0) });
    expect(await stored(device, by)).toBeUndefined();
  });

  test('not one of another issuer with the same serial number', async () => {
    const device = await client('serial');
    const { serialNumber: serial } = parsed(device);
    await recorded(await makeClient('CN=device-1', elsewhere, { slot: 'serial', serial }));
    expect(await stored(device, 'issuerAndSerialNumber')).toBeUndefined();
  });
});

/** The role and whether the certificate counts as issued here; or the status of the refusal. */
async function accepted(certificate: Issuer, options: Options & { readonly at?: At } = {}) {
  try {
    const { role, issuedHere, issuer } = await signersWith(options).accept(
      parsed(certificate),
      [],
      originOf(options.at),
    );
    return [role, issuedHere ? 'issued here' : 'foreign', issuer?.subject.rdns.flat()[0]?.text];
  } catch (error) {
    if (error instanceof EstuaryError) return error.code;
    if (error instanceof Error && 'httpStatus' in error && 'failInfo' in error)
      return `${String(error.httpStatus)} ${String(error.failInfo)}`;
    throw error;
  }
}

const REFUSED = '401 badIdentity';
const outdated = { notBefore: NOW - 2 * DAY, notAfter: NOW - DAY };
const tooNew = { notBefore: NOW + DAY, notAfter: NOW + 2 * DAY };
const SUBSCRIBER = ['subscriber', 'foreign', 'Issuing'];

describe('the holder of a certificate', async () => {
  const device = await client('holder');

  test('is a subscriber under a trusted CA whose certificates count at the label', async () => {
    expect(await accepted(device)).toEqual(SUBSCRIBER);
    expect(await accepted(device, { at: { accept: false } })).toBe('403 badIdentity');
  });

  test('has its certificate from here if a CA of this server issued it or the store has recorded it', async () => {
    const here = ['subscriber', 'issued here', 'Issuing'];
    expect(await accepted(device, { at: { isOfThisServer: true } })).toEqual(here);
    const known = await client('known');
    await recorded(known);
    expect(await accepted(known)).toEqual(here);
  });

  test.each<[string, Issuer]>([
    ['of an unknown issuer', await client('stray', unknown)],
    ['expired', await makeClient('CN=device-1', issuing, outdated)],
    ['not valid yet', await makeClient('CN=device-1', issuing, tooNew)],
    ['for servers', await makeClient('CN=device-1', issuing, { extensions: usages(OID.serverAuth) })],
  ])('%s: 401', async (_, certificate) => {
    expect(await accepted(certificate)).toBe(REFUSED);
  });

  test('revoked in the store or by a CRL: 401; without trust anchors: 401', async () => {
    const revoked = await client('revoked here');
    await recorded(revoked, { revoked_at: NOW - 1, reason: 'superseded' });
    expect(await accepted(revoked)).toBe(REFUSED);
    const listed = await makeClient('CN=device-1', issuing, { serial: '0badca11' });
    const list = await crl(issuing, { revoked: ['0badca11'] });
    const withList = await clientTrust({ trustAnchors: pem(issuing), crls: [list] });
    expect(await accepted(listed)).toEqual(SUBSCRIBER);
    expect(await accepted(listed, { trusted: () => withList })).toBe(REFUSED);
    expect(await accepted(device, { trusted: () => undefined })).toBe(REFUSED);
  });

  test('what fails on the side of the server is not a refusal', async () => {
    const findRevoked = () => Promise.reject(failed('CA_UNUSABLE', 'broken'));
    const broken = new Proxy(store, {
      get: (of, name) => (name === 'findRevoked' ? findRevoked : (Reflect.get(of, name) as unknown)),
    });
    for (const ras of [[], [device]]) expect(await accepted(device, { knownTo: broken, ras })).toBe('CA_UNUSABLE');
  });

  test('RFC 6402 §2.3: is an RA by id-kp-cmcRA in a certificate of this CA that counts at the label', async () => {
    const purposes = [OID.clientAuth, OID.cmcRA];
    const ra = await makeClient('CN=RA', issuing, { extensions: usages(...purposes) });
    expect(await accepted(ra)).toEqual(['ra', 'foreign', 'Issuing']);
    expect(await accepted(await makeClient('CN=RA', issuing, { extensions: usages(OID.cmcRA) }))).toEqual([
      'ra',
      'foreign',
      'Issuing',
    ]);
    expect(await accepted(ra, { at: { counts: false } })).toEqual(SUBSCRIBER);
    const other = await makeClient('CN=RA', elsewhere, { extensions: usages(...purposes) });
    expect(await accepted(other)).toEqual(['subscriber', 'foreign', 'Elsewhere']);
    const any = await makeClient('CN=RA', issuing, { extensions: [keyUsage('digitalSignature')] });
    expect(await accepted(any)).toEqual(SUBSCRIBER);
  });

  test('is no RA by id-kp-cmcRA in a certificate of a remote CA, only by cmc.ra_certificates', async () => {
    const ra = await makeClient('CN=RA', issuing, { extensions: usages(OID.clientAuth, OID.cmcRA) });
    const at = { ownIsRecorded: true };
    expect(await accepted(ra, { at })).toEqual(SUBSCRIBER);
    expect(await accepted(ra, { at, ras: [ra] })).toEqual(['configured-ra', 'foreign', 'Issuing']);
  });
});

describe('the holder of a certificate that the configuration names as an RA', async () => {
  const CONFIGURED = ['configured-ra', 'foreign'];
  const trusted = await client('configured');
  const stray = await client('configured stray', unknown);

  test('is that RA, with a path or without one, whatever client_issuers says', async () => {
    for (const at of [{}, { accept: false }, { isOfThisServer: true }])
      expect(await accepted(trusted, { ras: [stray, trusted], at })).toEqual([...CONFIGURED, 'Issuing']);
    expect(await accepted(stray, { ras: [trusted, stray] })).toEqual([...CONFIGURED, undefined]);
    expect(await accepted(trusted, { ras: [trusted], trusted: () => undefined })).toEqual([...CONFIGURED, undefined]);
  });

  test('needs that very certificate, not another one of its name and key', async () => {
    const second = await client('configured');
    expect(isSameCertificate(parsed(second), parsed(trusted))).toBe(false);
    expect(await accepted(second, { ras: [trusted] })).toEqual(SUBSCRIBER);
  });

  test('may have any extended key usage', async () => {
    const any = await makeClient('CN=RA', issuing, { extensions: usages(OID.serverAuth) });
    expect(await accepted(any, { ras: [any] })).toEqual([...CONFIGURED, 'Issuing']);
    const none = await makeClient('CN=RA', issuing, { extensions: [keyUsage('digitalSignature')] });
    expect(await accepted(none, { ras: [none] })).toEqual([...CONFIGURED, 'Issuing']);
  });

  test.each<[string, Issuer]>([
    ['expired', await makeClient('CN=RA', unknown, outdated)],
    ['not valid yet', await makeClient('CN=RA', unknown, tooNew)],
  ])('%s: 401, also without a path', async (_, ra) => {
    expect(await accepted(ra, { ras: [ra] })).toBe(REFUSED);
    expect(await accepted(ra, { ras: [ra], trusted: () => undefined })).toBe(REFUSED);
  });

  test('revoked in the store or by a CRL of its issuer: 401', async () => {
    const revoked = await client('revoked RA', unknown);
    await recorded(revoked, { revoked_at: NOW - 1, reason: 'superseded' });
    expect(await accepted(revoked, { ras: [revoked] })).toBe(REFUSED);
    const listed = await makeClient('CN=RA', issuing, { serial: '0badca12' });
    const list = await crl(issuing, { revoked: ['0badca12'] });
    const withList = await clientTrust({ trustAnchors: pem(issuing), crls: [list] });
    expect(await accepted(listed, { ras: [listed], trusted: () => withList })).toBe(REFUSED);
  });
});
