/**
 * `check --fleet` predicts what each holder gets when it renews over TLS under another configuration, and whether it still trusts the server.
 * `ESTUARY_FLEET=1000` and `ESTUARY_RUNS=6` are the nightly size, `ESTUARY_SEED` another fleet and other configurations.
 */
import { X509Certificate } from 'node:crypto';
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SignJWT } from 'jose';
import { parse, stringify, type TomlTable } from 'smol-toml';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { COMMANDS } from '../../src/main/commands/table.ts';
import { runCommand } from '../../src/main/commands/run-command.ts';
import type { FleetReport } from '../../src/main/fleet-check/fleet-check.ts';
import { parseSignedData } from '../../src/pki/cms/cms.ts';
import { OID } from '../../src/pki/der/oids.ts';
import { encodePem } from '../../src/pki/der/pem.ts';
import { type Certificate, parseCertificate } from '../../src/pki/x509/certificate.ts';
import { encodeSubjectAltName, findExtension } from '../../src/pki/x509/extensions.ts';
import { type GeneralName, parseGeneralNameText, SAN_KINDS } from '../../src/pki/x509/general-name.ts';
import { parseDistinguishedName } from '../../src/pki/x509/name.ts';
import * as certificates from '../support/certificates.ts';
import { requestBy, tcr } from '../support/cmc.ts';
import { textOf } from '../support/command.ts';
import {
  buildCsr,
  extension,
  extensionRequest,
  type KeyKind,
  makeKey,
  onTheWire,
  type TestKey,
} from '../support/csr.ts';
import {
  caSection,
  certificatePem,
  certificatesOf,
  type ClientIdentity,
  Estuary,
  section,
} from '../support/estuary.ts';
import { openTls } from '../support/https.ts';
import { pkcs8Pem } from '../support/keys.ts';
import { Random } from '../support/random.ts';
import { requires } from '../support/requires.ts';
import { readPkcs8, readServerKey } from '../support/server-key.ts';
import { PASSWORD, Slapd } from '../support/slapd.ts';
import { until } from '../support/until.ts';

const SIZE = Number(process.env['ESTUARY_FLEET'] ?? 38);
/** Configurations, each of which is compared with each. */
const CONFIGURATIONS = Number(process.env['ESTUARY_RUNS'] ?? 3);
const SEED = Number(process.env['ESTUARY_SEED'] ?? 57);
const DAY = 86_400_000;
/** Enough for the nightly size. */
const TIMEOUT = 7_200_000;
/** Milliseconds until a device expires. */
const SOLD_AFTER = 1100;
const SERVER_AUTH = '1.3.6.1.5.5.7.3.1';
const random = new Random(SEED);
const one = <T>(...items: readonly T[]): T => random.pick(items) ?? expect.fail('nothing to choose from');

// --- the fleet -----------------------------------------------------------------------------------------------------

const STATES = [
  ...(['plain', 'plain', 'plain', 'failing', 'renewed', 'moving', 'clinging', 'returned', 'revoked', 'held'] as const),
  ...(['drawer', 'attic', 'forgotten', 'rescued', 'unseen', 'former'] as const),
  ...(['disabled', 'sold', 'deleted'] as const),
] as const;
type State = (typeof STATES)[number];
/** Imported, expired so many days ago. */
const EXPIRED: Partial<Record<State, number>> = { drawer: 5, attic: 20, forgotten: 100, rescued: 20 };

interface Member {
  readonly name: string;
  readonly state: State;
  readonly label: 'devices' | 'lab' | 'plant';
  /** Whether its requests name the label. */
  readonly named: boolean;
  readonly kind: KeyKind;
  readonly tls: 'TLSv1.2' | 'TLSv1.3';
  readonly subject: string;
  readonly sans: readonly GeneralName[];
  /** Certificates with which it renews, the newest first. */
  held: ClientIdentity[];
  /** PEM of what `cacerts` gave it. */
  given: string[];
}

function drawn(n: number): Member {
  const name = `unit-${n}`;
  const state = STATES[n % STATES.length] ?? 'plain';
  const isDevice = ['disabled', 'sold', 'deleted'].includes(state);
  const isImported = state in EXPIRED || state === 'unseen';
  const label = isDevice
    ? 'plant'
    : isImported || state === 'former'
      ? 'devices'
      : one('devices', 'devices', 'lab', 'plant');
  const kinds = [
    ...[`email:${name}@example.com`, `URI:urn:example:${name}`],
    ...(label === 'devices' ? [`DNS:*.${name}.example`, `DNS:_est.${name}.example`, `upn:${name}@example.com`] : []),
    ...(label === 'devices'
      ? [`hardware_module:1.2.3:${String(n).padStart(4, '0')}`, `permanent_identifier:1.2.3:${name}`]
      : []),
    ...(label === 'devices' ? [`srv:_est.${name}.example`, `registered_id:1.2.3.${n}`, 'other:1.2.4:0c0161'] : []),
  ];
  const host = one(`${name}.plant.example`, `${name}.plant.example`, `${name}.other.example`);
  return {
    ...{ name, state, label, held: [], given: [] },
    named: isImported || label !== 'devices' || one(true, false),
    kind: one('P-256', 'P-256', 'P-384', 'ed25519', 'rsa2048'),
    // It is unknown of certificates that were never used.
    tls: state in EXPIRED || state === 'unseen' ? 'TLSv1.3' : one('TLSv1.2', 'TLSv1.3'),
    subject: one(`CN=${name}`, `CN=${name}`, `CN=${name},O=Example`, `serialNumber=${n},CN=${name}`),
    sans: one([], [`DNS:${host}`], [`DNS:${host}`, `IP:10.0.${n >> 8}.${n & 255}`], [one(...kinds)]).map(
      parseGeneralNameText,
    ),
  };
}

