/**
 * An upstream CA that answers with anything: foreign certificates, other keys, names, purposes and times, in any order, cut
 * and damaged. What reaches the device is judged by OpenSSL's reading of the certificate, not by ours.
 */
import { X509Certificate } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { RemoteCa } from '../../../src/ca/remote/remote-ca.ts';
import { EstuaryError } from '../../../src/errors.ts';
import { OID } from '../../../src/pki/der/oids.ts';
import { parseCsr, verifyCsr } from '../../../src/pki/pkcs10/csr.ts';
import { parseCertificate } from '../../../src/pki/x509/certificate.ts';
import {
  basicConstraints,
  dns,
  email,
  extKeyUsage,
  keyUsage,
  makeCa,
  makeCertificate,
  NOT_BEFORE,
  subjectAltName,
  uri,
  type Issuer,
} from '../../support/certificates.ts';
import { buildCsr, commonName, dns as dnsName, extensionRequest, makeKey, san } from '../../support/csr.ts';

const DAY = 86_400_000;
const NOW = NOT_BEFORE + DAY;
const [mine, other] = [makeKey(), makeKey()];
const root = await makeCa('CN=Upstream Root');
const issuing = await makeCa('CN=Upstream Issuing', { issuer: root });
const foreign = await makeCa('CN=Foreign Root');
/** Has the name of the issuing CA and another key. */
const twin = await makeCa('CN=Upstream Issuing', { issuer: foreign, slot: 'twin' });
const expired = await makeCa('CN=Upstream Issuing', { issuer: root, notAfter: NOW - 1000, slot: 'expired' });
const endEntity = await makeCertificate({ subject: 'CN=end entity', issuer: root });
const issuers = { issuing, root, foreign, twin, expired, endEntity };

const csr = await verifyCsr(
  parseCsr(
    buildCsr(mine, {
      subject: commonName('device'),
      attributes: [extensionRequest(san(dnsName('a.example'), dnsName('b.example')))],
    }),
  ),
);

/** The RemoteCa of an upstream that answers so: what it delivers, or undefined. */
async function delivered(certificates: readonly Buffer[]): Promise<Buffer | undefined> {
  const ca = new RemoteCa({
    label: 'edge',
    upstream: {
      name: 'est',
      canRecover: false,
      continuesAtOnce: false,
      submit: () => Promise.resolve({ status: 'issued', certificates }),
      poll: () => Promise.reject(new Error('there is nothing to poll')),
      probe: () => Promise.resolve(),
      close: () => undefined,
    },
    anchors: [parseCertificate(root.der)],
    chain: [],
    maxCalls: 2,
    timeout: 1000,
    retryAfter: 7,
    profile: { validity_days: 30, key_usage: [], extended_key_usage: ['clientAuth'] },
    log: { info: () => undefined, warn: () => undefined, error: () => undefined },
    store: { recallIntermediates: () => Promise.resolve([]), rememberIntermediates: () => Promise.resolve() },
    now: () => NOW,
  });
  const { subject, subjectAltNames, publicKey } = csr;
  const request = { request_id: 'r', subject, subjectAltNames, spki: publicKey.spki, csr };
  try {
    const result = await (await ca.prepare(request)).issue();
    return result.status === 'issued' ? result.certificate : undefined;
  } catch (error) {
    // A lie is never a failure of this server that it does not know.
    expect(error).toBeInstanceOf(EstuaryError);
    expect(error).toMatchObject({ status: 500, code: 'CA_ISSUED_OTHER' });
    return undefined;
  }
}

const often = <T>(honest: T, ...lies: readonly T[]): fc.Arbitrary<T> =>
  fc.oneof({ arbitrary: fc.constant(honest), weight: 3 * lies.length }, ...lies.map((lie) => fc.constant(lie)));

