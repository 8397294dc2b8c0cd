/**
 * The folder of one certificate:
 *
 *     live -> versions/3      what programs read; renaming this link replaces key and certificate atomically
 *     versions/3/             key.pem, cert.pem, chain.pem, fullchain.pem …; immutable
 *     pending/                the key and the request in progress
 *     token-keys              IDs of keys generated in a token, until they are removed there
 *     trust/anchors.pem       the trusted CAs
 *     trust/given             fingerprints of the user's CAs, from which the anchors are derived
 *     trust/spent-password    hashes of the passwords that got the last certificates
 *     otp                     a new password, from an operator
 *     ca.pem                  the anchors with their intermediates, for programs
 *     state.json              time of the next attempt, and the last change reported to hooks
 *
 * A process may be killed between any two steps: {@link CertificateFolder.recover} completes or undoes a partial change.
 */
import { basename, join } from 'node:path';
import { pemText } from '../../pki/der/pem.ts';
import { InputError } from '../../pki/input-error.ts';
import { type Certificate, parsePemCertificates, pemOf } from '../../pki/x509/certificate.ts';
import { ClientError } from '../client-error.ts';
import type { CertificateConfig } from '../config/schema.ts';
import type { CaCertificates } from '../trust/anchors.ts';
import { SYSTEM } from '../system.ts';
import { type Disk, type FileAccess, keyFile, type VersionFile } from './disk.ts';
import { parsePendingRequest, parseState, type PendingRequest, type State } from './state.ts';

export interface LiveCertificate {
  readonly version: number;
  readonly certificate: Certificate;
  /** PEM of `certificate` and its chain, as in fullchain.pem. */
  readonly fullChain: string;
  /** PEM, or the URI of a key in a token. */
  readonly privateKey: string;
}

interface FolderAccess {
  readonly folder: FileAccess;
  readonly secret: FileAccess;
  readonly open: FileAccess;
}

/** Old versions to keep, for programs that have not read the new one yet. */
const KEPT_VERSIONS = 2;
const KEPT_PASSWORDS = 4;
const OWN: FileAccess = { mode: 0o600 };
const OWN_FOLDER: FileAccess = { mode: 0o700 };
const PUBLIC: FileAccess = { mode: 0o644 };

export class CertificateFolder {
  readonly path: string;
  readonly #disk: Disk;
  readonly #access: FolderAccess;

  constructor(path: string, disk: Disk, access: FolderAccess) {
    this.path = path;
    this.#disk = disk;
    this.#access = access;
  }

