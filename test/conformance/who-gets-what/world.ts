/** The servers with labels of every kind, and everyone who may send them requests. Each certificate comes in both of its encodings. */
import { createHash, createPrivateKey, createPublicKey, randomBytes } from 'node:crypto';
import { appendFileSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SignJWT } from 'jose';
import { parse, stringify, type TomlTable } from 'smol-toml';
import { encodePem } from '../../../src/pki/der/pem.ts';
import { OID } from '../../../src/pki/der/oids.ts';
import { parseCertificate, parsePemCertificates, type Certificate } from '../../../src/pki/x509/certificate.ts';
import { formatName, parseDistinguishedName } from '../../../src/pki/x509/name.ts';
import {
  dns,
  ecdsaTwin,
  extKeyUsage,
  keyUsage,
  makeCa,
  makeClient,
  subjectAltName,
  type Issuer,
} from '../../support/certificates.ts';
import { runAny } from '../../support/command.ts';
import {
  buildCsr,
  dns as dnsName,
  extensionRequest,
  makeKey,
  onTheWire,
  san,
  type TestKey,
} from '../../support/csr.ts';
import { caSection, certificatePem, Estuary, itemsOf, section, type ClientIdentity } from '../../support/estuary.ts';
import { call, type Answer } from '../../support/https.ts';
import { requires } from '../../support/requires.ts';
import { PASSWORD, Slapd } from '../../support/slapd.ts';
import { NODE, SERVER, startServer, type ServerProcess } from '../../support/server-process.ts';
import { isStoreInPostgres } from '../../support/wanted-store.ts';
import {
  LABELS,
  type AdminFacts,
  RULES,
  type CertificateFacts,
  type DeviceRef,
  type Label,
  type NamedFacts,
  type Names,
  type SecretFacts,
  type TokenFacts,
} from './oracle.ts';

export interface CertificateSender {
  readonly name: string;
  readonly facts: CertificateFacts;
  readonly certificate: Certificate;
  /** The certificate with its intermediates, and the key. */
  readonly client: ClientIdentity;
  readonly chain: readonly Buffer[];
}
export interface TokenSender {
  readonly name: string;
  readonly facts: TokenFacts;
  readonly token: string;
}
export interface SecretSender {
  readonly name: string;
  readonly facts: SecretFacts;
}
export interface NamedSender {
  readonly name: string;
  readonly facts: NamedFacts;
  readonly authorization: string;
}
export type Sender = CertificateSender | TokenSender | NamedSender | SecretSender;

export interface Administrator {
  readonly name: string;
  readonly facts: AdminFacts;
  readonly client?: ClientIdentity;
  readonly token?: string;
}

const ISSUER = 'https://issuer.example';
const AUDIENCE = 'est';
export const SECRET = 'correct horse battery staple';
/** `device-7` is for two labels. */
const SECRETS: readonly SecretFacts[] = [
  { kind: 'secret', identification: 'device-7', labels: ['devices', 'plant'] },
  { kind: 'secret', identification: 'device-8', labels: LABELS },
];
/** Devices that are enabled, or disabled, when each run begins. */
const ENABLED = ['device-1', 'device-8', 'unit-1', 'unit-3'] as const;
const DISABLED = ['unit-2', 'unit-off'] as const;
/** Serial numbers in the certificates of the manufacturer. */
const MATCHED: Readonly<Record<string, string>> = { 'unit-1': 'SN1', 'unit-2': 'SN2', 'unit-3': 'SN3' };

const TOKENS: readonly AdminFacts[] = [
  { name: 'Ada', roles: ['ra'] },
  { name: 'Ada', roles: ['admin'] },
  { name: 'Eve', roles: ['auditor'] },
  { name: 'Finn', roles: ['operator'] },
  { name: 'Gil', roles: ['ra'] },
];