const certificates = fc.record({
  keys: often(mine, other),
  subject: often('CN=device', 'CN=A.example', '', 'CN=other', 'CN=device,O=Other', 'O=Other', 'CN=c.example'),
  names: often(
    [dns('a.example'), dns('b.example')],
    [],
    [dns('A.EXAMPLE')],
    [dns('a.example'), dns('c.example')],
    [dns('*.example')],
    [uri('https://a.example')],
    [email('a@example.com')],
  ),
  usages: often(['digitalSignature'] as const, ['digitalSignature', 'keyCertSign'] as const, ['cRLSign'] as const),
  purposes: often([OID.clientAuth], [], [OID.serverAuth], [OID.clientAuth, OID.cmcRA], [OID.anyExtendedKeyUsage]),
  isCa: often<boolean | undefined>(undefined, false, true),
  issuer: often<keyof typeof issuers>('issuing', 'root', 'foreign', 'twin', 'expired', 'endEntity'),
  notAfter: often(NOW + DAY, NOW - 1000, NOT_BEFORE - DAY),
  /** The octet to change, or where to cut: as a part of the length. */
  damage: often<{ readonly kind: 'change' | 'cut'; readonly at: number } | undefined>(
    undefined,
    ...[0.05, 0.3, 0.6, 0.9, 0.99].flatMap((at) => [{ kind: 'change', at } as const, { kind: 'cut', at } as const]),
  ),
});
type Lie = typeof certificates extends fc.Arbitrary<infer T> ? T : never;

async function made({ keys, subject, names, usages, purposes, isCa, issuer, notAfter, damage }: Lie): Promise<Buffer> {
  const { der }: Issuer = await makeCertificate({
    subject,
    issuer: issuers[issuer],
    keys: { publicKey: keys.publicKey, privateKey: keys.privateKey },
    notAfter,
    notBefore: Math.min(NOT_BEFORE, notAfter),
    extensions: [
      keyUsage(...usages),
      ...(names.length === 0 ? [] : [subjectAltName(...names)]),
      ...(purposes.length === 0 ? [] : [extKeyUsage(...purposes)]),
      ...(isCa === undefined ? [] : [basicConstraints(isCa)]),
    ],
  });
  const at = Math.floor(der.length * (damage?.at ?? 0));
  if (damage?.kind === 'cut') return der.subarray(0, at);
  if (damage?.kind !== 'change') return der;
  const changed = Buffer.from(der);
  changed[at] = (changed[at] ?? 0) ^ 0x10;
  return changed;
}

const SUBJECTS = ['', 'CN=device', 'CN=a.example', 'CN=b.example'];
const NAMES = ['DNS:a.example', 'DNS:b.example'];

function expectRight(der: Buffer): void {
  const certificate = new X509Certificate(der);
  const spki = { type: 'spki', format: 'der' } as const;
  expect(certificate.publicKey.export(spki)).toEqual(mine.publicKey.export(spki));
  // Node gives undefined for an empty name.
  expect(SUBJECTS).toContain([certificate.subject].join('').replace('A.example', 'a.example'));
  for (const name of certificate.subjectAltName?.toLowerCase().replaceAll('dns:', 'DNS:').split(', ') ?? [])
    expect(NAMES).toContain(name);
  expect(certificate.ca).toBe(false);
  expect(['undefined', OID.clientAuth]).toContain(String(certificate.keyUsage));
  expect(Date.parse(certificate.validTo)).toBeGreaterThan(NOW);
  const signers = [issuing, root].map((ca) => new X509Certificate(ca.der));
  expect(signers.some((ca) => certificate.checkIssued(ca) && certificate.verify(ca.publicKey))).toBe(true);
}

/** More with ESTUARY_RUNS=…, others with ESTUARY_SEED=…. */
const RUNS = Number(process.env['ESTUARY_RUNS'] ?? 300);
const SEED = Number(process.env['ESTUARY_SEED'] ?? 51);

test('no certificate reaches a device that it did not ask for and that its anchors do not verify', async () => {
  const answers = fc.record({
    leaves: fc.array(certificates, { minLength: 1, maxLength: 3 }),
    others: fc.shuffledSubarray([issuing, root, foreign, twin, expired, endEntity]),
    isFirst: fc.boolean(),
  });
  let count = 0;
  await fc.assert(
    fc.asyncProperty(answers, async ({ leaves, others, isFirst }) => {
      const own = await Promise.all(leaves.map(made));
      const chain = others.map(({ der }) => der);
      const certificate = await delivered(isFirst ? [...own, ...chain] : [...chain, ...own]);
      if (certificate === undefined) return;
      count++;
      expectRight(certificate);
    }),
    { numRuns: RUNS, seed: SEED },
  );
  expect(count, 'certificates that were delivered').toBeGreaterThan(0);
});

test('a certificate whose key is not on its curve counts as one for another key', async () => {
  const { der } = await makeCertificate({ subject: 'CN=device', issuer: issuing, keys: mine });
  const changed = Buffer.from(der);
  const at = der.indexOf(mine.spki) + mine.spki.length - 1;
  changed[at] = (changed[at] ?? 0) ^ 1;
  expect(await delivered([changed, issuing.der])).toBeUndefined();
});
