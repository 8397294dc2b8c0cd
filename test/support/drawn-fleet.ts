/**
 * A fleet of random holders, who enrolled by every method and are in every state, and the server that serves them. The server predicts what
 * another configuration does to them, and gets it, whereupon all of them renew over TLS.
 */
import { X509Certificate } from 'node:crypto';
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SignJWT } from 'jose';
import { parse, stringify, type TomlTable } from 'smol-toml';
import { expect } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import type { FleetReport } from '../../src/main/fleet-check/fleet-check.ts';
import { parseSignedData } from '../../src/pki/cms/cms.ts';
import { OID } from '../../src/pki/der/oids.ts';
import { encodePem } from '../../src/pki/der/pem.ts';
import { type Certificate, parseCertificate } from '../../src/pki/x509/certificate.ts';
import { encodeSubjectAltName, findExtension } from '../../src/pki/x509/extensions.ts';
import { type GeneralName, parseGeneralNameText, SAN_KINDS } from '../../src/pki/x509/general-name.ts';
import { parseDistinguishedName } from '../../src/pki/x509/name.ts';
import * as certificates from './certificates.ts';
import { requestBy, tcr } from './cmc.ts';
import { buildCsr, extension, extensionRequest, type KeyKind, makeKey, onTheWire, type TestKey } from './csr.ts';
import { caSection, certificatePem, certificatesOf, type ClientIdentity, Estuary, section } from './estuary.ts';
import { openTls } from './https.ts';
import { estuary as command } from './local-command.ts';
import { Kdc, SERVICE } from './kdc.ts';
import { pkcs8Pem } from './keys.ts';
import { initialToken } from './negotiate.ts';
import type { Random } from './random.ts';
import { requires } from './requires.ts';
import { readPkcs8, readServerKey } from './server-key.ts';
import { PASSWORD, Slapd } from './slapd.ts';
import { until } from './until.ts';

const DAY = 86_400_000;
/** Milliseconds until a device expires. */
const SOLD_AFTER = 1100;
const SERVER_AUTH = '1.3.6.1.5.5.7.3.1';

type Ca = certificates.Issuer;
const pemOf = (...all: readonly Ca[]) => all.map(({ der }) => encodePem('CERTIFICATE', der)).join('');
const oneBy =
  (random: Random) =>
  <T>(...items: readonly T[]): T =>
    random.pick(items) ?? expect.fail('nothing to choose from');
export type Change = (config: TomlTable) => void;

const STATES = [
  ...(['plain', 'plain', 'plain', 'failing', 'renewed', 'moving', 'clinging', 'returned', 'revoked', 'held'] as const),
  ...(['drawer', 'attic', 'forgotten', 'rescued', 'unseen', 'former'] as const),
  ...(['disabled', 'sold', 'deleted'] as const),
] as const;
export type State = (typeof STATES)[number];
/** Imported, expired so many days ago. */
export const EXPIRED: Partial<Record<State, number>> = { drawer: 5, attic: 20, forgotten: 100, rescued: 20 };

