/**
 * An upstream CA that answers with anything, in the protocol of each driver: foreign certificates, other keys, names, purposes
 * and times, in any order, cut and damaged. What reaches the device is judged by OpenSSL's reading of the certificate.
 */
import { generateKeyPairSync, X509Certificate } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import fc from 'fast-check';
import { afterAll, expect, test } from 'vitest';
import { AcmeUpstream } from '../../../src/ca/acme/acme-upstream.ts';
import { CommandUpstream } from '../../../src/ca/command/command-upstream.ts';
import type { DogtagCa } from '../../../src/ca/dogtag/dogtag-ca.ts';
import { EstUpstream } from '../../../src/ca/est/est-upstream.ts';
import { RemoteCa } from '../../../src/ca/remote/remote-ca.ts';
import type { Upstream } from '../../../src/ca/remote/upstream.ts';
import { EstuaryError } from '../../../src/errors.ts';
import { certsOnly } from '../../../src/pki/cms/cms.ts';
import { OID } from '../../../src/pki/der/oids.ts';
import { encodePem } from '../../../src/pki/der/pem.ts';
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
  makeClient,
  NOT_BEFORE,
  subjectAltName,
  uri,
  type Issuer,
} from '../../support/certificates.ts';
import { buildCsr, commonName, dns as dnsName, extensionRequest, makeKey, san } from '../../support/csr.ts';
import { DogtagStandIn } from '../../support/dogtag-stand-in/index.ts';
import { startStandIn } from '../../support/est-stand-in.ts';
import { temporaryFolder } from '../../support/openssl.ts';
import { openDriver } from '../dogtag/support.ts';

const DAY = 86_400_000;
const [mine, other] = [makeKey(), makeKey()];
const folder = temporaryFolder();
/** What else has to end. */
const started: (() => unknown)[] = [];
afterAll(async () => {
  for (const end of started) await end();
  folder.remove();
});

/** @param issuing a twin has its name and another key */
async function around(root: Issuer, issuing: Issuer, now: number) {
  const foreign = await makeCa('CN=Foreign Root');
  const name = issuing.subject;
  return {
    ...{ root, issuing, foreign },
    twin: await makeCa(name, { issuer: foreign, slot: 'twin' }),
    expired: await makeCa(name, { issuer: root, notAfter: now - 1000, slot: 'expired' }),
    endEntity: await makeCertificate({ subject: 'CN=end entity', issuer: root }),
  };
}
type Issuers = Awaited<ReturnType<typeof around>>;

/** A CA that has the driver's upstream, and what the upstream says. */
interface Target {
  readonly issuers: Issuers;
  readonly now: number;
  /** Of the CSR. */
  readonly subject: string;
  /** @param bent changes the octets that carry the certificates */
  answer(certificates: readonly Buffer[], bent: (octets: Buffer) => Buffer): void;
  open(): Promise<RemoteCa | DogtagCa>;
}

const NOW = NOT_BEFORE + DAY;
const root = await makeCa('CN=Upstream Root');
const issuers = await around(root, await makeCa('CN=Upstream Issuing', { issuer: root }), NOW);
const quiet = { info: () => undefined, warn: () => undefined, error: () => undefined };
const PROFILE = { key_usage: [], extended_key_usage: ['clientAuth'] };

/** @param octets of the body that carries certificates */
function remote(
  open: (octets: () => Buffer) => Upstream,
  write: (ders: readonly Buffer[]) => string,
  subject?: string,
) {
  let octets = Buffer.alloc(0);
  const target: Target = {
    ...{ issuers, now: NOW, subject: subject ?? 'device' },
    answer: (certificates, bent) => (octets = Buffer.from(bent(Buffer.from(write(certificates))))),
    open: () =>
      Promise.resolve(
        new RemoteCa({
          label: 'edge',
          upstream: open(() => octets),
          anchors: [parseCertificate(root.der)],
          chain: [],
          maxCalls: 2,
          timeout: 1000,
          retryAfter: 7,
          profile: { validity_days: 30, ...PROFILE },
          log: quiet,
          store: { recallIntermediates: () => Promise.resolve([]), rememberIntermediates: () => Promise.resolve() },
          now: () => NOW,
        }),
      ),
  };
  return Promise.resolve(target);
}