/** DER of a request for these names. */
export const requestFor = (key: TestKey, { subject, sans }: Names, more: readonly Buffer[] = []): Buffer => {
  const extensions = [...(sans.length === 0 ? [] : [san(...sans.map(dnsName))]), ...more];
  return buildCsr(key, {
    subject: parseDistinguishedName(subject).der,
    attributes: extensions.length === 0 ? [] : [extensionRequest(...extensions)],
  });
};

export const idOf = ({ tbs }: Certificate): string => sha256(tbs);
const pem = ({ der }: Pick<Issuer, 'der'>): string => encodePem('CERTIFICATE', der);
const sha256 = (data: Buffer | string): string => createHash('sha256').update(data).digest('hex');

interface Parties {
  readonly makers: Makers;
  /** Signs JSON Web Tokens. */
  readonly issuer: TestKey;
  readonly slapd: Slapd | undefined;
}

export class World {
  readonly estuary: Estuary;
  readonly senders: Sender[] = [];
  readonly administrators: readonly Administrator[];
  /** How often each device was registered. */
  readonly registrations = new Map<string, number>();
  readonly disabled: readonly string[] = DISABLED;
  readonly revoked: string[] = [];
  /** The other nodes on the same database, if it is PostgreSQL. */
  readonly #more: ServerProcess[] = [];
  readonly #makers: Makers;
  readonly #issuer: TestKey;
  readonly #slapd: Slapd | undefined;

  private constructor(estuary: Estuary, { makers, issuer, slapd }: Parties, administrators: readonly Administrator[]) {
    this.estuary = estuary;
    this.#makers = makers;
    this.#issuer = issuer;
    this.#slapd = slapd;
    this.administrators = administrators;
  }

  /** A connection that may send certificates in headers. */
  get proxy(): ClientIdentity {
    return this.#makers.proxy;
  }

  static async start(): Promise<World> {
    const makers = await makeMakers();
    const administration = await makeAdministration();
    const issuer = makeKey();
    const slapd = requires('slapd') ? await Slapd.start() : undefined;
    const estuary = await Estuary.start({
      configure: (config, dir) => {
        configure(config, dir, makers);
        configureProviders(config, dir, { issuer, slapd });
        configureAdministrators(config, dir, administration);
      },
    });
    const world = new World(estuary, { makers, issuer, slapd }, administration.all);
    try {
      if (slapd !== undefined) world.senders.push(...PASSWORDS);
      await world.#makeSenders();
      if (isStoreInPostgres()) world.#more.push(await world.#secondNode());
    } catch (error) {
      await world.stop();
      throw error;
    }
    return world;
  }