const RSA: TestKey[] = [];
/** RSA keys take long, so a few serve all. */
function newKey(kind: KeyKind): TestKey {
  if (kind !== 'rsa2048') return makeKey(kind);
  if (RSA.length < 3) RSA.push(makeKey(kind));
  const [first = makeKey(kind)] = RSA;
  RSA.push(...RSA.splice(0, 1));
  return first;
}

const csrFor = (key: TestKey, subject: Buffer, names: Buffer | undefined) =>
  buildCsr(key, {
    subject,
    attributes: names === undefined ? [] : [extensionRequest(extension(OID.subjectAltName, names))],
  });
const firstCsr = (key: TestKey, { subject, sans }: Pick<Member, 'subject' | 'sans'>) =>
  csrFor(key, parseDistinguishedName(subject).der, sans.length === 0 ? undefined : encodeSubjectAltName(sans));
const certificateOf = ({ cert }: ClientIdentity): Certificate => parseCertificate(new X509Certificate(cert).raw);
const serialOf = (identity: ClientIdentity): string => certificateOf(identity).serialNumber;
const pathOf = ({ label, named }: Member, operation: string) => (named ? `${label}/${operation}` : operation);

// --- the server ----------------------------------------------------------------------------------------------------

type Ca = certificates.Issuer;
const CAS: Record<string, Ca> = {};
const ca = (name: string): Ca => CAS[name] ?? expect.fail(name);
let estuary: Estuary;
let slapd: Slapd | undefined;
const tokenKey = makeKey();
/** PEM of all roots. */
let roots = '';
let vendor: ClientIdentity;
const fleet = Array.from({ length: SIZE }, (_, n) => drawn(n));
const file = (name: string) => join(estuary.dir, name);
const pem = (...all: readonly Ca[]) => all.map(({ der }) => encodePem('CERTIFICATE', der)).join('');

async function makePki(dir: string): Promise<void> {
  const times = { notBefore: Date.now() - 200 * DAY, notAfter: Date.now() + 3000 * DAY };
  for (const name of ['root', 'labroot', 'vendor'])
    CAS[name] = await certificates.makeCa(`CN=Fleet ${name}`, { ...times, slot: `fleet ${name}` });
  for (const [name, by] of [
    ['issuing', 'root'],
    ['former', 'root'],
    ['next', 'root'],
    ['lab', 'labroot'],
  ] as const) {
    const options = { ...times, issuer: ca(by), slot: `fleet ${name}`, pathLength: 0 };
    CAS[name] = await certificates.makeCa(`CN=Fleet ${name}`, options);
  }
  const put = (name: string, text: string) => writeFileSync(join(dir, name), text, { mode: 0o600 });
  for (const [name, { keys }] of Object.entries(CAS)) {
    put(`ca/f-${name}.pem`, pem(ca(name)));
    put(`ca/f-${name}.key`, pkcs8Pem(keys));
  }
  const { serialNumber } = parseCertificate(ca('former').der);
  const crl = await certificates.makeCrl(ca('root'), { revoked: [serialNumber] });
  put('ca/f-root.crl', encodePem('X509 CRL', crl));
  const { keys, subject: name } = ca('issuing');
  const expired = { ...times, notAfter: Date.now() - DAY, issuer: ca('root'), keys, pathLength: 0 };
  put('ca/f-short.pem', pem(await certificates.makeCa(name, expired)));
  put('ca/f-both.pem', pem(ca('former'), ca('issuing')));
  put('tls/all.pem', pem(ca('root'), ca('labroot'), ca('vendor')));
  for (const [name, by] of [
    ['server-a', 'root'],
    ['server-b', 'labroot'],
    ['server-c', 'root'],
    ['server-d', 'vendor'],
  ] as const) {
    const extensions = [
      certificates.keyUsage('digitalSignature'),
      certificates.extKeyUsage(SERVER_AUTH),
      certificates.subjectAltName(certificates.dns('localhost')),
    ];
    const leaf = await certificates.makeClient('CN=localhost', ca(by), { ...times, slot: name, extensions });
    put(`tls/${name}.pem`, pem(leaf));
    put(`tls/${name}.key`, pkcs8Pem(leaf.keys));
  }
  const bootstrap = await certificates.makeClient('CN=vendor device', ca('vendor'), times);
  vendor = { cert: pem(bootstrap), key: pkcs8Pem(bootstrap.keys) };
  roots = readFileSync(join(dir, 'tls/all.pem'), 'latin1');
}