const inPem = (ders: readonly Buffer[]): string => ders.map((der) => encodePem('CERTIFICATE', der)).join('');
const inCms = (ders: readonly Buffer[]): string => certsOnly(ders).toString('base64');
const common = { timeout: 20_000, retryAfter: 7 };

const TARGETS = {
  est: () =>
    remote(
      (octets) =>
        new EstUpstream({
          client: {
            call: ({ path }) => {
              const chain = Buffer.from(inCms([issuers.issuing.der, root.der]));
              return Promise.resolve({ status: 200, headers: {}, body: path.endsWith('cacerts') ? chain : octets() });
            },
            close: () => undefined,
          },
          url: 'https://localhost/.well-known/est',
          password: undefined,
          hasCertificate: false,
          forwardsCsrAttributes: false,
          ...common,
        }),
      inCms,
    ),

  command: () => {
    const file = folder.file('stdout');
    return remote((octets) => {
      writeFileSync(file, octets());
      return new CommandUpstream({
        label: 'edge',
        issue: ['/bin/cat', file],
        poll: undefined,
        revoke: undefined,
        ...common,
      });
    }, inPem);
  },

  async acme() {
    const extensions = [subjectAltName(dns('localhost'))];
    const tls = await makeCertificate({ subject: 'CN=localhost', issuer: root, extensions });
    let body = (): Buffer => Buffer.alloc(0);
    const server = await startStandIn(tls, ({ path, response }) => {
      const url = (name: string): string => `${server.url}/${name}`;
      const directory = { newNonce: url('nonce'), newAccount: url('account'), newOrder: url('order') };
      const order = { status: 'valid', certificate: url('certificate') };
      const isChain = path === '/certificate';
      const type = isChain ? 'application/pem-certificate-chain' : 'application/json';
      response.writeHead(200, { 'Content-Type': type, 'Replay-Nonce': 'nonce', Location: url(path.slice(1)) });
      response.end(isChain ? body() : JSON.stringify({ ...directory, ...order }));
    });
    started.push(() => server.stop());
    const accountKey = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
    return remote(
      (octets) => {
        body = octets;
        return new AcmeUpstream({
          ...{ directory: `${server.url}/directory`, tls: { ca: encodePem('CERTIFICATE', root.der) }, accountKey },
          ...{ binding: undefined, contact: [], origins: [], challenge: 'none', dnsHook: undefined, log: quiet },
          store: { getAcmeAccount: () => Promise.resolve(undefined), putAcmeAccount: () => Promise.resolve() },
          ...common,
        });
      },
      inPem,
      'a.example',
    );
  },

  async dogtag() {
    const dogtag = await DogtagStandIn.start();
    started.push(() => dogtag.stop());
    const { issuer, state } = dogtag;
    const now = Date.now();
    return {
      ...{ issuers: await around(issuer, issuer, now), now, subject: 'device' },
      answer: ([first = Buffer.alloc(0)]) => (state.issueInstead = () => Promise.resolve(first)),
      open: () => openDriver(dogtag.settings(), { profile: PROFILE }),
    };
  },
} satisfies Record<string, () => Promise<Target>>;