export interface Member {
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

function drawn(n: number, random: Random): Member {
  const one = oneBy(random);
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
export const serialOf = (identity: ClientIdentity): string => certificateOf(identity).serialNumber;
const pathOf = ({ label, named }: Member, operation: string) => (named ? `${label}/${operation}` : operation);

export const profile = (config: TomlTable, index = 0) => section(caSection(config, index), 'profile');
export const clientAuth = (config: TomlTable) => section(config, 'tls', 'client_auth');
export const plant = (config: TomlTable): TomlTable =>
  section({ label: (config['label'] as TomlTable[])[0] ?? {} }, 'label');
export const issuingWith =
  (name: string) =>
  (config: TomlTable): void => {
    caSection(config)['certificate'] = `ca/f-${name}.pem`;
    section(caSection(config), 'file')['private_key'] = `ca/f-${name}.key`;
  };

interface Directories {
  readonly slapd: Slapd | undefined;
  readonly kdc: Kdc | undefined;
}

export interface Outcome {
  /** Of the certificates that renewed, and renewed again. */
  readonly renewed: ReadonlySet<string>;
  /** Members that trust the server's certificate. */
  readonly trusting: ReadonlySet<Member>;
  readonly raised: boolean;
  readonly certificate: string | undefined;
}

/** Not in the list of the fleet. */
export const UNLISTED: readonly State[] = ['disabled', 'sold', 'deleted', 'forgotten'];
const isUnseen = ({ state }: Member): boolean => state in EXPIRED || state === 'unseen';

export const nameOf = ({ subject }: FleetReport['stranded'][number]) => /CN=([^,]*)/.exec(subject)?.[1] ?? '';
export const found = ({ checked, ...report }: FleetReport) => ({
  ...Object.fromEntries(
    (['stranded', 'recovered', 'untrusting', 'unknown'] as const).map((kind) => [
      kind,
      report[kind].map((entry) => `${nameOf(entry)} ${entry.serial}`).sort(),
    ]),
  ),
  checked,
});

/** One that is set up for a file of tests. */
export class DrawnFleet {
  readonly members: readonly Member[];
  readonly estuary: Estuary;
  readonly #one: ReturnType<typeof oneBy>;
  readonly #slapd: Slapd | undefined;
  readonly #kdc: Kdc | undefined;
  readonly #krb5Config = process.env['KRB5_CONFIG'];
  readonly #cas: Record<string, Ca> = {};
  readonly #tokenKey = makeKey();
  /** PEM of all roots. */
  #roots = '';
  #vendor: ClientIdentity = { cert: '', key: '' };

  private constructor(members: readonly Member[], random: Random, estuary: Estuary, directories: Directories) {
    this.members = members;
    this.estuary = estuary;
    this.#one = oneBy(random);
    this.#slapd = directories.slapd;
    this.#kdc = directories.kdc;
  }

  /** @returns a fleet whose server is stopped */
  static async start(size: number, random: Random): Promise<DrawnFleet> {
    const members = Array.from({ length: size }, (_, n) => drawn(n, random));
    const slapd = requires('slapd') ? await Slapd.start(members.map(({ name }) => name)) : undefined;
    const kdc = requires('kdc') ? await Kdc.start() : undefined;
    const fleet = new DrawnFleet(members, random, await Estuary.start(), { slapd, kdc });
    await fleet.#setUp();
    return fleet;
  }

  async stop(): Promise<void> {
    await this.estuary.stop();
    await Promise.all([this.#slapd?.stop(), this.#kdc?.stop()]);
    if (this.#krb5Config === undefined) delete process.env['KRB5_CONFIG'];
    else process.env['KRB5_CONFIG'] = this.#krb5Config;
  }

  file(name: string): string {
    return join(this.estuary.dir, name);
  }

  async #setUp(): Promise<void> {
    Object.assign(process.env, this.#kdc && { KRB5_CONFIG: this.#kdc.env.KRB5_CONFIG });
    await this.estuary.server.stop();
    rmSync(this.file('data'), { recursive: true });
    mkdirSync(this.file('data'));
    await this.#makePki(this.estuary.dir);
    this.estuary.reconfigure((config, dir) => this.#base(config, dir));
    writeFileSync(this.file('base.toml'), readFileSync(this.file('est.toml')));
    this.estuary.reconfigure(issuingWith('former'));
    await this.estuary.restart();
    for (const member of this.members) if (member.state === 'former') await this.#become(member);
    await this.estuary.server.stop();
    writeFileSync(this.file('est.toml'), readFileSync(this.file('base.toml')));
    await this.estuary.restart();
    await this.#admin('POST', '/admin/devices', { id: 'never' });
    for (const member of this.members) if (member.state !== 'former') await this.#become(member);
    const sold = Date.now() + SOLD_AFTER;
    await until('the devices have expired', () => Promise.resolve(Date.now() > sold));
    await this.#admin('GET', '/admin/fleet/summary');
    await this.estuary.server.stop();
    cpSync(this.file('data'), this.file('kept'), { recursive: true });
  }

  /** @returns whether the configuration is one */
  async write(name: string, ...changes: readonly Change[]): Promise<boolean> {
    const config = parse(readFileSync(this.file('base.toml'), 'utf8'));
    for (const change of changes) change(config);
    writeFileSync(this.file(`${name}.toml`), stringify(config));
    return loadConfig(this.file(`${name}.toml`), process.env, Date.now()).then(
      () => true,
      () => false,
    );
  }

  async predict(next: string, former?: string): Promise<FleetReport & { readonly code: number }> {
    const against = former === undefined ? [] : ['--against', this.file(`${former}.toml`)];
    const args = ['check', '--fleet', '--config', this.file(`${next}.toml`), ...against, '--json'];
    const { code, out, err } = await command(args, { env: process.env });
    expect(err).toBe('');
    return { ...(JSON.parse(out) as FleetReport), code };
  }

  /** Puts a configuration in force, and lets every member renew. */
  async happens(name: string): Promise<Outcome> {
    writeFileSync(this.file('est.toml'), readFileSync(this.file(`${name}.toml`)));
    await this.estuary.restart();
    const renewedOnes = new Set<string>();
    const trusting = new Set<Member>();
    const trusts = new Map<string, boolean>();
    for (const member of this.members) {
      for (const client of member.held) {
        const next = await this.#renewed(member, client);
        if (next === undefined) continue;
        if (next === 202 || (await this.#renewed(member, next)) !== undefined) renewedOnes.add(serialOf(client));
      }
      const given = member.given.join('');
      if (given === '') continue;
      if (!trusts.has(given)) trusts.set(given, await this.#isTrusted(given));
      if (trusts.get(given) === true) trusting.add(member);
    }
    await this.estuary.server.stop();
    rmSync(this.file('data'), { recursive: true });
    cpSync(this.file('kept'), this.file('data'), { recursive: true });
    const { tls } = parse(readFileSync(this.file(`${name}.toml`), 'utf8')) as { tls: Record<string, string> };
    return {
      renewed: renewedOnes,
      trusting,
      raised: tls['min_version'] === 'TLSv1.3',
      certificate: tls['certificate'],
    };
  }

  /** What the prediction has to be, from what happened. */
  expected(next: Outcome, former?: Outcome) {
    const lists = {
      stranded: [] as string[],
      recovered: [] as string[],
      untrusting: [] as string[],
      unknown: [] as string[],
    };
    let checked = 0;
    for (const member of this.members) {
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

  #ca(name: string): Ca {
    return this.#cas[name] ?? expect.fail(name);
  }

  async #admin(method: string, path: string, body?: unknown): Promise<void> {
    const { status, json } = await this.estuary.admin(method, path, body);
    expect(status, `${method} ${path}: ${JSON.stringify(json)}`).toBeLessThan(300);
  }

  async #makePki(dir: string): Promise<void> {
    const times = { notBefore: Date.now() - 200 * DAY, notAfter: Date.now() + 3000 * DAY };
    for (const name of ['root', 'labroot', 'vendor'])
      this.#cas[name] = await certificates.makeCa(`CN=Fleet ${name}`, { ...times, slot: `fleet ${name}` });
    for (const [name, by] of [
      ['issuing', 'root'],
      ['former', 'root'],
      ['next', 'root'],
      ['lab', 'labroot'],
    ] as const) {
      const options = { ...times, issuer: this.#ca(by), slot: `fleet ${name}`, pathLength: 0 };
      this.#cas[name] = await certificates.makeCa(`CN=Fleet ${name}`, options);
    }
    const put = (name: string, text: string) => writeFileSync(join(dir, name), text, { mode: 0o600 });
    for (const [name, { keys }] of Object.entries(this.#cas)) {
      put(`ca/f-${name}.pem`, pemOf(this.#ca(name)));
      put(`ca/f-${name}.key`, pkcs8Pem(keys));
    }
    const { serialNumber } = parseCertificate(this.#ca('former').der);
    const crl = await certificates.makeCrl(this.#ca('root'), { revoked: [serialNumber] });
    put('ca/f-root.crl', encodePem('X509 CRL', crl));
    const { keys, subject: name } = this.#ca('issuing');
    const expired = { ...times, notAfter: Date.now() - DAY, issuer: this.#ca('root'), keys, pathLength: 0 };
    put('ca/f-short.pem', pemOf(await certificates.makeCa(name, expired)));
    put('ca/f-both.pem', pemOf(this.#ca('former'), this.#ca('issuing')));
    put('tls/all.pem', pemOf(this.#ca('root'), this.#ca('labroot'), this.#ca('vendor')));
    for (const [name, by] of [
      ['server-a', 'root'],
      ['server-b', 'labroot'],
      ['server-c', 'root'],
      ['server-d', 'vendor'],
      ['server-e', 'next'],
    ] as const) {
      const extensions = [
        certificates.keyUsage('digitalSignature'),
        certificates.extKeyUsage(SERVER_AUTH),
        certificates.subjectAltName(certificates.dns('localhost')),
      ];
      const leaf = await certificates.makeClient('CN=localhost', this.#ca(by), { ...times, slot: name, extensions });
      put(`tls/${name}.pem`, by === 'next' ? pemOf(leaf, this.#ca(by)) : pemOf(leaf));
      put(`tls/${name}-alone.pem`, pemOf(leaf));
      put(`tls/${name}.key`, pkcs8Pem(leaf.keys));
    }
    const bootstrap = await certificates.makeClient('CN=vendor device', this.#ca('vendor'), times);
    this.#vendor = { cert: pemOf(bootstrap), key: pkcs8Pem(bootstrap.keys) };
    this.#roots = readFileSync(join(dir, 'tls/all.pem'), 'latin1');
  }

  #base(config: TomlTable, dir: string): void {
    const jwk = { ...this.#tokenKey.publicKey.export({ format: 'jwk' }), alg: 'ES256' };
    writeFileSync(join(dir, 'jwks.json'), JSON.stringify({ keys: [jwk] }));
    const tokens = { issuer: 'https://issuer.example', audience: 'est', jwks_file: 'jwks.json', algorithms: ['ES256'] };
    Object.assign(section(config, 'auth', 'jwt'), tokens);
    Object.assign(section(config, 'serverkeygen'), { encryption: 'optional' });
    if (this.#slapd !== undefined) {
      writeFileSync(join(dir, 'directory.pem'), this.#slapd.ca);
      const url = `ldaps://localhost:${this.#slapd.ports.ldaps}`;
      const user_dn = 'uid={username},ou=devices,dc=example';
      Object.assign(section(config, 'auth', 'ldap'), { url, trust_anchors: 'directory.pem', timeout: 60, user_dn });
    }
    if (this.#kdc !== undefined) {
      const mapping = { service_principal: SERVICE, default_template: 'CN={primary}' };
      config['gssapi'] = { enabled: true, keytab: this.#kdc.keytab, ...mapping };
    }
    const methods = ['mtls', 'cmc', 'jwt', ...(this.#kdc === undefined ? [] : ['gssapi'])];
    caSection(config)['auth'] = { methods: [...methods, 'otp'] };
    caSection(config, 1)['auth'] = { methods: [...methods, this.#slapd === undefined ? 'otp' : 'ldap'] };
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

  /** Brings a member into its state. */
  async #become(member: Member): Promise<void> {
    const { state, label, name } = member;
    if (label === 'plant') await this.#admin('POST', '/admin/devices', { id: name });
    const isImported = state in EXPIRED || state === 'unseen';
    const first = isImported ? await this.#imported(member) : await this.#enrolled(member);
    member.held = [first];
    const isUsed =
      !(state in EXPIRED) && state !== 'unseen' && state !== 'moving' && (state !== 'plain' || this.#one(true, false));
    if (isUsed) await this.#use(member, first);
    const revoke = (client: ClientIdentity, reason: string) =>
      this.#admin('POST', `/admin/certificates/${serialOf(client)}/revoke?ca=${label === 'lab' ? 'lab' : 'devices'}`, {
        reason,
      });
    const change = (fields: object) => this.#admin('PATCH', `/admin/devices/${name}`, fields);
    if (state === 'failing')
      expect(
        (
          await this.#send(
            member,
            firstCsr(newKey(member.kind), { ...member, subject: 'CN=other' }),
            'simplereenroll',
            {
              client: first,
            },
          )
        ).status,
      ).toBe(403);
    if (state === 'renewed' || state === 'moving') {
      member.held = [await this.#mustRenew(member, first)];
      if (state === 'renewed') for (const client of member.held) await this.#use(member, client);
    }
    if (state === 'clinging') {
      member.held = [await this.#mustRenew(member, first), first];
      await this.#use(member, first);
    }
    if (state === 'returned') await revoke(await this.#mustRenew(member, first), 'superseded');
    if (state === 'revoked') {
      await revoke(first, 'keyCompromise');
      member.held = [];
    }
    if (state === 'held') {
      await revoke(first, 'certificateHold');
      member.held = [];
    }
    if (state === 'rescued')
      await this.#admin('POST', `/admin/certificates/${serialOf(first)}/rescue?ca=devices`, { for_seconds: 86_400 });
    if (state === 'disabled') await change({ enabled: false });
    if (state === 'sold') await change({ not_after: new Date(Date.now() + SOLD_AFTER).toISOString() });
    if (state === 'deleted') await this.#admin('DELETE', `/admin/devices/${name}`);
  }

  async #imported(member: Member): Promise<ClientIdentity> {
    const days = EXPIRED[member.state];
    const notAfter = Date.now() + (days === undefined ? 30 : -days) * DAY;
    const times = { notBefore: notAfter - 60 * DAY, notAfter, keys: newKey(member.kind) };
    const identity = await this.#certified(member, 'issuing', times);
    await this.#admin('POST', '/admin/certificates', { ca: 'devices', pem: identity.cert });
    return identity;
  }

  async #enrolled(member: Member): Promise<ClientIdentity> {
    const key = newKey(member.kind);
    const csr = firstCsr(key, member);
    const hasOtps = member.label !== 'lab' || this.#slapd === undefined;
    // Tokens, tickets and accounts are for their own names only.
    const byName =
      member.sans.length === 0 && member.subject === `CN=${member.name}`
        ? ['jwt', hasOtps ? 'jwt' : 'ldap', ...(this.#kdc === undefined ? [] : ['gssapi', 'gssapi'])]
        : [];
    const passwords = hasOtps ? ['otp', 'serverkeygen'] : [];
    const method = this.#one(...passwords, ...(member.label === 'plant' ? [] : ['certificate', 'cmc', ...byName]));
    const times = { notBefore: Date.now() - DAY, notAfter: Date.now() + DAY, keys: makeKey() };
    const client = await this.#certified(member, 'vendor', times);
    if (method === 'cmc') {
      const message = await requestBy(client, { reqSequence: [tcr(1, csr)] });
      const options = { path: pathOf(member, 'fullcmc'), client, tls: { ca: this.#roots, maxVersion: member.tls } };
      const headers = { 'Content-Type': 'application/pkcs7-mime' };
      const answer = await this.estuary.est(options.path, { ...options, headers, body: message.toString('base64') });
      const { certificates: all } = parseSignedData(Buffer.from(answer.text, 'base64'));
      const certificate = all.map(parseCertificate).find(({ isCa }) => !isCa);
      return { cert: encodePem('CERTIFICATE', certificate?.der ?? expect.fail(answer.text)), key: key.pem };
    }
    const operation = method === 'serverkeygen' ? method : 'simpleenroll';
    const answer = await this.#send(
      member,
      csr,
      operation,
      method === 'certificate' ? { client } : await this.#passwordOf(member, method),
    );
    expect(answer.status, `${method}: ${answer.text}`).toBe(200);
    if (method !== 'serverkeygen') return { cert: certificatePem(answer), key: key.pem };
    const { certificate, key: made } = readServerKey(answer);
    return { cert: certificate.toString(), key: readPkcs8(made).export({ format: 'pem', type: 'pkcs8' }) };
  }

  /** A certificate for the names of a member. */
  async #certified(
    { subject, sans }: Member,
    issuer: string,
    spec: { notBefore: number; notAfter: number; keys: TestKey },
  ) {
    const extensions = [
      certificates.keyUsage('digitalSignature'),
      certificates.extKeyUsage(OID.clientAuth),
      ...(sans.length === 0 ? [] : [certificates.subjectAltName(...sans)]),
    ];
    const { der } = await certificates.makeClient(subject, this.#ca(issuer), { ...spec, extensions });
    return { cert: encodePem('CERTIFICATE', der), key: spec.keys.pem };
  }

  /** How a member without a certificate authenticates. */
  async #passwordOf({ name }: Member, method: string): Promise<{ readonly authorization: string }> {
    const basic = (user: string, password: string) => ({
      authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`,
    });
    if (method === 'ldap') return basic(name, PASSWORD);
    if (method === 'gssapi' && this.#kdc !== undefined) {
      await this.#kdc.addUser(name);
      const token = await initialToken({ env: this.#kdc.env, cache: await this.#kdc.login(name) });
      return { authorization: `Negotiate ${token}` };
    }
    if (method !== 'jwt') return basic(name, (await this.estuary.otp({ client_id: name })).token);
    const claims = { iss: 'https://issuer.example', aud: 'est', exp: Math.floor(Date.now() / 1000) + 3600, sub: name };
    const token = await new SignJWT(claims).setProtectedHeader({ alg: 'ES256' }).sign(this.#tokenKey.privateKey);
    return { authorization: `Bearer ${token}` };
  }

  async #use(member: Member, client: ClientIdentity): Promise<void> {
    const tls = { ca: this.#roots, maxVersion: member.tls };
    const answer = await this.estuary.est(pathOf(member, 'cacerts'), { client, tls });
    expect(answer.status, answer.text).toBe(200);
    member.given = certificatesOf(answer).map((der) => encodePem('CERTIFICATE', der));
  }

  /** Sends a request of a member over TLS as it does. */
  #send(member: Member, csr: Buffer, operation: string, more: { client?: ClientIdentity; authorization?: string }) {
    return this.estuary.enroll(onTheWire(csr), {
      ...(more.client && { client: more.client }),
      ...(more.authorization !== undefined && { headers: { Authorization: more.authorization } }),
      path: pathOf(member, operation),
      tls: { ca: this.#roots, maxVersion: member.tls },
    });
  }

  async #renewed(member: Member, client: ClientIdentity): Promise<ClientIdentity | 202 | undefined> {
    const { subject, extensions } = certificateOf(client);
    const key = newKey(member.kind);
    const csr = csrFor(key, subject.der, findExtension(extensions, OID.subjectAltName)?.value);
    // The handshake may fail.
    const answer = await this.#send(member, csr, 'simplereenroll', { client }).catch(() => undefined);
    // A CA that has expired strands the holders whose paths need it; others wait for its next certificate.
    const isStranded = answer?.text.includes('is not available') === true;
    if (answer?.status === 202 || (answer?.status === 503 && !isStranded)) return 202;
    return answer?.status === 200 ? { cert: certificatePem(answer), key: key.pem } : undefined;
  }

  async #mustRenew(member: Member, client: ClientIdentity): Promise<ClientIdentity> {
    const next = await this.#renewed(member, client);
    return next === undefined || next === 202 ? expect.fail(`${member.name} is not renewed`) : next;
  }

  #isTrusted(given: string): Promise<boolean> {
    const port = this.estuary.server.port('est');
    return openTls(port, { ca: given, ...this.#vendor }, { allowPartialTrustChain: true }).then(
      (socket) => {
        socket.destroy();
        return true;
      },
      () => false,
    );
  }
}