const profile = (config: TomlTable, index = 0) => section(caSection(config, index), 'profile');
const clientAuth = (config: TomlTable) => section(config, 'tls', 'client_auth');
const plant = (config: TomlTable): TomlTable => section({ label: (config['label'] as TomlTable[])[0] ?? {} }, 'label');
function base(config: TomlTable, dir: string): void {
  const jwk = { ...tokenKey.publicKey.export({ format: 'jwk' }), alg: 'ES256' };
  writeFileSync(join(dir, 'jwks.json'), JSON.stringify({ keys: [jwk] }));
  const tokens = { issuer: 'https://issuer.example', audience: 'est', jwks_file: 'jwks.json', algorithms: ['ES256'] };
  Object.assign(section(config, 'auth', 'jwt'), tokens);
  Object.assign(section(config, 'serverkeygen'), { encryption: 'optional' });
  if (slapd !== undefined) {
    writeFileSync(join(dir, 'directory.pem'), slapd.ca);
    const url = `ldaps://localhost:${slapd.ports.ldaps}`;
    const user_dn = 'uid={username},ou=devices,dc=example';
    Object.assign(section(config, 'auth', 'ldap'), { url, trust_anchors: 'directory.pem', timeout: 60, user_dn });
  }
  const methods = ['mtls', 'cmc', 'jwt'];
  caSection(config)['auth'] = { methods: [...methods, 'otp'] };
  caSection(config, 1)['auth'] = { methods: [...methods, slapd === undefined ? 'otp' : 'ldap'] };
  Object.assign(section(config, 'admin', 'tls'), { certificate: 'tls/server.pem', private_key: 'tls/server.key' });
  Object.assign(section(config, 'tls'), { certificate: 'tls/server-a.pem', private_key: 'tls/server-a.key' });
  clientAuth(config)['trust_anchors'] = 'tls/all.pem';
  Object.assign(caSection(config), { certificate: 'ca/f-issuing.pem', chain: 'ca/f-root.pem' });
  Object.assign(caSection(config, 1), { certificate: 'ca/f-lab.pem', chain: 'ca/f-labroot.pem' });
  section(caSection(config), 'file')['private_key'] = 'ca/f-issuing.key';
  section(caSection(config, 1), 'file')['private_key'] = 'ca/f-lab.key';
  Object.assign(profile(config), { renewal_grace_days: 10, renewal_issuers: 'ca/f-former.pem' });
  section(profile(config), 'san')['allowed'] = [...SAN_KINDS, 'other:1.2.4'];
  Object.assign(section(profile(config), 'san'), { wildcards: true, dns_underscore: true });
  // It is copied.
  config['store'] = { path: 'data/est.db' };
  config['label'] = [{ name: 'plant', ca: 'devices', devices: 'required', auth: { methods: ['mtls', 'otp'] } }];
}

const issuingWith =
  (name: string) =>
  (config: TomlTable): void => {
    caSection(config)['certificate'] = `ca/f-${name}.pem`;
    section(caSection(config), 'file')['private_key'] = `ca/f-${name}.key`;
  };

const admin = async (method: string, path: string, body?: unknown) => {
  const { status, json } = await estuary.admin(method, path, body);
  expect(status, `${method} ${path}: ${JSON.stringify(json)}`).toBeLessThan(300);
};

/** Sends a request of a member over TLS as it does. */
const send = (
  member: Member,
  csr: Buffer,
  operation: string,
  more: { client?: ClientIdentity; authorization?: string },
) =>
  estuary.enroll(onTheWire(csr), {
    ...(more.client && { client: more.client }),
    ...(more.authorization !== undefined && { headers: { Authorization: more.authorization } }),
    path: pathOf(member, operation),
    tls: { ca: roots, maxVersion: member.tls },
  });

async function renewed(member: Member, client: ClientIdentity): Promise<ClientIdentity | 202 | undefined> {
  const { subject, extensions } = certificateOf(client);
  const key = newKey(member.kind);
  const csr = csrFor(key, subject.der, findExtension(extensions, OID.subjectAltName)?.value);
  // The handshake may fail.
  const answer = await send(member, csr, 'simplereenroll', { client }).catch(() => undefined);
  // A CA that has expired strands the holders whose paths need it; others wait for its next certificate.
  const isStranded = answer?.text.includes('is not available') === true;
  if (answer?.status === 202 || (answer?.status === 503 && !isStranded)) return 202;
  return answer?.status === 200 ? { cert: certificatePem(answer), key: key.pem } : undefined;
}
const mustRenew = async (member: Member, client: ClientIdentity) => {
  const next = await renewed(member, client);
  return next === undefined || next === 202 ? expect.fail(`${member.name} is not renewed`) : next;
};

/** A certificate for the names of a member. */
async function certified(
  { subject, sans }: Member,
  issuer: string,
  spec: { notBefore: number; notAfter: number; keys: TestKey },
) {
  const extensions = [
    certificates.keyUsage('digitalSignature'),
    certificates.extKeyUsage(OID.clientAuth),
    ...(sans.length === 0 ? [] : [certificates.subjectAltName(...sans)]),
  ];
  const { der } = await certificates.makeClient(subject, ca(issuer), { ...spec, extensions });
  return { cert: encodePem('CERTIFICATE', der), key: spec.keys.pem };
}