  async stop(): Promise<void> {
    for (const server of this.#more) await server.stop();
    await this.estuary.stop();
    await this.#slapd?.stop();
  }

  #port(node: number, listener: 'est' | 'admin'): number {
    return (this.#more[(node % (1 + this.#more.length)) - 1] ?? this.estuary.server).port(listener);
  }

  est(
    node: number,
    path: string,
    headers: Record<string, string>,
    body: string,
    client?: ClientIdentity,
  ): Promise<Answer> {
    return call({
      port: this.#port(node, 'est'),
      path: `/.well-known/est/${path}`,
      method: 'POST',
      headers,
      body,
      tls: { ca: this.estuary.root, ...client },
    });
  }

  /** Calls the admin API, with all roles unless an administrator is given. */
  async admin(
    node: number,
    method: string,
    path: string,
    body?: unknown,
    as?: Administrator,
  ): Promise<{ status: number; json: Record<string, unknown> }> {
    const token = as === undefined ? this.estuary.adminToken : as.token;
    const answer = await call({
      port: this.#port(node, 'admin'),
      path,
      method,
      tls: { ca: this.estuary.root, ...as?.client },
      headers: {
        ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const json: unknown = answer.text === '' ? {} : JSON.parse(answer.text);
    if (typeof json !== 'object' || json === null) throw new TypeError('not an object');
    return { status: answer.status, json: { ...json } };
  }

  async #expect(status: number, method: string, path: string, body?: unknown): Promise<Record<string, unknown>> {
    const answer = await this.admin(0, method, path, body);
    if (answer.status !== status) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.json)}`);
    return answer.json;
  }

  /** The IDs of the latest queued requests. */
  async latestRequests(node: number): Promise<readonly string[]> {
    const { json } = await this.admin(node, 'GET', '/admin/requests?order=desc&limit=20');
    return itemsOf(json).map(({ id }) => String(id));
  }

  async token(clientId: string, uses: number, limitedTo?: Label): Promise<TokenSender> {
    const limit = limitedTo === undefined ? {} : { ca: limitedTo };
    const { id, token } = await this.estuary.otp({ client_id: clientId, max_uses: uses, ...limit });
    return {
      name: `token of ${clientId} with ${uses} uses${limitedTo === undefined ? '' : ` for ${limitedTo}`}`,
      facts: { kind: 'token', id, clientId, uses, ...(limitedTo === undefined ? {} : { limitedTo }) },
      token,
    };
  }

  async enable(node: number, device: string, enabled: boolean): Promise<void> {
    const { status } = await this.admin(node, 'PATCH', `/admin/devices/${device}`, { enabled });
    if (status !== 200) throw new Error(`PATCH of ${device}: ${status}`);
  }

  /** Registers a device, or deletes it and registers another one with its ID. */
  async register(device: string, enabled = true): Promise<void> {
    if (this.registrations.has(device)) await this.#expect(204, 'DELETE', `/admin/devices/${device}`);
    const issuer_spki_sha256 = sha256(parseCertificate(this.#makers.maker.der).spki);
    const serial_number = MATCHED[device];
    const match = serial_number === undefined ? {} : { match: { issuer_spki_sha256, serial_number } };
    await this.#expect(201, 'POST', '/admin/devices', { id: device, enabled, ...match });
    this.registrations.set(device, (this.registrations.get(device) ?? 0) + 1);
  }

  /** Changes `approvals` of the label `vault`, or removes the label, at every node. */
  async setVault(vault: 1 | 2 | 'absent'): Promise<void> {
    for (const [node, file] of ['est.toml', 'second.toml'].slice(0, 1 + this.#more.length).entries()) {
      const path = join(this.estuary.dir, file);
      const config = parse(readFileSync(path, 'utf8'));
      config['label'] = labels(config, vault);
      writeFileSync(path, stringify(config));
      const { status, json } = await this.admin(node, 'POST', '/admin/reload');
      if (status !== 200) throw new Error(`reload: ${JSON.stringify(json)}`);
    }
  }

  /** Another node with the same configuration, except for its name. */
  #secondNode(): Promise<ServerProcess> {
    const { dir } = this.estuary;
    const config = parse(readFileSync(join(dir, 'est.toml'), 'utf8'));
    Object.assign(section(config, 'store'), { node_name: 'second' });
    Object.assign(section(config, 'audit'), { file: 'data/audit-second.log' });
    writeFileSync(join(dir, 'second.toml'), stringify(config));
    return startServer({ config: join(dir, 'second.toml') });
  }

  // --- senders -----------------------------------------------------------------------------------------------------

  async #makeSenders(): Promise<void> {
    for (const device of ENABLED) await this.register(device);
    for (const device of DISABLED) await this.register(device, false);
    await this.#restore();
    const [one, two] = [makeKey(), makeKey()];
    const names = ownNames('device-1');
    const here = { issuer: 'devices', home: 'devices' } as const;
    const home = { ...here, own: names, history: this.#current('device-1') };
    const recorded = await this.#enrolled('devices', one, names);
    this.#add('enrolled at devices', recorded, home);
    const renewed = await this.#sent('devices/simplereenroll', two, names, { client: recorded });
    this.#add('renewed at devices', renewed, home);
    const other = ownNames('device-2');
    this.#add('another device', await this.#enrolled('devices', makeKey(), other), { ...here, own: other });
    const revoked = await this.#enrolled('devices', makeKey(), names);
    const { serialNumber } = parseCertificate(derOf(revoked.cert));
    await this.#expect(200, 'POST', `/admin/certificates/${serialNumber}/revoke`, {});
    this.#add('revoked', revoked, home);
    this.revoked.push(idOf(parseCertificate(derOf(revoked.cert))));
    for (const issuer of ['devices', 'lab'] as const) {
      this.#add(`re-issued by ${issuer}`, await this.#outside(issuer, names, one), { own: names, issuer });
      const admin = ownNames('admin.example');
      this.#add(`unknown, of ${issuer}`, await this.#outside(issuer, admin, makeKey()), { own: admin, issuer });
      const own = { subject: 'CN=RA', sans: [] };
      const ra = await this.#outside(issuer, own, makeKey(), true);
      this.#add(`RA of ${issuer}`, ra, {
        own,
        issuer,
        ra: 'own',
        ...(issuer === 'devices' ? { home: 'devices' } : {}),
      });
    }
    const own = { subject: 'CN=RA of vault', sans: [] };
    const ra = await this.#outside('lab', own, makeKey(), true);
    await this.#expect(201, 'POST', '/admin/certificates', { ca: 'vault', pem: ra.cert });
    this.#add('RA of vault', ra, { own, issuer: 'lab', home: 'vault', ra: 'own' });
    await this.#addRecorded();
    const ofConfiguration = { subject: 'CN=RA of the configuration', sans: [] };
    this.#add('RA of the configuration', this.#makers.configuredRa, {
      own: ofConfiguration,
      issuer: 'rival',
      ra: 'configured',
    });
    this.#add('the proxy', this.#makers.proxy, {
      own: { subject: 'CN=proxy', sans: ['proxy'] },
      issuer: 'maker',
      isProxy: true,
    });
    for (const facts of SECRETS) this.senders.push({ name: `shared secret ${facts.identification}`, facts });
  }

  /** Certificates of labels that share a key, of devices and not. */
  async #addRecorded(): Promise<void> {
    const own = ownNames('device-1');
    for (const home of ['lab', 'desk'] as const)
      this.#add(`enrolled at ${home}`, await this.#enrolled(home, makeKey(), own), {
        own,
        issuer: 'lab',
        home,
        history: this.#current('device-1'),
      });
    for (const id of ['device-1', 'unit-off']) {
      if (id === 'unit-off') await this.enable(0, id, true);
      const names = ownNames(id);
      const made = await this.#enrolled('plant', makeKey(), names);
      this.#add(`enrolled at plant as ${id}`, made, {
        own: names,
        issuer: 'lab',
        home: 'plant',
        device: this.#current(id),
      });
      if (id === 'unit-off') await this.enable(0, id, false);
    }
  }

  /** Tokens, and certificates of manufacturers. Each run has other requesters: those of serverkeygen are recognized without their keys. */
  async newSenders(): Promise<readonly Sender[]> {
    const { maker, impostor, rival } = this.#makers;
    const rows = [
      ['of a manufacturer', maker, 'maker', 'SN1', 'unit-1'],
      ['of a manufacturer, re-issued', maker, 'maker', 'SN1', 'unit-1'],
      ['of a manufacturer, disabled', maker, 'maker', 'SN2', 'unit-2'],
      ['of a manufacturer, registered again', maker, 'maker', 'SN3', 'unit-3'],
      ['of a manufacturer, unregistered', maker, 'maker', 'SN4', undefined],
      ['of another trusted CA with the name of the manufacturer', impostor, 'impostor', 'SN1', undefined],
      ['of an untrusted CA with the name of the manufacturer', rival, 'rival', 'SN1', undefined],
    ] as const;
    const senders: Sender[] = [];
    // Another CA may give its certificates any serial number.
    const taken = this.senders.find(({ name }) => name === 'enrolled at plant as device-1');
    const serial = taken !== undefined && 'certificate' in taken ? taken.certificate.serialNumber : undefined;
    const sans = [`${randomBytes(8).toString('hex')}.example`];
    for (const [name, ca, issuer, unit, id] of rows) {
      const own = { subject: `serialNumber=${unit},CN=idevid`, sans };
      const { cert, key } = await clientOf(ca, own, makeKey(), { serial: id === undefined ? serial : undefined });
      const facts = { own, issuer, ...(id === undefined ? {} : { device: { id } }) };
      senders.push(...sendersOf(name, derOf(cert), key, facts, [ca.der]));
    }
    for (const [clientId, limitedTo] of [['device-1'], ['device-2'], ['unit-off'], ['device-1', 'lab']] as const)
      senders.push(await this.token(clientId, 10_000, limitedTo));
    const agent = `agent-${randomBytes(4).toString('hex')}`;
    await this.register(agent);
    senders.push(...(await tokensOf(this.#issuer, agent)));
    return senders;
  }

  /** The registration that is in force now. */
  #current(id: string): DeviceRef {
    return { id, registration: this.registrations.get(id) ?? 0 };
  }

  #add(name: string, { cert, key }: ClientIdentity, facts: Omit<CertificateFacts, 'kind' | 'id'>): void {
    this.senders.push(...sendersOf(name, derOf(cert), key, facts));
  }

  async #enrolled(label: Label, key: TestKey, names: Names): Promise<ClientIdentity> {
    const { token } = await this.token(names.subject.slice('CN='.length), 1);
    return this.#sent(`${label}/simpleenroll`, key, names, { password: token });
  }

  async #sent(
    path: string,
    key: TestKey,
    names: Names,
    how: { password?: string; client?: ClientIdentity },
  ): Promise<ClientIdentity> {
    const answer = await this.estuary.enroll(onTheWire(requestFor(key, names)), { path, ...how });
    if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${answer.text}`);
    return { cert: certificatePem(answer), key: key.pem };
  }

