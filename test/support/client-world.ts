/**
 * A world for `estuary client` in which time is a number, the disk a map and the EST server a function: a client can be
 * killed at each step, and months pass in a moment. The server is simplified; other tests use real ones.
 */
import { encodeAuthorityKeyIdentifier } from '../../src/pki/x509/extensions.ts';
import type { RenewalInformation } from '../../src/client/http/est-server.ts';
import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';
import { dirname } from 'node:path';
import { CertificateAgent, type StepResult } from '../../src/client/certificate-agent.ts';
import { ClientError } from '../../src/client/client-error.ts';
import type { CertificateConfig, ServerConfig } from '../../src/client/config/schema.ts';
import { readClientConfig } from '../../src/client/config/load.ts';
import type { ClientContext, EstOperations } from '../../src/client/context.ts';
import type { Credentials } from '../../src/client/http/authentication.ts';
import type { EnrollmentAnswer } from '../../src/client/http/est-server.ts';
import type { Disk } from '../../src/client/keep/disk.ts';
import type { AttrOrOid } from '../../src/pki/pkcs10/csrattrs.ts';
import { parseCsr, type Csr } from '../../src/pki/pkcs10/csr.ts';
import { parseCertificate, parsePemCertificates, type Certificate } from '../../src/pki/x509/certificate.ts';
import { newKeyPair } from '../../src/pki/x509/key-pair.ts';
import { formatName } from '../../src/pki/x509/name.ts';
import { createSignature } from '../../src/pki/x509/signature-algorithms.ts';
import { idOfKeyUri } from '../../src/client/token/key-uri.ts';
import type { TokenKeys } from '../../src/client/token/token.ts';
import { OID } from '../../src/pki/der/oids.ts';
import { extKeyUsage, keyUsage, makeCa, makeCertificate, type Issuer } from './certificates.ts';

export const DAY = 86_400_000;
export const START = Date.UTC(2026, 10, 22);
const FOLDER = '/certificates/web';

export class Killed extends Error {}

interface GeneratedPair {
  readonly spki: Buffer;
  readonly key: KeyObject;
  readonly keyType: string;
}

type Entry =
  | { readonly kind: 'folder' }
  | { readonly kind: 'file'; readonly content: string }
  | { readonly kind: 'link'; readonly target: string };

/** What the CA does with a request: issues, refuses, lets wait, or issues and loses the answer. */
export type Decision = 'issue' | 'lose' | ClientError | { readonly retryAfter: number };

export class ClientWorld {
  now = START;
  readonly entries = new Map<string, Entry>([['/', { kind: 'folder' }]]);
  /** Of each run of the hook, the serial number it was told. */
  readonly hooks: string[] = [];
  readonly log: string[] = [];
  /** What came to the server. */
  readonly requests: { readonly operation: string; readonly csr: Csr; readonly der: Buffer; readonly time: number }[] =
    [];
  readonly issued: Certificate[] = [];
  /** Passwords that came to the server. */
  readonly passwords: string[] = [];
  /** What the next certificates have in place of what was requested. */
  changes: Partial<Parameters<typeof makeCertificate>[0]> = {};
  attributes: AttrOrOid[] = [];
  /** Whether nothing more can be written. */
  isDiskFull = false;
  /** Steps until the process is killed. */
  lives = Infinity;
  lifetime = 10 * DAY;
  decide: () => Decision = () => 'issue';
  hook: () => void = () => undefined;
  /** Connects to a real server in place of the function. */
  connect: ClientContext['server'] | undefined;
  /** What /cacerts lists, and who signs. */
  cas: { readonly listed: readonly Certificate[]; readonly issuer: Issuer };

  constructor(issuer: Issuer) {
    this.cas = { listed: [parseCertificate(issuer.der)], issuer };
  }

  static async make(): Promise<ClientWorld> {
    return new ClientWorld(await makeCa('CN=Root 1', { notBefore: START - DAY }));
  }

  /** One step of the client, as a process that has just been started. */
  async step(force?: 'enroll' | 'renew'): Promise<StepResult> {
    return this.#agent().step({ force });
  }

  /** Steps until nothing is due before the time is over. */
  async until(end: number): Promise<void> {
    while (this.now < end) {
      const { next } = await this.step();
      if (next >= end) break;
      this.now = Math.max(next, this.now + 1000);
    }
    this.now = end;
  }

  get live(): { readonly certificate: Certificate; readonly version: number } | undefined {
    const link = this.entries.get(`${FOLDER}/live`);
    if (link?.kind !== 'link') return undefined;
    const [certificate] = parsePemCertificates(this.text(`${link.target}/fullchain.pem`) ?? '');
    return certificate && { certificate, version: Number(link.target.replace('versions/', '')) };
  }