async function imported(member: Member): Promise<ClientIdentity> {
  const days = EXPIRED[member.state];
  const notAfter = Date.now() + (days === undefined ? 30 : -days) * DAY;
  const times = { notBefore: notAfter - 60 * DAY, notAfter, keys: newKey(member.kind) };
  const identity = await certified(member, 'issuing', times);
  await admin('POST', '/admin/certificates', { ca: 'devices', pem: identity.cert });
  return identity;
}

async function enrolled(member: Member): Promise<ClientIdentity> {
  const key = newKey(member.kind);
  const csr = firstCsr(key, member);
  const hasOtps = member.label !== 'lab' || slapd === undefined;
  // Tokens and accounts are for their own names only.
  const byName =
    member.sans.length === 0 && member.subject === `CN=${member.name}` ? ['jwt', hasOtps ? 'jwt' : 'ldap'] : [];
  const passwords = hasOtps ? ['otp', 'serverkeygen'] : [];
  const method = one(...passwords, ...(member.label === 'plant' ? [] : ['certificate', 'cmc', ...byName]));
  const times = { notBefore: Date.now() - DAY, notAfter: Date.now() + DAY, keys: makeKey() };
  const client = await certified(member, 'vendor', times);
  if (method === 'cmc') {
    const message = await requestBy(client, { reqSequence: [tcr(1, csr)] });
    const options = { path: pathOf(member, 'fullcmc'), client, tls: { ca: roots, maxVersion: member.tls } };
    const headers = { 'Content-Type': 'application/pkcs7-mime' };
    const answer = await estuary.est(options.path, { ...options, headers, body: message.toString('base64') });
    const { certificates: all } = parseSignedData(Buffer.from(answer.text, 'base64'));
    const certificate = all.map(parseCertificate).find(({ isCa }) => !isCa);
    return { cert: encodePem('CERTIFICATE', certificate?.der ?? expect.fail(answer.text)), key: key.pem };
  }
  const operation = method === 'serverkeygen' ? method : 'simpleenroll';
  const answer = await send(
    member,
    csr,
    operation,
    method === 'certificate' ? { client } : await passwordOf(member, method),
  );
  expect(answer.status, `${method}: ${answer.text}`).toBe(200);
  if (method !== 'serverkeygen') return { cert: certificatePem(answer), key: key.pem };
  const { certificate, key: made } = readServerKey(answer);
  return { cert: certificate.toString(), key: readPkcs8(made).export({ format: 'pem', type: 'pkcs8' }) };
}