  /** Signed with the CA's key outside of the server, so the store does not know it. */
  #outside(ca: 'devices' | 'lab', names: Names, key: TestKey, ra = false): Promise<ClientIdentity> {
    const file = (suffix: string): string =>
      readFileSync(join(this.estuary.dir, `ca/${ca === 'devices' ? 'issuing' : 'lab'}.${suffix}`), 'latin1');
    const der = derOf(file('pem'));
    const privateKey = createPrivateKey(file('key'));
    const keys = { privateKey, publicKey: createPublicKey(privateKey) };
    return clientOf({ subject: formatName(parseCertificate(der).subject), kind: 'ec:P-256', keys, der }, names, key, {
      ra,
    });
  }

  /** Certificates that were issued after the backup: the store knows them again from the audit file, or not at all without it. */
  async #restore(): Promise<void> {
    if (isStoreInPostgres()) return;
    const command = async (...args: string[]): Promise<void> => {
      const { code, output } = await runAny(NODE, [SERVER, ...args, '--config', join(this.estuary.dir, 'est.toml')]);
      if (code !== 0) throw new Error(output);
    };
    const own = ownNames('device-1');
    for (const audit of ['kept', 'lost'] as const) {
      const folder = join(this.estuary.dir, `backup, audit file ${audit}`);
      await command('backup', '--to', folder);
      const made = [];
      for (const home of ['lab', 'plant'] as const)
        made.push({ home, identity: await this.#enrolled(home, makeKey(), own) });
      await this.estuary.server.stop();
      const file = join(this.estuary.dir, 'data/audit.log');
      if (audit === 'lost') renameSync(file, `${file}.lost`);
      await command('restore', '--from', folder);
      await this.estuary.restart();
      for (const { home, identity } of made) {
        const known = audit === 'kept' ? { home, ...recordedWith(home, this.#current('device-1')) } : {};
        this.#add(`enrolled at ${home}, restored, audit file ${audit}`, identity, { own, issuer: 'lab', ...known });
      }
    }
  }
}

/** What the record of a new certificate says about its device. */
export const recordedWith = (
  label: Label,
  device: DeviceRef | undefined,
): Pick<CertificateFacts, 'device' | 'history'> => {
  if (device === undefined) return {};
  return RULES[label].devices === undefined ? { history: device } : { device };
};

/** Both encodings of a certificate. */
export function sendersOf(
  name: string,
  der: Buffer,
  key: string,
  facts: Omit<CertificateFacts, 'kind' | 'id'>,
  chain: readonly Buffer[] = [],
): readonly CertificateSender[] {
  return [
    { name, der },
    { name: `${name}, re-encoded`, der: ecdsaTwin(der) },
  ].map((one) => {
    const certificate = parseCertificate(one.der);
    return {
      name: one.name,
      facts: { kind: 'certificate', id: idOf(certificate), ...facts },
      certificate,
      client: { cert: [one.der, ...chain].map((each) => encodePem('CERTIFICATE', each)).join(''), key },
      chain,
    };
  });
}

function derOf(certificate: string): Buffer {
  const [first] = parsePemCertificates(certificate);
  if (first === undefined) throw new Error('no certificate');
  return first.der;
}

const ownNames = (cn: string): Names => ({ subject: `CN=${cn}`, sans: [cn] });

interface Makers {
  readonly maker: Issuer;
  readonly impostor: Issuer;
  readonly rival: Issuer;
  readonly anchors: readonly Issuer[];
  readonly configuredRa: ClientIdentity;
  readonly proxy: ClientIdentity;
}

async function makeMakers(): Promise<Makers> {
  const name = 'CN=Maker,O=Makers';
  const maker = await makeCa(name);
  const second = await makeCa('CN=Second maker,O=Makers');
  const impostor = await makeCa(name, { issuer: second, slot: 'impostor' });
  const rival = await makeCa(name, { slot: 'rival' });
  const configuredRa = await clientOf(rival, { subject: 'CN=RA of the configuration', sans: [] }, makeKey(), {
    ra: true,
  });
  const proxy = await clientOf(maker, { subject: 'CN=proxy', sans: ['proxy'] }, makeKey());
  return { maker, impostor, rival, anchors: [maker, second], configuredRa, proxy };
}

async function clientOf(
  issuer: Issuer,
  { subject, sans }: Names,
  key: TestKey,
  { ra = false, serial }: { readonly ra?: boolean; readonly serial?: string | undefined } = {},
): Promise<ClientIdentity> {
  const purposes = [OID.clientAuth, ...(ra ? [OID.cmcRA] : [])];
  const made = await makeClient(subject, issuer, {
    keys: { privateKey: key.privateKey, publicKey: key.publicKey },
    ...(serial === undefined ? {} : { serial }),
    extensions: [
      keyUsage('digitalSignature'),
      extKeyUsage(...purposes),
      ...(sans.length === 0 ? [] : [subjectAltName(...sans.map(dns))]),
    ],
  });
  return { cert: pem(made), key: key.pem };
}

/** Clients get access tokens for this server, and others. */
async function tokensOf(issuer: TestKey, agent: string): Promise<readonly NamedSender[]> {
  const token = async (sub: string, claims: { readonly aud?: string; readonly exp?: number } = {}, key = issuer) =>
    new SignJWT({ iss: ISSUER, aud: AUDIENCE, exp: Math.floor(Date.now() / 1000) + 86_400, sub, ...claims })
      .setProtectedHeader({ alg: 'ES256' })
      .sign(key.privateKey);
  const named = (clientId: string, text: string, wrong?: string): NamedSender => ({
    name: `token of the issuer for ${clientId}${wrong === undefined ? '' : `, ${wrong}`}`,
    facts: { kind: 'named', method: 'jwt', clientId, ...(wrong === undefined ? {} : { isWrong: true }) },
    authorization: `Bearer ${text}`,
  });
  return [
    named(agent, await token(agent)),
    named(agent, await token(agent, { exp: Math.floor(Date.now() / 1000) + 40_000 })),
    named('device-2', await token('device-2')),
    named('unit-off', await token('unit-off')),
    named(agent, await token(agent, { aud: 'another service' }), 'for another service'),
    named(agent, await token(agent, { exp: 1 }), 'expired'),
    named(agent, await token(agent, {}, makeKey()), 'signed with another key'),
  ];
}

/** The directory has device-1 and device-2, and compares their names without regard to case. */
const PASSWORDS: readonly NamedSender[] = [
  ['device-1', 'device-1'],
  ['device-1', 'DEVICE-1'],
  ['device-2', 'device-2'],
  ['device-1', 'device-1', 'wrong'],
].map(([clientId = '', typed = '', wrong]) => ({
  name: `${wrong ?? 'right'} password in the directory for ${clientId}, typed ${typed}`,
  facts: { kind: 'named', method: 'ldap', clientId, ...(wrong === undefined ? {} : { isWrong: true }) },
  authorization: `Basic ${Buffer.from(`${typed}:${wrong ?? PASSWORD}`).toString('base64')}`,
}));

function configureProviders(
  config: TomlTable,
  dir: string,
  { issuer, slapd }: { readonly issuer: TestKey; readonly slapd: Slapd | undefined },
): void {
  const jwk = { ...issuer.publicKey.export({ format: 'jwk' }), alg: 'ES256' };
  writeFileSync(join(dir, 'jwks.json'), JSON.stringify({ keys: [jwk] }));
  Object.assign(section(config, 'auth', 'jwt'), {
    issuer: ISSUER,
    audience: AUDIENCE,
    jwks_file: 'jwks.json',
    algorithms: ['ES256'],
  });
  if (slapd !== undefined) writeFileSync(join(dir, 'directory.pem'), slapd.ca);
  Object.assign(section(config, 'auth', 'ldap'), {
    url: `ldaps://localhost:${slapd?.ports.ldaps ?? 1}`,
    ...(slapd === undefined ? {} : { trust_anchors: 'directory.pem' }),
    timeout: 60,
    user_dn: 'uid={username},ou=devices,dc=example',
  });
}

function configure(config: TomlTable, dir: string, { anchors, configuredRa, proxy }: Makers): void {
  Object.assign(section(config, 'otp'), {
    bind_client_id: 'cn',
    retry_window: 3600,
    max_failures: 10_000,
    failure_window: 1,
  });
  Object.assign(section(config, 'est'), {
    fullcmc_require_mtls: false,
    client_certificate_header: { proxy_certificates: 'proxy.pem' },
  });
  writeFileSync(join(dir, 'proxy.pem'), proxy.cert);
  Object.assign(section(config, 'serverkeygen'), { encryption: 'optional' });
  appendFileSync(join(dir, 'tls/client-anchors.pem'), anchors.map(pem).join(''));
  writeFileSync(join(dir, 'ra.pem'), configuredRa.cert);
  writeFileSync(join(dir, 'device.secret'), `${SECRET}\n`, { mode: 0o600 });
  Object.assign(section(config, 'cmc'), {
    ra_certificates: ['ra.pem'],
    shared_secrets: SECRETS.map(({ identification, labels: ca }) => ({
      identification,
      secret_file: 'device.secret',
      ...(ca.length === LABELS.length ? {} : { ca: [...ca] }),
    })),
  });
  for (const [index, label] of (['devices', 'lab'] as const).entries())
    section(caSection(config, index), 'auth')['methods'] = [...RULES[label].methods];
  config['label'] = labels(config, 2);
}

/** The labels that share the key of `lab`. */
function labels(config: TomlTable, vault: 1 | 2 | 'absent'): TomlTable[] {
  const profile = { ...section(caSection(config, 1), 'profile') };
  const table = (name: Label): TomlTable => ({
    ca: 'lab',
    profile,
    name,
    auth: { methods: [...RULES[name].methods] },
    devices: RULES[name].devices ?? 'off',
  });
  return [
    ...(['shop', 'desk', 'plant', 'hall'] as const).map(table),
    ...(vault === 'absent' ? [] : [{ ...table('vault'), approval: 'manual', approvals: vault }]),
  ];
}

interface Administration {
  readonly all: readonly Administrator[];
  readonly anchors: readonly Issuer[];
  readonly tokens: readonly TomlTable[];
  readonly clients: readonly TomlTable[];
}

/** Administrators by token and by certificate, each certificate in both encodings. */
async function makeAdministration(): Promise<Administration> {
  const all: Administrator[] = [];
  const tokens = TOKENS.map(({ name, roles }, n) => {
    const token = `token-${n}-${randomBytes(16).toString('hex')}`;
    all.push({ name: `token ${n} of ${name ?? ''}`, facts: { name, roles }, token });
    return { token_hash: `sha256:${sha256(token)}`, description: `token ${n}`, name: name ?? '', roles: [...roles] };
  });
  const ca = await makeCa('CN=Administration');
  const second = await makeCa('CN=Second administration');
  const impostor = await makeCa('CN=Administration', { issuer: second, slot: 'impostor of the administration' });
  const of = (issuer: Issuer, name: string, key = makeKey()): Promise<ClientIdentity> =>
    clientOf(issuer, { subject: `CN=${name}`, sans: [] }, key);
  const add = (name: string, { cert, key }: ClientIdentity, facts: AdminFacts, chain: readonly Issuer[] = []): void => {
    const der = derOf(cert);
    for (const [suffix, one] of [
      ['', der],
      [', re-encoded', ecdsaTwin(der)],
    ] as const)
      all.push({ name: name + suffix, facts, client: { cert: [{ der: one }, ...chain].map(pem).join(''), key } });
  };
  const unlisted: AdminFacts = { name: undefined, roles: ['ra'] };
  const [adaKey, bob] = [makeKey(), await of(ca, 'Bob')];
  add('key of Ada', await of(ca, 'Ada', adaKey), { name: 'Ada', roles: ['ra'] });
  add('key of Ada, re-issued', await of(ca, 'Ada Augusta', adaKey), { name: 'Ada', roles: ['ra'] });
  add('certificate of Bob', bob, { name: 'Bob', roles: ['admin'] });
  add('certificate of Bob, renewed', await of(ca, 'Bob'), unlisted);
  add('names of Cleo', await of(ca, 'Cleo'), { name: 'Cleo', roles: ['auditor', 'ra'] });
  add('names of Cleo, re-issued', await of(ca, 'Cleo'), { name: 'Cleo', roles: ['auditor', 'ra'] });
  add('names of Cleo, by another CA with that name', await of(impostor, 'Cleo'), unlisted, [impostor]);
  add('certificate of Dora', await of(ca, 'Dora'), unlisted);
  const clients = [
    { name: 'Ada', spki_sha256: sha256(adaKey.spki), roles: ['ra'] },
    { name: 'Bob', fingerprint: `sha256:${sha256(derOf(bob.cert))}`, roles: ['admin'] },
    { name: 'Cleo', subject: 'CN=Cleo', issuer: 'CN=Administration', roles: ['auditor', 'ra'] },
  ];
  return { all, anchors: [ca, second], tokens, clients };
}

function configureAdministrators(config: TomlTable, dir: string, { anchors, tokens, clients }: Administration): void {
  const bearer = section(config, 'admin', 'bearer_token');
  bearer['tokens'] = [...(Array.isArray(bearer['tokens']) ? bearer['tokens'] : []), ...tokens];
  appendFileSync(join(dir, 'admin/ca.pem'), anchors.map(pem).join(''));
  section(config, 'admin')['clients'] = [...clients];
  section(config, 'admin', 'tls')['default_roles'] = ['ra'];
}
