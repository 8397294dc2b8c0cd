/**
 * Every way in to labels of every kind of CA, during faults that begin while the server runs, and before a reload and a
 * start. What is expected follows from what each way needs, not from what the server does today.
 */
import { createPrivateKey, createPublicKey, generateKeyPairSync, X509Certificate } from 'node:crypto';
import { appendFileSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { octetString } from '../../src/pki/der/der.ts';
import { OID } from '../../src/pki/der/oids.ts';
import { encodePem } from '../../src/pki/der/pem.ts';
import { parsePemCertificates } from '../../src/pki/x509/certificate.ts';
import { extKeyUsage, type Issuer, keyUsage, makeCa, makeClient, makeCrl } from '../support/certificates.ts';
import { postCmc, requestBy, tcr } from '../support/cmc.ts';
import { runAny } from '../support/command.ts';
import { buildCsr, csrAttribute, makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { caSection, certificatePem, type ClientIdentity, Estuary, section } from '../support/estuary.ts';
import { call } from '../support/https.ts';
import { keyPair, pkcs8Pem } from '../support/keys.ts';
import { ocspRequest } from '../support/ocsp.ts';
import { freePort } from '../support/ports.ts';
import { requires } from '../support/requires.ts';
import { NODE, SERVER, untilLogged } from '../support/server-process.ts';
import { PASSWORD, Slapd, searchesAsReader } from '../support/slapd.ts';
import { PIN, softHsm, SOFTHSM_MODULE } from '../support/softhsm.ts';
import { TcpRelay } from '../support/tcp-relay.ts';
import { atEst, enrollAt, startFront } from '../support/upstream.ts';
import { pause, until } from '../support/until.ts';

/** By the driver of each label: two files, a token, and an upstream CA. */
const LABELS = ['devices', 'lab', 'token', 'edge'] as const;
type Label = (typeof LABELS)[number];

/** What a way needs. The certificate of a client needs no CA that works. */
type Need =
  // Of its label: its key, a valid certificate to sign with, and a signature that may have been made before.
  | 'key'
  | 'valid certificate'
  | 'key since the start'
  // What several labels have.
  | 'directory'
  | 'CRL of East'
  | 'former CA'
  | 'RA'
  | 'recipient'
  | 'administrators';
const ISSUING = ['valid certificate', 'key'] as const;

const NEEDS = {
  otp: ISSUING,
  certificate: ISSUING,
  simplereenroll: ISSUING,
  fullcmc: ISSUING,
  ocsp: ['key since the start'],
  csrattrs: [],
  cacerts: [],
  crl: [],
  admin: [],
  // With the password of a directory.
  ldap: ['directory', ...ISSUING],
  // With a certificate of a CA that is not of this server, and publishes CRLs.
  foreign: ['CRL of East', ...ISSUING],
  // With a certificate of the key that the CA had before, which is in renewal_issuers.
  former: ['former CA', ...ISSUING],
  // A registration authority of cmc.ra_certificates, for a device.
  ra: ['RA', ...ISSUING],
  // A generated key, encrypted for a certificate of serverkeygen.keys.
  serverkeygen: ['recipient', ...ISSUING],
  // With a certificate under admin.tls.trust_anchors.
  administrator: ['administrators'],
} as const satisfies Record<string, readonly Need[]>;
type Way = keyof typeof NEEDS;
const WAYS = Object.keys(NEEDS) as readonly Way[];

/** The answer without it. */
const WITHOUT: Readonly<Record<Need, number>> = {
  key: 503,
  'valid certificate': 503,
  'key since the start': 503,
  directory: 503,
  'CRL of East': 401,
  'former CA': 401,
  RA: 401,
  recipient: 400,
  administrators: 401,
};

/** The upstream CA publishes CRLs and OCSP responses itself, and has one profile only. One CA has changed its key; the admin listener has no labels. */
const isThere = (way: Way, label: Label): boolean =>
  !(label === 'edge' && ['crl', 'ocsp', 'ldap', 'serverkeygen'].includes(way)) &&
  !(label !== 'lab' && way === 'former') &&
  !(label !== 'devices' && way === 'administrator');
const CELLS = LABELS.flatMap((label) => WAYS.filter((way) => isThere(way, label)).map((way) => [way, label] as const));

/** An hour. */
const NIGHTLY = process.env['FAULT_SECONDS'];
const PHASES = ['while the server runs', 'before a reload', 'before a start'] as const;
type Phase = (typeof PHASES)[number];

interface Fault {
  /** The label, unless it is what several have. */
  readonly at?: Label;
  /** What is missing. */
  readonly fails: readonly Need[];
  /** Of the phases, those in which it has an effect. A file is read at the start; at a reload, what was read before stays. */
  readonly in?: readonly Phase[];
  readonly begin: (phase: Phase) => unknown;
  readonly end: () => unknown;
  /** A part of /readyz while it has an effect. */
  readonly part?: string;
  /** What `check` and `doctor` say after a start: where, why, and what to do. */
  readonly says?: readonly RegExp[];
  /** A gauge that is 0 meanwhile, and 1 without the fault. */
  readonly metric?: string;
  readonly notification?: string;
}

const hsm = softHsm();
const key = makeKey();
const rsa = keyPair('rsa:2048', 'recipient');
const [east, elsewhere, former] = [await makeCa('CN=East'), await makeCa('CN=Elsewhere'), await makeCa('CN=Former')];
const OLD = Date.UTC(2026, 1, 1);
const ofEast = await makeClient('CN=device-1', east);
const ofFormer = await makeClient('CN=device-1', former);
const pemOf = ({ der }: Issuer): string => encodePem('CERTIFICATE', der);
const identity = (of: Issuer): ClientIdentity => ({ cert: pemOf(of), key: pkcs8Pem(of.keys) });
let ra: ClientIdentity;

let upstream: Estuary;
let slapd: Slapd;
let directory: TcpRelay;
let relay: TcpRelay;
let front: Estuary;
let receiver: Server;
let receiverRelay: TcpRelay;
const received: string[] = [];
const holders = new Map<Label, ClientIdentity>();
const file = (name: string): string => join(front.dir, name);
const read = (name: string): string => readFileSync(file(name), 'utf8');
const reload = async (): Promise<string> => {
  const { status, json } = await front.admin('POST', '/admin/reload');
  expect(status).toBe(200);
  return JSON.stringify(json['faults']);
};

const keysIn = (name: string) => {
  const privateKey = createPrivateKey(read(name));
  return { privateKey, publicKey: createPublicKey(privateKey) };
};
/** As `scripts/quickstart` makes it. */
const issuer = (name: string, path: string): Issuer => ({
  subject: `CN=Quickstart ${name} CA,O=Estuary quickstart`,
  kind: 'ec:P-256',
  keys: keysIn(`${path}.key`),
  der: Buffer.of(),
});
/** Certifies the key of a CA again. */
async function certifyAgain({ subject, keys }: Issuer, by: Issuer | undefined, validity: Validity): Promise<string> {
  return pemOf(await makeCa(subject, { ...validity, keys, ...(by && { issuer: by }) }));
}
interface Validity {
  readonly notBefore?: number;
  readonly notAfter?: number;
}
const rootCa = (): Issuer => issuer('Root', 'ca/root');

/** In the past, or soon for what is to expire while the server runs. */
const expiryFor = (phase: Phase): number => (phase === 'while the server runs' ? Date.now() + 4000 : OLD);
/** Lets files expire that the server reads: then, or after it has read them. */
async function expire(phase: Phase, files: (notAfter: number) => Promise<Readonly<Record<string, string>>>) {
  const notAfter = expiryFor(phase);
  for (const [name, text] of Object.entries(await files(notAfter))) writeFileSync(file(name), text);
  if (phase !== 'while the server runs') return;
  expect(await reload()).toBe('[]');
  await pause(notAfter - Date.now() + 1000);
}

/** The files as they are without a fault. */
const sound = new Map<string, string>();
function restore(): void {
  for (const [name, text] of sound) writeFileSync(file(name), text);
}

const KEY = ['key', 'key since the start'] as const;

const FAULTS: Readonly<Record<string, Fault>> = {
  'another key in the file': {
    at: 'lab',
    fails: KEY,
    in: ['before a start'],
    begin: () => {
      const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
      writeFileSync(file('ca/lab.key'), privateKey.export({ type: 'pkcs8', format: 'pem' }));
    },
    end: restore,
    says: [/ca\[lab\]\.file\.private_key: is not the key of ca\[lab\]\.certificate/],
    notification: 'ca.unavailable',
  },
  'the certificate of a CA has expired': {
    at: 'lab',
    fails: ['valid certificate'],
    in: ['while the server runs', 'before a start'],
    begin: (phase) =>
      expire(phase, async (notAfter) => ({
        'ca/lab.pem': await certifyAgain(issuer('Lab', 'ca/lab'), rootCa(), { notAfter }),
      })),
    end: restore,
    says: [/ca\[lab\]\.certificate: (?:warning: )?the certificate expired on /],
    notification: 'ca.unavailable',
  },
  'a root in a chain has expired': {
    at: 'lab',
    fails: ['valid certificate'],
    in: ['while the server runs', 'before a start'],
    begin: (phase) =>
      expire(phase, async (notAfter) => ({ 'lab-root.pem': await certifyAgain(rootCa(), undefined, { notAfter }) })),
    end: restore,
    says: [/ca\[lab\]\.chain: (?:warning: )?"CN=Quickstart Root CA,O=Estuary quickstart" expired on /],
    notification: 'ca.unavailable',
  },
  'the token is away': {
    at: 'token',
    fails: KEY,
    begin: () => hsm.moveAway(),
    end: () => hsm.moveBack(),
    says: [/ca\[token\]\.pkcs11\.\w+: .+ \(|^failed +ca: token: .*Restore the token/m],
    metric: 'estuary_dependency_up{dependency="hsm",ca="token"}',
    notification: 'ca.unavailable',
  },
  'the upstream CA is away': {
    at: 'edge',
    fails: KEY,
    begin: () => relay.die(),
    end: () => relay.revive(),
    says: [/edge\b.*ECONNREFUSED.*Restore the CA or the connection/],
    metric: 'estuary_dependency_up{dependency="est",ca="edge"}',
    notification: 'upstream.unavailable',
  },
  'the directory is away': {
    fails: ['directory'],
    begin: () => directory.die(),
    end: () => directory.revive(),
    part: 'ldap',
    says: [/ldaps:\/\/localhost:\d+: .*ECONNREFUSED/],
    metric: 'estuary_dependency_up{dependency="ldap",ca=""}',
  },
  'the receiver of notifications is away': {
    fails: [],
    begin: () => receiverRelay.die(),
    end: () => receiverRelay.revive(),
    says: [/https:\/\/localhost:\d+: .*ECONNREFUSED.*notifications wait\./],
  },
  'the CRL of clients has expired': {
    fails: ['CRL of East'],
    begin: (phase) =>
      expire(phase, async (nextUpdate) => ({
        'crls/east.crl': encodePem('X509 CRL', await makeCrl(east, { nextUpdate })),
      })),
    end: restore,
    part: 'client_crl',
    says: [/tls\.client_auth\.crl: (?:warning: )?the CRL of "CN=East" expired on /],
    notification: 'client_crl.expired',
  },
  'the CRL of clients is damaged': {
    // Of trust anchors without a CRL, only those of this server still count.
    fails: ['CRL of East', 'RA'],
    in: ['before a start'],
    begin: () => writeFileSync(file('crls/east.crl'), 'damaged'),
    end: restore,
    part: 'files',
    says: [/tls\.client_auth\.crl: (?:warning: )?.*east\.crl contains no CRL /],
    notification: 'client_crl.expired',
  },
  'certificates in other files have expired': {
    fails: ['former CA', 'RA', 'recipient', 'administrators'],
    begin: (phase) =>
      expire(phase, async (notAfter) => {
        const other = pemOf(await makeCa('CN=Elsewhere', { notAfter }));
        const before = pemOf(await makeCa('CN=Former', { notAfter }));
        const replaced = (name: string): string =>
          (sound.get(name) ?? '').replace(pemOf(elsewhere), other).replace(pemOf(former), before);
        return {
          'upstream-roots.pem': replaced('upstream-roots.pem'),
          'tls/client-anchors.pem': replaced('tls/client-anchors.pem'),
          'partners.pem': replaced('partners.pem'),
          'former.pem': before,
          'ra.pem': pemOf(await makeRa(notAfter)),
          'recipient.pem': pemOf(await makeRecipient(notAfter)),
          'admin/ca.pem': await certifyAgain(issuer('Admin', 'admin/ca'), undefined, { notAfter }),
        };
      }),
    end: restore,
    says: [
      /ca\[edge\]\.upstream_trust_anchors: (?:warning: )?"CN=Elsewhere" expired on .*it verifies nothing/,
      /tls\.client_auth\.trust_anchors: (?:warning: )?"CN=Elsewhere" expired on .*it verifies nothing/,
      /ca\[lab\]\.client_issuers: (?:warning: )?"CN=Elsewhere" expired on .*it verifies nothing/,
      /ca\[lab\]\.profile\.renewal_issuers: (?:warning: )?"CN=Former" expired on .*it verifies nothing/,
      /cmc\.ra_certificates\[0\]: (?:warning: )?the certificate of "CN=RA" expired on .*not accepted/,
      /serverkeygen\.keys\[0\]\.certificate: (?:warning: )?the certificate expired on .*no key is encrypted/,
      /admin\.tls\.trust_anchors: (?:warning: )?"CN=Quickstart Admin CA,O=Estuary quickstart" expired on /,
    ],
  },
  'other files are damaged': {
    fails: [],
    // A start ends with exit code 1.
    in: [],
    begin: (phase) => {
      if (phase === 'before a start') return;
      for (const name of OTHER_FILES) writeFileSync(file(name), 'damaged');
    },
    end: restore,
  },
};

const OTHER_FILES = [
  ...['upstream-roots.pem', 'tls/client-anchors.pem', 'partners.pem', 'former.pem', 'ra.pem', 'recipient.pem'],
  ...['admin/ca.pem', 'tls/server.pem', 'directory-ca.pem'],
];

const makeRa = (notAfter?: number): Promise<Issuer> =>
  makeClient('CN=RA', elsewhere, {
    extensions: [keyUsage('digitalSignature'), extKeyUsage(OID.clientAuth, OID.cmcRA)],
    ...(notAfter === undefined ? {} : { notAfter }),
  });
const makeRecipient = (notAfter?: number): Promise<Issuer> =>
  makeClient('CN=Recipient', elsewhere, {
    kind: 'rsa:2048',
    keys: rsa,
    extensions: [keyUsage('keyEncipherment')],
    ...(notAfter === undefined ? {} : { notAfter }),
  });

beforeAll(async () => {
  upstream = await Estuary.start();
  relay = await TcpRelay.start(upstream.server.port('est'));
  slapd = await Slapd.start();
  directory = await TcpRelay.start(slapd.ports.ldaps);
  const port = await freePort();
  receiverRelay = await TcpRelay.start(port);
  const { token } = await upstream.otp({ client_id: 'front', max_uses: 1000 });
  const ca = await makeCa('CN=Token', { slot: 'token' });
  writeFileSync(hsm.file('token.key'), pkcs8Pem(ca.keys));
  hsm.addToken('est');
  hsm.importKey('est', hsm.file('token.key'), 'issuing', '01');
  ra = identity(await makeRa());
  const recipient = pemOf(await makeRecipient());
  front = await startFront({
    env: { ...hsm.env, TEST_HSM_PIN: PIN },
    listeners: ['est', 'admin', 'publication'],
    anchors: join(upstream.dir, 'ca/root.pem'),
    ca: atEst(relay.port, token),
    configure: (config, dir) => {
      const write = (name: string, text: string): void => writeFileSync(join(dir, name), text);
      write('ca/token.pem', pemOf(ca));
      for (const one of [ca, east, elsewhere, former]) appendFileSync(join(dir, 'tls/client-anchors.pem'), pemOf(one));
      appendFileSync(join(dir, 'upstream-roots.pem'), pemOf(elsewhere));
      if (!Array.isArray(config['ca'])) throw new TypeError('no [[ca]]');
      config['ca'].push({
        label: 'token',
        driver: 'pkcs11',
        certificate: 'ca/token.pem',
        pkcs11: { module: SOFTHSM_MODULE, token_label: 'est', pin_env: 'TEST_HSM_PIN', key_label: 'issuing' },
      });
      // Passwords of both kinds at one label are refused.
      for (const index of LABELS.keys()) section(caSection(config, index), 'auth')['methods'] = ['mtls', 'otp'];
      config['label'] = LABELS.slice(0, 3).map((ca) => ({
        name: `${ca}-ldap`,
        ca,
        auth: { methods: ['ldap'] },
        profile: {},
      }));
      write('former.pem', pemOf(former));
      write('partners.pem', pemOf(east) + pemOf(elsewhere));
      write('lab-root.pem', readFileSync(join(dir, 'ca/root.pem'), 'utf8'));
      const lab = caSection(config, 1);
      Object.assign(lab, { chain: 'lab-root.pem', client_issuers: ['own', 'partners.pem'] });
      section(lab, 'profile')['renewal_issuers'] = 'former.pem';
      write('ra.pem', ra.cert);
      config['cmc'] = {
        certificate: 'tls/server.pem',
        private_key: 'tls/server.key',
        ra_certificates: ['ra.pem'],
      };
      write('recipient.pem', recipient);
      config['serverkeygen'] = { encryption: 'optional', keys: [{ id: 'aa01', certificate: 'recipient.pem' }] };
      mkdirSync(join(dir, 'crls'));
      write('crls/README', 'not a CRL');
      symlinkSync('nowhere', join(dir, 'crls/dangling'));
      section(config, 'tls', 'client_auth')['crl'] = 'crls';
      Object.assign(section(config, 'auth', 'ldap'), searchesAsReader(dir, slapd, directory.port));
      const [tlsKey, cert] = ['tls/server.key', 'tls/server.pem'].map((name) => readFileSync(join(dir, name)));
      receiver = createServer({ key: tlsKey, cert }, (request, response) => {
        request.setEncoding('utf8').on('data', (body: string) => received.push(body));
        request.on('end', () => response.writeHead(204).end());
      }).listen(port);
      const url = `https://localhost:${receiverRelay.port}/`;
      config['notifications'] = [{ kind: 'webhook', name: 'hook', trust_anchors: 'ca/root.pem', url }];
      const publication = { enabled: true, host: '127.0.0.1', port: 0, base_url: 'http://pki.example.test/' };
      Object.assign(section(config, 'publication'), publication);
    },
  });
  writeFileSync(file('crls/east.crl'), encodePem('X509 CRL', await makeCrl(east)));
  expect(await reload()).toBe('[]');
  for (const name of [...OTHER_FILES, 'crls/east.crl', 'ca/lab.pem', 'ca/lab.key', 'lab-root.pem'])
    sound.set(name, read(name));
  for (const label of LABELS) {
    const answer = await enrollAt(front, key, 'device-1', { path: `${label}/simpleenroll`, names: [] });
    holders.set(label, { cert: certificatePem(answer), key: key.pem });
  }
});
afterAll(async () => {
  await front.stop();
  for (const one of [relay, directory, receiverRelay]) await one.die();
  receiver.close();
  await upstream.stop();
  await slapd.stop();
  hsm.remove();
});

const published = async (path: string, body?: Buffer): Promise<Response> =>
  fetch(`http://127.0.0.1:${front.server.port('publication')}/${path}`, {
    signal: AbortSignal.timeout(20_000),
    ...(body === undefined
      ? {}
      : { method: 'POST', body: new Uint8Array(body), headers: { 'Content-Type': 'application/ocsp-request' } }),
  });

async function statusOf(way: Way, label: Label): Promise<number> {
  const client = holders.get(label);
  if (client === undefined) throw new Error('no certificate');
  const der = simpleCsr(key, 'device-1');
  const enroll = async (credential: object, operation = 'simpleenroll', csr = der) =>
    (await front.enroll(onTheWire(csr), { ...credential, path: `${label}/${operation}` })).status;
  const cmc = async (by: ClientIdentity) =>
    (await postCmc(front, await requestBy(by, { reqSequence: [tcr(1, der)] }), by, `${label}/fullcmc`)).status;
  switch (way) {
    case 'otp':
      return enroll({ password: (await front.otp()).token });
    case 'certificate':
      return enroll({ client });
    case 'simplereenroll':
      return enroll({ client }, 'simplereenroll');
    case 'foreign':
      return enroll({ client: identity(ofEast) });
    case 'former':
      return enroll({ client: identity(ofFormer) }, 'simplereenroll');
    case 'ldap': {
      const Authorization = `Basic ${Buffer.from(`device-1:${PASSWORD}`).toString('base64')}`;
      return (await front.enroll(onTheWire(der), { headers: { Authorization }, path: `${label}-ldap/simpleenroll` }))
        .status;
    }
    case 'serverkeygen': {
      const identifier = csrAttribute(OID.asymmetricDecryptKeyIdentifier, octetString(Buffer.from('aa01', 'hex')));
      return enroll({ client }, 'serverkeygen', buildCsr(key, { attributes: [identifier] }));
    }
    case 'fullcmc':
      return cmc(client);
    case 'ra':
      return cmc(ra);
    case 'csrattrs':
    case 'cacerts':
      return (await front.est(`${label}/${way}`)).status;
    case 'crl':
      return (await published(`crl/${label}.crl`)).status;
    case 'ocsp': {
      const [certificate] = parsePemCertificates(read(OWN_CA[label]));
      if (certificate === undefined) throw new Error('no certificate');
      const serial = new X509Certificate(client.cert).serialNumber.toLowerCase();
      const response = await published(`ocsp/${label}`, ocspRequest({ certificate }, [serial]));
      // RFC 6960 §4.2.1: a response without responseBytes reports an error.
      return response.ok && (await response.arrayBuffer()).byteLength > 5 ? 200 : 503;
    }
    case 'admin':
      return (await front.admin('GET', `/admin/certificates?ca=${label}&limit=1`)).status;
    case 'administrator': {
      const [cert, adminKey] = [read('admin/client.pem'), read('admin/client.key')];
      const tls = { ca: front.root, cert, key: adminKey };
      return (await call({ port: front.server.port('admin'), path: '/admin/cas', tls })).status;
    }
  }
}

const OWN_CA: Readonly<Record<Label, string>> = {
  devices: 'ca/issuing.pem',
  lab: 'ca/lab.pem',
  token: 'ca/token.pem',
  edge: 'upstream-roots.pem',
};

/** What fails, of these. */
async function found(cells = CELLS): Promise<Record<string, number>> {
  const failed: Record<string, number> = {};
  for (const [way, label] of cells) {
    const status = await statusOf(way, label);
    if (status !== 200 && status !== 204) failed[`${way} at ${label}`] = status;
  }
  return failed;
}

/** Where a fault has an effect, and all of a label that has none: "devices" stands for the others, except in the nightly form. */
const near = ({ at, fails }: Fault): typeof CELLS =>
  NIGHTLY === undefined
    ? CELLS.filter(([way, label]) => [at, 'devices'].includes(label) || NEEDS[way].some((need) => fails.includes(need)))
    : CELLS;

function expected({ at, fails, in: phases = PHASES }: Fault, phase: Phase): Record<string, number> {
  if (!phases.includes(phase)) return {};
  const isMissing = (need: Need, label: Label): boolean =>
    (at === undefined || at === label) &&
    fails.includes(need) &&
    (need !== 'key since the start' || phase === 'before a start');
  const failing = CELLS.flatMap(([way, label]) => {
    const missing = NEEDS[way].find((need) => isMissing(need, label));
    return missing === undefined ? [] : [[`${way} at ${label}`, WITHOUT[missing]] as const];
  });
  return Object.fromEntries(failing);
}

describe.skipIf(!requires('softhsm', 'slapd'))('only what needs the part that fails fails', () => {
  test('nothing without a fault', async () => {
    expect(await found()).toEqual({});
  });

  describe.each(Object.entries(FAULTS))('%s', (_, fault) => {
    test.each(PHASES)('%s', { timeout: 120_000 }, async (phase) => {
      const { at, in: phases = PHASES, begin, end } = fault;
      if (phase === 'before a start') await front.server.stop();
      received.splice(0);
      // What was signed before a fault is sent during it.
      if (at !== undefined && isThere('ocsp', at) && phase !== 'before a start') await statusOf('ocsp', at);
      await begin(phase);
      try {
        if (phase === 'before a start') await front.restart();
        if (phase === 'before a reload') await reload();
        const isAffected = phases.includes(phase);
        // Requests in flight when a token is lost get 500.
        if (isAffected && at !== undefined)
          await until('the fault is noticed', async () => (await statusOf('otp', at)) === 503);
        expect(await found(near(fault))).toEqual(expected(fault, phase));
        if (phase === 'before a start') await expectReports(fault);
      } finally {
        await end();
        await reload();
      }
      if (at !== undefined) await until('the label issues again', async () => (await statusOf('otp', at)) === 200);
      if (phase !== 'before a start') return;
      await expect.poll(() => found(near(fault)), { timeout: 30_000, interval: 200 }).toEqual({});
      await expectEnd(fault);
    });
  });

  const SECONDS = Number(NIGHTLY ?? 5);

  test(
    'a token, an upstream CA and the certificate of a CA fail at once under load: another label answers each request, and what returns is used',
    { timeout: SECONDS * 1000 + 300_000 },
    async () => {
      const affected = ['lab', 'token', 'edge'] as const;
      const from = front.server.log().length;
      for (const name of ['the certificate of a CA has expired', 'the token is away', 'the upstream CA is away'])
        await FAULTS[name]?.begin('while the server runs');
      for (const label of affected) await until(`${label} fails`, async () => (await statusOf('otp', label)) === 503);
      const statuses = new Set<string>();
      const one = async (way: Way, label: Label): Promise<void> => {
        const status = await statusOf(way, label).catch(String);
        statuses.add(`${label === 'devices' ? 'devices' : 'affected'}: ${status}`);
      };
      const ways = WAYS.filter((way) => isThere(way, 'devices'));
      const running: Promise<void>[] = [];
      for (let tick = 0, end = Date.now() + SECONDS * 1000; Date.now() < end; tick++) {
        running.push(one(ways[tick % ways.length] ?? 'otp', 'devices'));
        if (tick % 5 === 0) running.push(...affected.map((label) => one('otp', label)));
        await pause(200);
      }
      await Promise.all(running);
      expect([...statuses].sort()).toEqual(['affected: 503', 'devices: 200', 'devices: 204']);
      const begun = new Set(
        (
          await until('each fault is logged', () => {
            const lines = front.server.log().slice(from);
            const parts = lines.filter(({ msg }) => msg === 'a component is unhealthy').map(({ part }) => part);
            return new Set(parts).size >= affected.length ? parts : undefined;
          })
        ).toSorted(),
      );
      expect([...begun]).toEqual(['ca:edge', 'ca:lab', 'ca:token']);
      hsm.moveBack();
      await relay.revive();
      for (const label of ['token', 'edge'] as const)
        await until(`${label} issues`, async () => (await statusOf('otp', label)) === 200);
      expect(await statusOf('otp', 'lab')).toBe(503);
      restore();
      expect(await reload()).toBe('[]');
      expect(await found()).toEqual({});
    },
  );
});

/** What an operator is shown. */
async function expectReports({ at, part = at && `ca:${at}`, says = [], metric, notification }: Fault): Promise<void> {
  for (const command of ['check', 'doctor']) {
    const args = [SERVER, command, '--config', file('est.toml')];
    const { output } = await runAny(NODE, args, { env: { ...hsm.env, TEST_HSM_PIN: PIN } });
    for (const one of says) expect.soft(output, command).toMatch(one);
  }
  if (part !== undefined) {
    const parts = async () => (await front.admin('GET', '/readyz')).json['parts'];
    await expect.poll(parts).toMatchObject({ [part]: expect.stringMatching(/down|degraded/) as string });
    await untilLogged(front.server, { part, msg: 'a component is unhealthy' });
  }
  if (metric !== undefined) await until(`${metric} 0`, async () => (await metrics()).includes(`${metric} 0`));
  if (notification !== undefined) await expect.poll(() => received.join()).toContain(`"type":"${notification}"`);
}

/** That it is over. */
async function expectEnd({ at, part = at && `ca:${at}`, metric }: Fault): Promise<void> {
  if (part !== undefined) await untilLogged(front.server, { part, msg: 'a component is healthy again' });
  if (metric !== undefined) await until(`${metric} 1`, async () => (await metrics()).includes(`${metric} 1`));
}

async function metrics(): Promise<string> {
  const [port, headers] = [front.server.port('admin'), { Authorization: `Bearer ${front.adminToken}` }];
  return (await call({ port, path: '/metrics', tls: { ca: front.root }, headers })).text;
}