/** How a member without a certificate authenticates. */
async function passwordOf({ name }: Member, method: string): Promise<{ readonly authorization: string }> {
  const basic = (user: string, password: string) => ({
    authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`,
  });
  if (method === 'ldap') return basic(name, PASSWORD);
  if (method !== 'jwt') return basic(name, (await estuary.otp({ client_id: name })).token);
  const claims = { iss: 'https://issuer.example', aud: 'est', exp: Math.floor(Date.now() / 1000) + 3600, sub: name };
  const token = await new SignJWT(claims).setProtectedHeader({ alg: 'ES256' }).sign(tokenKey.privateKey);
  return { authorization: `Bearer ${token}` };
}

async function use(member: Member, client: ClientIdentity): Promise<void> {
  const tls = { ca: roots, maxVersion: member.tls };
  const answer = await estuary.est(pathOf(member, 'cacerts'), { client, tls });
  expect(answer.status, answer.text).toBe(200);
  member.given = certificatesOf(answer).map((der) => encodePem('CERTIFICATE', der));
}

/** Brings a member into its state. */
async function become(member: Member): Promise<void> {
  const { state, label, name } = member;
  if (label === 'plant') await admin('POST', '/admin/devices', { id: name });
  const isImported = state in EXPIRED || state === 'unseen';
  const first = isImported ? await imported(member) : await enrolled(member);
  member.held = [first];
  const isUsed =
    !(state in EXPIRED) && state !== 'unseen' && state !== 'moving' && (state !== 'plain' || one(true, false));
  if (isUsed) await use(member, first);
  const revoke = (client: ClientIdentity, reason: string) =>
    admin('POST', `/admin/certificates/${serialOf(client)}/revoke?ca=${label === 'lab' ? 'lab' : 'devices'}`, {
      reason,
    });
  const change = (fields: object) => admin('PATCH', `/admin/devices/${name}`, fields);
  if (state === 'failing')
    expect(
      (
        await send(member, firstCsr(newKey(member.kind), { ...member, subject: 'CN=other' }), 'simplereenroll', {
          client: first,
        })
      ).status,
    ).toBe(403);
  if (state === 'renewed' || state === 'moving') {
    member.held = [await mustRenew(member, first)];
    if (state === 'renewed') for (const client of member.held) await use(member, client);
  }
  if (state === 'clinging') {
    member.held = [await mustRenew(member, first), first];
    await use(member, first);
  }
  if (state === 'returned') await revoke(await mustRenew(member, first), 'superseded');
  if (state === 'revoked') {
    await revoke(first, 'keyCompromise');
    member.held = [];
  }
  if (state === 'held') {
    await revoke(first, 'certificateHold');
    member.held = [];
  }
  if (state === 'rescued')
    await admin('POST', `/admin/certificates/${serialOf(first)}/rescue?ca=devices`, { for_seconds: 86_400 });
  if (state === 'disabled') await change({ enabled: false });
  if (state === 'sold') await change({ not_after: new Date(Date.now() + SOLD_AFTER).toISOString() });
  if (state === 'deleted') await admin('DELETE', `/admin/devices/${name}`);
}

beforeAll(async () => {
  slapd = requires('slapd') ? await Slapd.start(fleet.map(({ name }) => name)) : undefined;
  estuary = await Estuary.start();
  await estuary.server.stop();
  rmSync(file('data'), { recursive: true });
  mkdirSync(file('data'));
  await makePki(estuary.dir);
  estuary.reconfigure(base);
  writeFileSync(file('base.toml'), readFileSync(file('est.toml')));
  estuary.reconfigure(issuingWith('former'));
  await estuary.restart();
  for (const member of fleet) if (member.state === 'former') await become(member);
  await estuary.server.stop();
  writeFileSync(file('est.toml'), readFileSync(file('base.toml')));
  await estuary.restart();
  await admin('POST', '/admin/devices', { id: 'never' });
  for (const member of fleet) if (member.state !== 'former') await become(member);
  const sold = Date.now() + SOLD_AFTER;
  await until('the devices have expired', () => Promise.resolve(Date.now() > sold));
  await admin('GET', '/admin/fleet/summary');
  await estuary.server.stop();
  cpSync(file('data'), file('kept'), { recursive: true });
}, TIMEOUT);
afterAll(async () => {
  await estuary.stop();
  await slapd?.stop();
});

// --- what is predicted, and what happens ---------------------------------------------------------------------------

type Change = (config: TomlTable) => void;

/** @returns whether the configuration is one */
async function write(name: string, ...changes: readonly Change[]): Promise<boolean> {
  const config = parse(readFileSync(file('base.toml'), 'utf8'));
  for (const change of changes) change(config);
  writeFileSync(file(`${name}.toml`), stringify(config));
  return loadConfig(file(`${name}.toml`), process.env, Date.now()).then(
    () => true,
    () => false,
  );
}

async function predict(next: string, former?: string): Promise<FleetReport & { readonly code: number }> {
  let [out, err] = ['', ''];
  const against = former === undefined ? [] : ['--against', file(`${former}.toml`)];
  const code = await runCommand(
    { name: 'estuary', commands: COMMANDS },
    ['check', '--fleet', '--config', file(`${next}.toml`), ...against, '--json'],
    {
      env: process.env,
      out: (text) => void (out += textOf(text)),
      err: (text) => void (err += textOf(text)),
      now: Date.now,
      signals: { pass: () => undefined, release: () => undefined },
    },
  );
  expect(err).toBe('');
  return { ...(JSON.parse(out) as FleetReport), code };
}

interface Outcome {
  /** Of the certificates that renewed, and renewed again. */
  readonly renewed: ReadonlySet<string>;
  /** Members that trust the server's certificate. */
  readonly trusting: ReadonlySet<Member>;
  readonly raised: boolean;
  readonly certificate: string | undefined;
}

/** Puts a configuration in force, and lets every member renew. */
async function happens(name: string): Promise<Outcome> {
  writeFileSync(file('est.toml'), readFileSync(file(`${name}.toml`)));
  await estuary.restart();
  const renewedOnes = new Set<string>();
  const trusting = new Set<Member>();
  const trusts = new Map<string, boolean>();
  for (const member of fleet) {
    for (const client of member.held) {
      const next = await renewed(member, client);
      if (next === undefined) continue;
      if (next === 202 || (await renewed(member, next)) !== undefined) renewedOnes.add(serialOf(client));
    }
    const given = member.given.join('');
    if (given === '') continue;
    if (!trusts.has(given)) trusts.set(given, await isTrusted(given));
    if (trusts.get(given) === true) trusting.add(member);
  }
  await estuary.server.stop();
  rmSync(file('data'), { recursive: true });
  cpSync(file('kept'), file('data'), { recursive: true });
  const { tls } = parse(readFileSync(file(`${name}.toml`), 'utf8')) as { tls: Record<string, string> };
  return {
    renewed: renewedOnes,
    trusting,
    raised: tls['min_version'] === 'TLSv1.3',
    certificate: tls['certificate'],
  };
}

const isTrusted = (given: string): Promise<boolean> =>
  openTls(estuary.server.port('est'), { ca: given, ...vendor }, { allowPartialTrustChain: true }).then(
    (socket) => {
      socket.destroy();
      return true;
    },
    () => false,
  );

/** Not in the list of the fleet. */
const UNLISTED: readonly State[] = ['disabled', 'sold', 'deleted', 'forgotten'];
const isUnseen = ({ state }: Member): boolean => state in EXPIRED || state === 'unseen';

/** What the prediction has to be, from what happened. */
function expected(next: Outcome, former?: Outcome) {
  const lists = {
    stranded: [] as string[],
    recovered: [] as string[],
    untrusting: [] as string[],
    unknown: [] as string[],
  };
  let checked = 0;
  for (const member of fleet) {
    const { held, name, given, state } = member;
    const serials = held.map(serialOf);
    const could = (serial: string) => former?.renewed.has(serial) ?? true;
    const isJudged = UNLISTED.includes(state) ? former !== undefined && serials.some(could) : serials.length > 0;
    if (!isJudged) continue;
    checked++;
    const can = (serial: string) => next.renewed.has(serial);
    const lost = serials.find((serial) => could(serial) && !can(serial));
    const gained = serials.find((serial) => !could(serial));
    if (lost !== undefined) lists.stranded.push(`${name} ${lost}`);
    else if (gained !== undefined && serials.every(can)) lists.recovered.push(`${name} ${gained}`);
    const raises = next.raised && former?.raised !== true;
    if (lost === undefined && isUnseen(member) && raises && serials.every(can))
      lists.unknown.push(`${name} ${serials.join()}`);
    if (former === undefined || former.certificate === next.certificate) continue;
    if (given.length === 0) lists.unknown.push(`${name} ${serials[0] ?? ''}`);
    else if (former.trusting.has(member) && !next.trusting.has(member))
      lists.untrusting.push(`${name} ${serials[0] ?? ''}`);
  }
  return { ...Object.fromEntries(Object.entries(lists).map(([kind, list]) => [kind, list.sort()])), checked };
}

const nameOf = ({ subject }: FleetReport['stranded'][number]) => /CN=([^,]*)/.exec(subject)?.[1] ?? '';
const found = ({ checked, ...report }: FleetReport) => ({
  ...Object.fromEntries(
    (['stranded', 'recovered', 'untrusting', 'unknown'] as const).map((kind) => [
      kind,
      report[kind].map((entry) => `${nameOf(entry)} ${entry.serial}`).sort(),
    ]),
  ),
  checked,
});

// --- changes -------------------------------------------------------------------------------------------------------

const isAble = ({ state, held }: Member): boolean => held.length > 0 && state !== 'attic' && !UNLISTED.includes(state);
const set =
  (where: (config: TomlTable) => TomlTable, values: TomlTable): Change =>
  (config) =>
    void Object.assign(where(config), values);
const atDevices = ({ label }: Member): boolean => label === 'devices';
const isIn =
  (...states: readonly State[]) =>
  ({ state }: Member): boolean =>
    states.includes(state);
const has =
  (isMeant: (name: GeneralName) => boolean) =>
  ({ label, sans }: Member): boolean =>
    label === 'devices' && sans.some(isMeant);
const subject = (config: TomlTable) => section(profile(config), 'subject');
const san = (config: TomlTable) => section(profile(config), 'san');

interface Breakage {
  readonly change: Change;
  /** Of the members that could renew. */
  readonly who: (member: Member) => boolean;
  readonly code: string;
  readonly list?: 'untrusting';
  readonly before?: Change;
}

const BREAKAGES: Readonly<Record<string, Breakage>> = {
  'a higher TLS version': {
    change: set((config) => section(config, 'tls'), { min_version: 'TLSv1.3' }),
    who: ({ tls }) => tls === 'TLSv1.2',
    code: 'TLS_VERSION',
  },
  'a removed trust anchor': {
    change: set(clientAuth, { trust_anchors: 'ca/f-root.pem' }),
    who: ({ label }) => label === 'lab',
    code: 'CLIENT_CERTIFICATE_UNTRUSTED',
  },
  'other trust anchors': {
    change: set(clientAuth, { trust_anchors: 'ca/f-vendor.pem' }),
    who: () => true,
    code: 'CLIENT_CERTIFICATE_UNTRUSTED',
  },
  'no client certificates': {
    change: (config) => void (section(config, 'tls')['client_auth'] = { mode: 'none' }),
    who: () => true,
    code: 'CLIENT_CERTIFICATE_REQUIRED',
  },
  'a handshake that rejects expired certificates': {
    change: set(clientAuth, { mode: 'required' }),
    who: isIn('drawer', 'rescued'),
    code: 'CLIENT_CERTIFICATE_EXPIRED',
  },
  'a narrower SAN pattern': {
    change: set(san, { dns: ['[a-z0-9-]+\\.plant\\.example'] }),
    who: has((name) => name.kind === 'dns' && !/^[a-z0-9-]+\.plant\./.test(name.value)),
    code: 'SAN_NOT_ALLOWED',
  },
  'kinds of names less': {
    change: set(san, { allowed: ['dns', 'ip'] }),
    who: has(({ kind }) => kind !== 'dns' && kind !== 'ip'),
    code: 'SAN_NOT_ALLOWED',
  },
  'other address blocks': {
    change: set(san, { ip: ['192.0.2.0/24'] }),
    who: has(({ kind }) => kind === 'ip'),
    code: 'SAN_NOT_ALLOWED',
  },
  'a key type less': {
    change: set(profile, { key_types: ['ec:P-256', 'ed25519', 'rsa:2048'] }),
    who: ({ label, kind }) => label === 'devices' && kind === 'P-384',
    code: 'KEY_TYPE_NOT_ALLOWED',
  },
  'subjects without an organization': {
    change: set(subject, { allowed: ['CN', 'serialNumber'] }),
    who: ({ label, subject }) => label === 'devices' && subject.includes('O='),
    code: 'SUBJECT_NOT_ALLOWED',
  },
  'a shorter grace period': {
    change: set(profile, { renewal_grace_days: 1 }),
    who: isIn('drawer'),
    code: 'CLIENT_CERTIFICATE_EXPIRED',
  },
  'registered devices only': {
    change: set(caSection, { devices: 'required' }),
    who: atDevices,
    code: 'DEVICE_NOT_REGISTERED',
  },
  'registered devices only, some of which are disabled, expired or deleted': {
    before: set(plant, { devices: 'off' }),
    change: () => undefined,
    who: isIn('disabled', 'sold', 'deleted'),
    code: 'DEVICE_NOT_REGISTERED',
  },
  'no renewal_issuers': {
    change: (config) => {
      delete profile(config)['renewal_issuers'];
    },
    who: isIn('former'),
    code: 'CLIENT_CERTIFICATE_UNTRUSTED',
  },
  'a new issuing key without renewal_issuers': {
    change: issuingWith('next'),
    who: ({ label, state }) => label !== 'lab' && state !== 'former',
    code: 'CLIENT_CERTIFICATE_UNTRUSTED',
  },
  'another default label': {
    change: (config) => {
      caSection(config)['default'] = false;
      caSection(config, 1)['default'] = true;
    },
    who: ({ named }) => !named,
    code: 'NOT_ISSUED_HERE',
  },
  'a label less': {
    change: (config) => {
      delete config['label'];
    },
    who: ({ label }) => label === 'plant',
    code: 'UNKNOWN_LABEL',
  },
  'a CA less': {
    change: (config) => void (config['ca'] = [caSection(config)]),
    who: ({ label }) => label === 'lab',
    code: 'UNKNOWN_LABEL',
  },
  'certificates that authenticate no client': {
    change: set(profile, { extended_key_usage: ['serverAuth'] }),
    who: atDevices,
    code: 'CLIENT_CERTIFICATE_PURPOSE',
  },
  'a server certificate under a new root': {
    change: set((config) => section(config, 'tls'), {
      certificate: 'tls/server-d.pem',
      private_key: 'tls/server-d.key',
    }),
    who: ({ label, given }) => label !== 'lab' && given.length > 0,
    code: 'SERVER_CERTIFICATE_UNTRUSTED',
    list: 'untrusting',
  },
};

const HARMLESS: Readonly<Record<string, Change>> = {
  'another log level': set((config) => section(config, 'log'), { level: 'debug' }),
  'a shorter validity': set(profile, { validity_days: 30 }),
  'a longer grace period': set(profile, { renewal_grace_days: 12 }),
  'further key types': set(profile, { key_types: ['ec:P-256', 'ec:P-384', 'ec:P-521', 'rsa:2048', 'ed25519'] }),
  'a SAN pattern that fits': set(san, { dns: ['.*\\.example'] }),
  'a new issuing key with renewal_issuers': (config) => {
    issuingWith('next')(config);
    for (const table of [profile(config), section(plant(config), 'profile')])
      table['renewal_issuers'] = 'ca/f-both.pem';
  },
  'a certificate that is required at renewals': set(clientAuth, { mode: 'required_for_reenroll' }),
  'no one-time passwords': set((config) => section(config, 'otp'), { enabled: false }),
  'manual approval': set((config) => caSection(config, 1), { approval: 'manual' }),
  'a template for new subjects': set(subject, { template: 'CN={id},O=New' }),
  'other methods': set((config) => section(caSection(config), 'auth'), { methods: ['otp'] }),
};

/** What they do is known from what happens. */
const FURTHER: readonly Change[] = [
  set(subject, { patterns: { CN: 'unit-[0-4]*' } }),
  set(subject, { patterns: { CN: '{id}' } }),
  set(subject, { required: ['serialNumber'] }),
  set(san, { required: ['dns'] }),
  set(san, { max: 1 }),
  set(san, { wildcards: false }),
  set(san, { dns_underscore: false }),
  set(san, { allowed: ['dns', 'upn', 'srv'], upn: ['.*@example\\.org'] }),
  set(san, { registered_id: ['1.2.3.1'], permanent_identifier: ['1.2.3:{cert.CN}'] }),
  set(san, { dns: ['{cert.CN}\\.plant\\.example'] }),
  set(san, { add: ['dns:{id}.added.example'] }),
  set(profile, { key_usage: ['keyEncipherment'] }),
  set(profile, { key_usage: [] }),
  set(profile, { extended_key_usage: [] }),
  set(profile, { mtls_subject: 'any', allow_subject_change: true }),
  set(profile, { validity_seconds: 120 }),
  set(profile, { renewal_labels: ['plant'] }),
  set(plant, { ca: 'lab' }),
  set(plant, { profile: { renewal_grace_days: 30, renewal_labels: ['devices'] } }),
  set(caSection, { client_issuers: ['anchors'] }),
  set(caSection, { renewal: { expected: false } }),
  set(clientAuth, { crl: 'ca/f-root.crl' }),
  set(caSection, { certificate: 'ca/f-short.pem' }),
  (config) => {
    plant(config)['default'] = true;
    caSection(config)['default'] = false;
  },
];

describe(`in a fleet of ${SIZE} holders`, () => {
  test.each(Object.entries(BREAKAGES))('%s is found at those that it concerns', async (_, breakage) => {
    const { change, who, code, list = 'stranded', before = () => undefined } = breakage;
    expect(await write('old', before)).toBe(true);
    expect(await write('new', change)).toBe(true);
    const report = await predict('new', 'old');
    const planted = fleet.filter((member) => who(member) && (isAble(member) || breakage.before !== undefined));
    expect(planted.length).toBeGreaterThan(0);
    expect(report[list].map(nameOf).sort()).toEqual(planted.map(({ name }) => name).sort());
    expect([...new Set(report[list].map((entry) => entry.code))]).toEqual([code]);
    const none = { stranded: [], recovered: [], untrusting: [], not_judged: [] };
    expect(report).toMatchObject({ ...none, [list]: report[list], code: 3 });
  });

  test.each(Object.entries(HARMLESS))('%s concerns nobody', async (_, change) => {
    await write('old');
    expect(await write('new', change)).toBe(true);
    const none = { stranded: [], recovered: [], untrusting: [], unknown: [], not_judged: [] };
    expect(await predict('new', 'old')).toMatchObject({ ...none, code: 0 });
  });

  test('an external authorization and a CA elsewhere are unknown, but not what is rejected before', async () => {
    await write('old');
    const elsewhere: Change = (config) => {
      const label = 'lab';
      const remote = {
        driver: 'command',
        upstream_trust_anchors: 'ca/f-labroot.pem',
        command: { issue: ['/bin/true'] },
      };
      Object.assign(caSection(config), { authorization: { url: 'https://localhost:1/' } });
      config['ca'] = [caSection(config), { label, auth: section(caSection(config, 1), 'auth'), ...remote }];
    };
    const able = (label: string, tls?: string) =>
      fleet
        .filter((member) => isAble(member) && member.label === label && member.tls === (tls ?? member.tls))
        .map(({ name }) => name)
        .sort();
    const namesIn = (entries: FleetReport['unknown'], code: string) =>
      entries
        .filter((entry) => entry.code === code)
        .map(nameOf)
        .sort();
    expect(await write('new', elsewhere)).toBe(true);
    const report = await predict('new', 'old');
    expect(report).toMatchObject({ stranded: [], code: 0 });
    expect(namesIn(report.unknown, 'EXTERNAL_AUTHORIZATION')).toEqual(able('devices'));
    expect(namesIn(report.unknown, 'UPSTREAM_CA')).toEqual(able('lab'));
    await write('new', elsewhere, BREAKAGES['a higher TLS version']?.change ?? expect.fail());
    const { stranded, unknown } = await predict('new', 'old');
    expect(namesIn(unknown, 'UPSTREAM_CA')).toEqual(able('lab', 'TLSv1.3'));
    expect(namesIn(stranded, 'TLS_VERSION').filter((name) => able('lab').includes(name))).toEqual(
      able('lab', 'TLSv1.2'),
    );
    await write('new', elsewhere, BREAKAGES['no client certificates']?.change ?? expect.fail());
    expect(namesIn((await predict('new', 'old')).stranded, 'CLIENT_CERTIFICATE_REQUIRED')).toEqual(
      [...able('devices'), ...able('lab'), ...able('plant')].sort(),
    );
  });

  test('changed keys that are not judged are named, and the keys of CAs may be missing', async () => {
    await write('old');
    const elsewhere: Change = (config) => {
      section(config, 'tls')['groups'] = ['X25519'];
      section(config, 'est')['require_pop_linking'] = true;
      section(caSection(config), 'file')['private_key'] = 'ca/none.key';
    };
    await write('new', elsewhere);
    const not_judged = ['est.require_pop_linking', 'tls.groups'];
    expect(await predict('new', 'old')).toMatchObject({ stranded: [], not_judged, code: 0 });
  });

  test(
    `each change between ${CONFIGURATIONS} random configurations does what is predicted (seed ${SEED})`,
    async () => {
      const all = [...Object.values(BREAKAGES).map(({ change }) => change), ...Object.values(HARMLESS), ...FURTHER];
      const outcomes: Outcome[] = [];
      while (outcomes.length < CONFIGURATIONS) {
        const name = `random-${outcomes.length}`;
        // Some changes contradict each other.
        if (await write(name, ...random.shuffled(all).slice(0, random.between(0, 5))))
          outcomes.push(await happens(name));
      }
      for (const [n, next] of outcomes.entries()) {
        const text = readFileSync(file(`random-${n}.toml`), 'utf8');
        expect(found(await predict(`random-${n}`)), text).toEqual(expected(next));
        for (const [m, former] of outcomes.entries())
          expect(found(await predict(`random-${n}`, `random-${m}`)), `${m}: ${text}`).toEqual(expected(next, former));
      }
    },
    TIMEOUT,
  );
});