  text(name: string): string | undefined {
    const entry = this.entries.get(`${FOLDER}/${name}`);
    return entry?.kind === 'file' ? entry.content : undefined;
  }

  /** Another world with the same past. */
  copy(): ClientWorld {
    const world = new ClientWorld(this.cas.issuer);
    for (const [path, entry] of this.entries) world.entries.set(path, entry);
    world.issued.push(...this.issued);
    world.now = this.now;
    return world;
  }

  /** What an operator puts into the folder. */
  write(name: string, content: string): void {
    this.entries.set(`${FOLDER}/${name}`, { kind: 'file', content });
  }

  get disk(): Disk {
    return this.#disk();
  }

  /** What programs see is a whole pair, whenever somebody looks. */
  assertWhole(): void {
    const link = this.entries.get(`${FOLDER}/live`);
    if (link === undefined) return;
    if (link.kind !== 'link') throw new Error('live is no link');
    const uri = this.text(`${link.target}/key.uri`);
    const spkiInToken = this.tokenKeys.get(idOfKeyUri(uri ?? '') ?? '')?.spki;
    const key = this.text(`${link.target}/key.pem`);
    const [certificate] = parsePemCertificates(this.text(`${link.target}/cert.pem`) ?? '');
    if ((key === undefined && spkiInToken === undefined) || certificate === undefined)
      throw new Error(`${link.target} is not whole`);
    const spki = spkiInToken ?? createPublicKey(key ?? '').export({ format: 'der', type: 'spki' });
    if (!certificate.spki.equals(spki)) throw new Error('the key is not that of the certificate');
  }

  otp = 'secret';
  config: { certificate: CertificateConfig; server: ServerConfig } = configOf({});

  #agent(): CertificateAgent {
    return new CertificateAgent(this.config.certificate, this.config.server, this.#context());
  }

  #drawn = 6;