/** What the driver delivers to the device, or undefined. */
async function delivered(target: Target): Promise<Buffer | undefined> {
  const csr = await verifyCsr(
    parseCsr(
      buildCsr(mine, {
        subject: commonName(target.subject),
        attributes: [extensionRequest(san(dnsName('a.example'), dnsName('b.example')))],
      }),
    ),
  );
  const { subject, subjectAltNames, publicKey } = csr;
  const request = { request_id: 'r', subject, subjectAltNames, spki: publicKey.spki, csr };
  const ca = await target.open();
  try {
    const result = await (await ca.prepare(request)).issue();
    // Dogtag: another replica may answer better, later.
    expect(['issued', 'pending']).toContain(result.status);
    return result.status === 'issued' ? result.certificate : undefined;
  } catch (error) {
    // A lie is never a failure of this server that it does not know, nor the device's.
    expect(error).toBeInstanceOf(EstuaryError);
    expect(error).toMatchObject({
      status: 500,
      code: expect.stringMatching(/^(?:CA_ISSUED_OTHER|UPSTREAM_FAILED)$/) as unknown,
    });
    return undefined;
  } finally {
    await ca.close();
  }
}

const often = <T>(honest: T, ...lies: readonly T[]): fc.Arbitrary<T> =>
  fc.oneof({ arbitrary: fc.constant(honest), weight: 3 * lies.length }, ...lies.map((lie) => fc.constant(lie)));

/** The octet to change, or where to cut: as a part of the length. */
const damage = often<{ readonly kind: 'change' | 'cut'; readonly at: number } | undefined>(
  undefined,
  ...[0.05, 0.3, 0.6, 0.9, 0.99].flatMap((at) => [{ kind: 'change', at } as const, { kind: 'cut', at } as const]),
);

const damaged =
  (how: { readonly kind: 'change' | 'cut'; readonly at: number } | undefined) =>
  (octets: Buffer): Buffer => {
    const at = Math.floor(octets.length * (how?.at ?? 0));
    if (how?.kind === 'cut') return octets.subarray(0, at);
    if (how?.kind !== 'change') return octets;
    const changed = Buffer.from(octets);
    changed[at] = (changed[at] ?? 0) ^ 0x10;
    return changed;
  };

const certificates = fc.record({
  keys: often(mine, other),
  subject: often('own', 'CN=device', 'CN=A.example', '', 'CN=other', 'CN=device,O=Other', 'O=Other', 'CN=c.example'),
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
  issuer: often<keyof Issuers>('issuing', 'root', 'foreign', 'twin', 'expired', 'endEntity'),
  /** From now on, in milliseconds. */
  expiry: often(DAY, -1000, -3 * DAY),
  damage,
});
type Lie = typeof certificates extends fc.Arbitrary<infer T> ? T : never;

async function made(lie: Lie, { issuers: signers, now, subject: own }: Target): Promise<Buffer> {
  const { keys, subject, names, usages, purposes, isCa, issuer, expiry } = lie;
  const { der }: Issuer = await makeCertificate({
    subject: subject === 'own' ? `CN=${own}` : subject,
    issuer: signers[issuer],
    keys: { publicKey: keys.publicKey, privateKey: keys.privateKey },
    notAfter: now + expiry,
    notBefore: now + Math.min(-DAY, expiry),
    extensions: [
      keyUsage(...usages),
      ...(names.length === 0 ? [] : [subjectAltName(...names)]),
      ...(purposes.length === 0 ? [] : [extKeyUsage(...purposes)]),
      ...(isCa === undefined ? [] : [basicConstraints(isCa)]),
    ],
  });
  return damaged(lie.damage)(der);
}

const NAMES = ['DNS:a.example', 'DNS:b.example'];

function expectRight(der: Buffer, target: Target): void {
  const certificate = new X509Certificate(der);
  const spki = { type: 'spki', format: 'der' } as const;
  expect(certificate.publicKey.export(spki)).toEqual(mine.publicKey.export(spki));
  // Node gives undefined for an empty name.
  const subjects = ['', `CN=${target.subject}`, 'CN=a.example', 'CN=b.example'];
  expect(subjects).toContain([certificate.subject].join('').replace('A.example', 'a.example'));
  for (const name of certificate.subjectAltName?.toLowerCase().replaceAll('dns:', 'DNS:').split(', ') ?? [])
    expect(NAMES).toContain(name);
  expect(certificate.ca).toBe(false);
  expect(['undefined', OID.clientAuth]).toContain(String(certificate.keyUsage));
  expect(Date.parse(certificate.validTo)).toBeGreaterThan(target.now);
  const signers = [target.issuers.issuing, target.issuers.root].map((ca) => new X509Certificate(ca.der));
  expect(signers.some((ca) => certificate.checkIssued(ca) && certificate.verify(ca.publicKey))).toBe(true);
}