  /** Creates the folder, activates a complete version whose validity has begun, and removes incomplete files. */
  recover(now: number): void {
    const disk = this.#disk;
    disk.makeFolder(this.path, this.#access.folder);
    disk.makeFolder(this.#at('versions'), this.#access.folder);
    for (const folder of [this.path, this.#at('versions'), this.#at('trust')])
      for (const name of disk.list(folder)) if (name.startsWith('.new-')) disk.remove(join(folder, name));
    this.#activate(now);
    const pending = this.pending();
    if (pending === undefined || pending.version < this.#nextVersion()) this.dropPending();
    this.#prune();
  }

  /** The version in use, if any. @throws ClientError `FILES_UNUSABLE` */
  live(): LiveCertificate | undefined {
    const version = this.#liveVersion();
    return version === undefined ? undefined : this.#version(version);
  }

  /** The next certificate, which is not valid yet. @throws ClientError `FILES_UNUSABLE` */
  successor(): LiveCertificate | undefined {
    const newest = this.#versions().at(-1);
    return newest === undefined || newest <= (this.#liveVersion() ?? 0) ? undefined : this.#version(newest);
  }

  #version(version: number): LiveCertificate {
    const folder = join(this.#at('versions'), String(version));
    const fullChain = this.#disk.read(join(folder, 'fullchain.pem'));
    const privateKey = this.#key(folder);
    const [certificate] = this.#certificates(join(folder, 'fullchain.pem'));
    if (fullChain === undefined || privateKey === undefined || certificate === undefined)
      throw new ClientError('local', 'FILES_UNUSABLE', `${folder} lacks its key or its certificate`);
    return { version, certificate, fullChain, privateKey };
  }

  pending(): PendingRequest | undefined {
    const text = this.#disk.read(join(this.#at('pending'), 'request.json'));
    const key = this.#key(this.#at('pending'));
    if (text === undefined || key === undefined) return undefined;
    return parsePendingRequest(text, key);
  }

  /** From now on the same request is sent until it is answered. */
  savePending({ privateKey, ...request }: Omit<PendingRequest, 'version'>): PendingRequest {
    const version = this.#nextVersion();
    const fresh = this.#at('.new-pending');
    this.#disk.remove(fresh);
    this.#disk.makeFolder(fresh, OWN_FOLDER);
    const { name, content } = keyFile(privateKey);
    this.#disk.write(join(fresh, name), content, OWN);
    this.#disk.write(join(fresh, 'request.json'), `${JSON.stringify({ version, ...request }, null, 2)}\n`, OWN);
    this.#disk.remove(this.#at('pending'));
    this.#disk.rename(fresh, this.#at('pending'));
    return { version, privateKey, ...request };
  }

  dropPending(): void {
    this.#disk.remove(this.#at('pending'));
  }

  /** Replaces key and certificate atomically. A certificate that is not valid yet takes over once it is. */
  install(files: readonly VersionFile[], now: number): void {
    const disk = this.#disk;
    const version = this.#nextVersion();
    const fresh = join(this.#at('versions'), `.new-${version}`);
    disk.remove(fresh);
    disk.makeFolder(fresh, this.#access.folder);
    for (const { name, content, secret } of files)
      disk.write(join(fresh, name), content, secret ? this.#access.secret : this.#access.open);
    disk.rename(fresh, join(this.#at('versions'), String(version)));
    this.#activate(now);
    disk.remove(this.#at('pending'));
    this.#prune();
  }

  /** @throws ClientError `FILES_UNUSABLE` */
  trust(): CaCertificates {
    const anchors = this.#certificates(join(this.#at('trust'), 'anchors.pem'));
    const all = this.#certificates(this.#at('ca.pem'));
    return {
      anchors,
      intermediates: all.filter((certificate) => !anchors.some(({ der }) => der.equals(certificate.der))),
    };
  }

  /** @param given see {@link CertificateFolder.given} */
  saveTrust({ anchors, intermediates }: CaCertificates, given: readonly string[]): void {
    this.#disk.makeFolder(this.#at('trust'), OWN_FOLDER);
    // The anchors first: ca.pem is derived from them.
    this.#replace(join(this.#at('trust'), 'anchors.pem'), pemOf(anchors), OWN);
    this.#replace(this.#at('ca.pem'), pemOf([...anchors, ...intermediates]), this.#access.open);
    this.#replace(join(this.#at('trust'), 'given'), given.map((fingerprint) => `${fingerprint}\n`).join(''), OWN);
  }

  /** Fingerprints of the user's CAs, from which the anchors are derived. */
  given(): readonly string[] {
    return this.#lines(join('trust', 'given'));
  }

  /** Records of the passwords that got the last certificates. */
  spentPasswords(): readonly string[] {
    return this.#lines(join('trust', 'spent-password'));
  }

  saveSpentPassword(record: string): void {
    this.#disk.makeFolder(this.#at('trust'), OWN_FOLDER);
    const records = [...this.spentPasswords(), record].slice(-KEPT_PASSWORDS);
    this.#replace(join(this.#at('trust'), 'spent-password'), records.map((record) => `${record}\n`).join(''), OWN);
  }

  /** Saved before creation, so that none is orphaned. */
  tokenKeys(): readonly string[] {
    return this.#lines('token-keys');
  }

  saveTokenKeys(ids: readonly string[]): void {
    this.#replace(this.#at('token-keys'), ids.map((id) => `${id}\n`).join(''), OWN);
  }

  /** PEM of the CAs, for programs. */
  caPem(): string | undefined {
    return this.#disk.read(this.#at('ca.pem'));
  }

  state(): State {
    return parseState(this.#disk.read(this.#at('state.json')));
  }

  saveState(state: State): void {
    this.#replace(this.#at('state.json'), `${JSON.stringify(state, null, 2)}\n`, PUBLIC);
  }

  #replace(path: string, content: string, access: FileAccess): void {
    const fresh = join(path, '..', `.new-${basename(path)}`);
    this.#disk.remove(fresh);
    this.#disk.write(fresh, content, access);
    this.#disk.rename(fresh, path);
  }

  #lines(name: string): readonly string[] {
    return (this.#disk.read(this.#at(name)) ?? '').split('\n').filter((line) => line !== '');
  }

  #key(folder: string): string | undefined {
    return this.#disk.read(join(folder, 'key.pem')) ?? this.#disk.read(join(folder, 'key.uri'));
  }

  #activate(now: number): void {
    const next = this.successor();
    if (next === undefined) return;
    if (this.#liveVersion() !== undefined && next.certificate.notBefore.getTime() > now) return;
    const fresh = this.#at('.new-live');
    this.#disk.remove(fresh);
    this.#disk.makeLink(join('versions', String(next.version)), fresh);
    this.#disk.rename(fresh, this.#at('live'));
  }

  #prune(): void {
    const live = this.#liveVersion() ?? 0;
    const old = this.#versions().filter((version) => version < live);
    for (const version of old.slice(0, Math.max(0, old.length - KEPT_VERSIONS)))
      this.#disk.remove(join(this.#at('versions'), String(version)));
  }

  #liveVersion(): number | undefined {
    const version = /^versions[\\/](\d+)$/.exec(this.#disk.linkTarget(this.#at('live')) ?? '')?.[1];
    return version === undefined ? undefined : Number(version);
  }

  #nextVersion(): number {
    return Math.max(0, ...this.#versions()) + 1;
  }

  /** Ascending. */
  #versions(): number[] {
    return this.#disk
      .list(this.#at('versions'))
      .filter((name) => /^[1-9]\d*$/.test(name))
      .map(Number)
      .sort((a, b) => a - b);
  }

  #certificates(path: string): Certificate[] {
    return readCertificates(this.#disk.read(path) ?? '', path);
  }

  #at(name: string): string {
    return join(this.path, name);
  }
}

/** PEM of a certificate file that the user names, which may be DER; undefined if it does not exist. */
export function readPem(disk: Pick<Disk, 'read'>, path: string): string | undefined {
  const octets = disk.read(path, 'latin1');
  return octets === undefined ? undefined : pemText(Buffer.from(octets, 'latin1'));
}

/** @throws ClientError `FILES_UNUSABLE` */
export function readCertificates(pem: string, where: string): Certificate[] {
  try {
    return parsePemCertificates(pem);
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    throw new ClientError('local', 'FILES_UNUSABLE', `${where}: ${error.message}`, { cause: error });
  }
}

/** Where an operator can put a password for a device that lost its access, without a change of the configuration. */
export const passwordFile = ({ folder }: Pick<CertificateConfig, 'folder'>): string => join(folder, 'otp');

/** @throws ClientError `FILES_UNUSABLE` for an unknown owner or group */
export function accessOf({ owner, group, mode }: Pick<CertificateConfig, 'owner' | 'group' | 'mode'>): FolderAccess {
  const uid = owner === undefined ? undefined : numeric(owner, (name) => SYSTEM.userId(name));
  const gid = group === undefined ? undefined : numeric(group, (name) => SYSTEM.groupId(name));
  const secret = Number.parseInt(mode, 8);
  return { folder: { mode: 0o755, uid, gid }, secret: { mode: secret, uid, gid }, open: { mode: 0o644, uid, gid } };
}

const numeric = (name: string, find: (name: string) => number): number =>
  /^\d+$/.test(name) ? Number(name) : find(name);