  #tick(): void {
    this.lives -= 1;
    if (this.lives < 0) throw new Killed();
  }

  #context(): ClientContext {
    return {
      now: () => this.now,
      random: () => 0.5,
      randomBytes: (count) => Buffer.alloc(count, (this.#drawn += 1)),
      env: { OTP: this.otp },
      disk: this.#disk(),
      runHook: (_command, environment) => {
        if (environment['ESTUARY_HOOK'] !== 'deploy') throw new Error('a hook that is not configured');
        this.#tick();
        this.hook();
        this.hooks.push(environment['ESTUARY_SERIAL'] ?? '');
        this.#tick();
        return Promise.resolve();
      },
      log: (level, _certificate, message) => void this.log.push(`${level}: ${message}`),
      server:
        this.connect ?? (({ credentials }, _trust, identity) => this.#server(credentials, identity !== undefined)),
      ask: undefined,
      token: () => this.#token(),
      ocsp: (url, request) => this.ocsp(url, request),
    };
  }

  /** When to renew the current certificate; default: {@link window} for the first one. */
  suggest: () => RenewalInformation | 'unknown' | undefined = () => (this.issued.length > 1 ? undefined : this.window);
  ocsp: (url: string, request: Buffer) => Promise<Buffer> = () => Promise.reject(new Error('no responder'));
  /** What the server suggests for the first certificate, and when it was asked. */
  window: RenewalInformation | undefined;
  readonly asked: { readonly id: string; readonly time: number }[] = [];

  /** The keys in its token, by id. */
  readonly tokenKeys = new Map<string, GeneratedPair>();

  #token(): TokenKeys {
    const found = (id: string): GeneratedPair => {
      const pair = this.tokenKeys.get(id);
      if (pair === undefined) throw new ClientError('refused', 'KEY_UNUSABLE', `no key ${id}`);
      return pair;
    };
    return {
      generate: async (keyType, id) => {
        this.#tick();
        const { publicKey, privateKey } = await newKeyPair(keyType);
        const key = createPrivateKey({ key: privateKey, format: 'der', type: 'pkcs8' });
        this.tokenKeys.set(id, { spki: publicKey, key, keyType });
        this.#tick();
      },
      publicKey: (id) => Promise.resolve(found(id).spki),
      sign: (id, algorithm, data) => createSignature(algorithm, found(id).key, found(id).keyType, data),
      list: () => Promise.resolve(new Set(this.tokenKeys.keys())),
      destroy: (id) => {
        this.#tick();
        this.tokenKeys.delete(id);
        this.#tick();
        return Promise.resolve();
      },
    };
  }

  #server({ password }: Credentials, authenticated: boolean): EstOperations {
    return {
      base: new URL('https://est.example'),
      serverCertificate: undefined,
      use: () => undefined,
      close: () => undefined,
      caCertificates: () => {
        this.#tick();
        return Promise.resolve([...this.cas.listed]);
      },
      renewalInfo: (id) => {
        this.asked.push({ id, time: this.now });
        return Promise.resolve(this.suggest());
      },
      csrAttributes: () => {
        this.#tick();
        return Promise.resolve(this.attributes);
      },
      enroll: async (operation, csr) => {
        const der = await csr(Buffer.from('binding'));
        this.#tick();
        if (operation === 'simplereenroll' && !authenticated) throw new Error('a renewal without a certificate');
        if (!authenticated) this.passwords.push((await password?.()) ?? '');
        const answer = await this.#enroll(operation, der);
        this.#tick();
        return answer;
      },
    };
  }

  async #enroll(operation: string, der: Buffer): Promise<EnrollmentAnswer> {
    const csr = parseCsr(der);
    this.requests.push({ operation, csr, der, time: this.now });
    const decision = this.decide();
    if (decision instanceof ClientError) throw decision;
    if (typeof decision === 'object') return { kind: 'pending', ...decision };
    // The same request again has the same certificate (docs/guides/approval.md).
    const before = this.issued.find(({ spki }) => spki.equals(csr.publicKey.spki));
    const certificate = before ?? (await this.#issue(csr));
    if (before === undefined) this.issued.push(certificate);
    if (decision === 'lose') throw new ClientError('later', 'SERVER_UNREACHABLE', 'the connection was lost');
    return { kind: 'issued', certificate };
  }

  async #issue({ subject, publicKey, extensions }: Csr): Promise<Certificate> {
    const { der } = await makeCertificate({
      subject: formatName(subject),
      issuer: this.cas.issuer,
      keys: { publicKey: publicKey.keyObject, privateKey: this.cas.issuer.keys.privateKey },
      notBefore: this.now - 60_000,
      notAfter: this.now + this.lifetime,
      extensions: [
        keyUsage('digitalSignature'),
        extKeyUsage(OID.clientAuth),
        { oid: OID.authorityKeyIdentifier, critical: false, value: encodeAuthorityKeyIdentifier(Buffer.alloc(20, 1)) },
        ...extensions.filter(({ oid }) => oid === OID.subjectAltName),
      ],
      ...this.changes,
    });
    return parseCertificate(der);
  }

  #disk(): Disk {
    const { entries } = this;
    const change = (work: () => void): void => {
      this.#tick();
      work();
    };
    const grow = (work: () => void): void => {
      if (this.isDiskFull) throw Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' });
      change(work);
    };
    const below = (path: string): string[] => [...entries.keys()].filter((entry) => entry.startsWith(`${path}/`));
    const removeAll = (path: string): void => {
      // In any order, and a process may be killed in between: the longest first is as bad as any.
      for (const one of [...below(path).sort((a, b) => b.length - a.length), path])
        if (entries.has(one)) change(() => entries.delete(one));
    };
    return {
      read: (path) => {
        const entry = entries.get(path);
        return entry?.kind === 'file' ? entry.content : undefined;
      },
      list: (folder) =>
        [...entries.keys()]
          .filter((path) => dirname(path) === folder && path !== '/')
          .map((path) => path.slice(folder.length + 1))
          .sort(),
      programs: () => [],
      linkTarget: (path) => {
        const entry = entries.get(path);
        return entry?.kind === 'link' ? entry.target : undefined;
      },
      makeFolder: (path) => {
        if (!entries.has(path)) grow(() => entries.set(path, { kind: 'folder' }));
      },
      write: (path, content) => {
        if (entries.has(path)) throw new Error(`${path} is there already`);
        grow(() => entries.set(path, { kind: 'file', content: String(content).slice(0, String(content).length / 2) }));
        change(() => entries.set(path, { kind: 'file', content: String(content) }));
      },
      rename: (from, to) =>
        change(() => {
          const entry = entries.get(from);
          if (entry === undefined) throw new Error(`${from} is not there`);
          for (const one of below(from)) {
            const moved = entries.get(one);
            entries.delete(one);
            if (moved !== undefined) entries.set(`${to}${one.slice(from.length)}`, moved);
          }
          entries.delete(from);
          entries.set(to, entry);
        }),
      makeLink: (target, path) => grow(() => entries.set(path, { kind: 'link', target })),
      remove: removeAll,
    };
  }
}

/** A client.toml with what the test changes in its certificate. */
export function configOf(
  changes: Readonly<Record<string, unknown>>,
  document: Readonly<Record<string, unknown>> = {},
): {
  certificate: CertificateConfig;
  server: ServerConfig;
} {
  const { certificate, server } = readClientConfig(
    {
      ...document,
      server: { url: 'https://est.example', system_trust_anchors: true },
      certificate: [
        { folder: FOLDER, subject: 'CN=web', dns_names: ['web.example'], otp_env: 'OTP', reload: 'hook', ...changes },
      ],
    },
    '/certificates/client.toml',
  );
  const [first] = certificate;
  if (first === undefined) throw new Error('no certificate');
  return { certificate: first, server };
}