/** More with ESTUARY_RUNS=…, others with ESTUARY_SEED=…. */
const RUNS = Number(process.env['ESTUARY_RUNS'] ?? 120);
const SEED = Number(process.env['ESTUARY_SEED'] ?? 51);

test.each(Object.entries(TARGETS))(
  'driver %s: no certificate reaches a device that it did not ask for and that its anchors do not verify',
  async (_, start) => {
    const target = await start();
    const answers = fc.record({
      leaves: fc.array(certificates, { minLength: 1, maxLength: 3 }),
      others: fc.shuffledSubarray(Object.values(target.issuers)),
      isFirst: fc.boolean(),
      bent: damage.map(damaged),
    });
    let count = 0;
    await fc.assert(
      fc.asyncProperty(answers, async ({ leaves, others, isFirst, bent }) => {
        const own = await Promise.all(leaves.map((lie) => made(lie, target)));
        const chain = others.map(({ der }) => der);
        target.answer(isFirst ? [...own, ...chain] : [...chain, ...own], bent);
        const certificate = await delivered(target);
        if (certificate === undefined) return;
        count++;
        expectRight(certificate, target);
      }),
      { numRuns: RUNS, seed: SEED },
    );
    expect(count, 'certificates that were delivered').toBeGreaterThan(0);
  },
);

test.each<[string, () => Promise<readonly Issuer[]>, boolean]>([
  ['a CA', async () => [await makeCa('CN=Sub', { issuer: issuers.issuing })], true],
  ['an end entity', () => Promise.resolve([issuers.endEntity]), false],
  ['another root', () => Promise.resolve([issuers.foreign]), false],
  ['a CA that is not valid yet', async () => [await makeCa('CN=Sub', { issuer: root, notBefore: NOW + 1000 })], false],
  ['a CA that has expired', async () => [await makeCa('CN=Sub', { issuer: root, notAfter: NOW - 1000 })], false],
  [
    'a CA that may not sign certificates',
    async () => [
      await makeCertificate({
        ...{ subject: 'CN=Sub', issuer: root },
        extensions: [basicConstraints(true), keyUsage('cRLSign')],
      }),
    ],
    false,
  ],
  [
    'a CA below one that may have none',
    async () => {
      const above = await makeCa('CN=Above', { issuer: root, pathLength: 0 });
      return [await makeCa('CN=Sub', { issuer: above }), above];
    },
    false,
  ],
])('RFC 5280 §6.1: what %s issued', async (_, make, isDelivered) => {
  const target = await TARGETS.est();
  const [issuer, ...more] = await make();
  if (issuer === undefined) throw new Error('no issuer');
  const { der } = await makeClient('CN=device', issuer, { keys: mine });
  target.answer([der, issuer.der, ...more.map((certificate) => certificate.der)], (octets) => octets);
  expect((await delivered(target))?.equals(der) ?? false).toBe(isDelivered);
});

test('a certificate whose key is not on its curve counts as one for another key', async () => {
  const target = await TARGETS.est();
  const { der } = await makeCertificate({ subject: 'CN=device', issuer: issuers.issuing, keys: mine });
  const changed = Buffer.from(der);
  const at = der.indexOf(mine.spki) + mine.spki.length - 1;
  changed[at] = (changed[at] ?? 0) ^ 1;
  target.answer([changed, issuers.issuing.der], (octets) => octets);
  expect(await delivered(target)).toBeUndefined();
});
