import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { EstuaryError } from '../../errors.ts';
import { unlessMalformed } from '../../pki/der/der.ts';
import { parsePem, pemText, tidyPem } from '../../pki/der/pem.ts';
import { InputError } from '../../pki/input-error.ts';
import { type Certificate, isAnchor, parsePemCertificates } from '../../pki/x509/certificate.ts';
import { formatName } from '../../pki/x509/name.ts';
import { parsePublicKey, samePublicKey } from '../../pki/x509/public-key.ts';
import { readContent } from '../content.ts';
import type { Fault, Problem, Warning } from '../problem.ts';
import { errorCode, type Secret } from '../secret.ts';
import { type Certificates, FileMemory, type KeyPair, memoryIds } from './material.ts';

/** `FILE_INVALID`: why a file is invalid, and what is allowed. */
export class FileError extends EstuaryError {
  readonly allowed: string;

  constructor(message: string, allowed: string) {
    super(500, 'FILE_INVALID', message);
    this.allowed = allowed;
  }
}

export async function readBytes(file: string, allowed: string): Promise<Buffer> {
  try {
    return await readContent(file);
  } catch (error) {
    throw new FileError(`cannot read ${file}: ${errorCode(error)}`, allowed);
  }
}

const CERTIFICATES = 'a PEM file with one certificate or more';

/** The certificates of a file, at least one. @throws FileError */
export async function readCertificates(file: string): Promise<Certificates> {
  const bytes = await readBytes(file, CERTIFICATES);
  const text = pemText(bytes);
  try {
    const [first, ...others] = parsePemCertificates(text);
    if (first !== undefined) return [first, ...others];
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    throw new FileError(`${file}: ${error.message}`, CERTIFICATES);
  }
  throw new FileError(`${file} contains no certificate: ${contentOf(text)}`, CERTIFICATES);
}

/** What a file has instead, by its labels. */
function contentOf(text: string): string {
  const labels = [...text.matchAll(/-----BEGIN ([^\r\n-]+)-----/g)].map(([, label]) => label);
  if (labels.length > 0) return `it has ${[...new Set(labels)].join(', ')}`;
  if (text.trim() === '') return 'it is empty';
  return text.startsWith('\x30') ? 'it is DER or PKCS #12, not PEM' : 'it is not PEM';
}

const PRIVATE_KEY = 'a PEM file with one private key, without a passphrase';
/** What opens an encrypted key. */
export interface Passphrase {
  readonly password?: Secret | undefined;
  /** What names it; default: the keys of the configuration. */
  readonly from?: string;
  /** Called if the key is not encrypted. */
  readonly onUnused?: () => void;
}

/** PEM labels of private keys: PKCS #8, SEC 1, PKCS #1. */
const KEY_BEGIN = /-----BEGIN (?:ENCRYPTED |EC |RSA )?PRIVATE KEY-----/g;

/**
 * The private key of a PEM file.
 * @param opener of an encrypted one (PKCS #8), if there may be one
 * @throws FileError, without content of the file
 */
export async function readPrivateKey(file: string, opener?: Passphrase): Promise<KeyObject> {
  const { password: passphrase, from = 'password_file or password_env' } = opener ?? {};
  const allowed =
    opener === undefined
      ? PRIVATE_KEY
      : `a PEM file with one private key; if it is encrypted, ${from} with its passphrase`;
  const pem = await readBytes(file, allowed);
  try {
    const text = tidyPem(pem.toString('latin1'));
    const isEncrypted = /-----BEGIN ENCRYPTED PRIVATE KEY-----|^Proc-Type: *4, *ENCRYPTED/im.test(text);
    if (isEncrypted && passphrase === undefined) throw new FileError(`${file} is encrypted`, allowed);
    const [begin, ...others] = text.matchAll(KEY_BEGIN);
    if (others.length > 0) throw new FileError(`${file} contains ${others.length + 1} private keys`, allowed);
    // `openssl ecparam -genkey` writes an "EC PARAMETERS" block first.
    parsePem(text);
    if (begin === undefined) throw new InputError(contentOf(text));
    if (passphrase !== undefined && !isEncrypted) opener?.onUnused?.();
    return parsePrivateKey(text.slice(begin.index), file, allowed, isEncrypted ? passphrase : undefined);
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    throw new FileError(`${file} contains no readable private key: ${error.message}`, allowed);
  } finally {
    pem.fill(0);
  }
}

function parsePrivateKey(pem: string, file: string, allowed: string, passphrase?: Secret): KeyObject {
  try {
    return createPrivateKey(passphrase === undefined ? pem : { key: pem, passphrase: passphrase.reveal() });
  } catch (error) {
    if (passphrase === undefined) throw new FileError(`${file} contains no readable private key`, allowed);
    // Such as RC2, and DES with MD5.
    if (error instanceof Error && 'code' in error && error.code === 'ERR_OSSL_EVP_UNSUPPORTED')
      throw new FileError(
        `${file} is encrypted with an outdated algorithm`,
        'a key that "openssl pkcs8 -topk8" encrypts',
      );
    throw new FileError(`${file} has another passphrase, or is damaged`, allowed);
  }
}

/** In any encoding: the point of a certificate may be compressed. */
export function isKeyOf(key: KeyObject, { publicKey }: Certificate): boolean {
  const own = parsePublicKey(createPublicKey(key).export({ format: 'der', type: 'spki' }));
  return unlessMalformed(() => samePublicKey(own, publicKey), false);
}

/** Whether users other than the owner and the group may read the file. */
async function isWorldReadable(file: string): Promise<boolean> {
  try {
    return ((await stat(file)).mode & 0o004) !== 0;
  } catch {
    return false;
  }
}

interface ReaderOptions {
  /** Gives keys the labels of their tables, which a reload may reorder. */
  readonly named?: ((key: string) => string) | undefined;
  /** What an earlier reading gave; a reload keeps what it cannot read again. */
  readonly before?: FileMemory | undefined;
  /** Found before: secrets that cannot be read. */
  readonly faults?: readonly Fault[];
}

/** Reads the files of a configuration, each only once, and collects what is wrong with them. */
export class MaterialReader {
  /** Of the configuration, which no file can correct. */
  readonly problems: Problem[] = [];
  readonly faults: Fault[];
  readonly warnings: Warning[] = [];
  readonly now: number;
  /** For the next reload. */
  readonly memory = new FileMemory();
  readonly #options: ReaderOptions;
  readonly #certificates = new Map<string, Promise<Certificates>>();

  constructor(now: number, options: ReaderOptions = {}) {
    this.now = now;
    this.#options = options;
    this.faults = [...(options.faults ?? [])];
  }

  problem(key: string, message: string, allowed: string): void {
    this.problems.push({ key, message: `${message} (${allowed})` });
  }

  /** A file cannot be used: at a reload the earlier content stays in force, otherwise what needs the file does not work. */
  fault(key: string, message: string, allowed: string): void {
    this.faults.push({ key, message: `${message} (${allowed})` });
  }

  warn(key: string, message: string, better: string): void {
    this.warnings.push({ key, message: `${message} (${better})` });
  }

  /**
   * What `load` gives or, if it reports faults, what an earlier reading gave.
   * @param file tells apart the files of a list
   * @param isUsable whether the earlier content may take the place of the new one
   */
  async kept<T>(
    key: string,
    file: string,
    memory: (of: FileMemory) => Map<string, T>,
    load: () => Promise<T | undefined>,
    isUsable: (before: T) => boolean = () => true,
  ): Promise<T | undefined> {
    const from = this.faults.length;
    const loaded = await load();
    const found = this.faults.slice(from).filter(({ isKept }) => isKept !== true);
    const ids = memoryIds((this.#options.named ?? String)(key), file);
    const known = this.#options.before && memory(this.#options.before);
    const before =
      found.length === 0 ? undefined : ids.map((id) => known?.get(id)).find((entry) => entry !== undefined);
    const isKept = before !== undefined && (loaded === undefined || isUsable(before));
    for (const fault of found) if (isKept) this.faults[this.faults.indexOf(fault)] = { ...fault, isKept };
    const result = isKept ? before : loaded;
    if (result !== undefined && (isKept || found.every(({ isTime }) => isTime)))
      for (const id of ids) memory(this.memory).set(id, result);
    return result;
  }

  /**
   * The result of `read`, or undefined after a reported failure. Ignores the empty path that replaces an invalid one.
   */
  async reading<T>(key: string, file: string, read: (file: string) => Promise<T>): Promise<T | undefined> {
    if (file === '') return undefined;
    try {
      return await read(file);
    } catch (error) {
      if (!(error instanceof FileError)) throw error;
      this.fault(key, error.message, error.allowed);
      return undefined;
    }
  }

  /** Checks a file that another component reads when needed. */
  async look(key: string, file: string, read: (file: string) => Promise<unknown>): Promise<void> {
    await this.kept(
      key,
      file,
      ({ seen }) => seen,
      () => this.reading(key, file, (path) => read(path).then(() => true as const)),
    );
  }

  /** The certificates of a file, or undefined if reported. */
  certificates(key: string, file: string): Promise<Certificates | undefined> {
    return this.kept(
      key,
      file,
      (of) => of.certificates,
      () => this.reading(key, file, (path) => this.#read(path)),
    );
  }

  /** {@link certificates} without reporting; another check reports problems. */
  async knownCertificates(file: string | undefined): Promise<readonly Certificate[]> {
    if (file === undefined || file === '') return [];
    try {
      return await this.#read(file);
    } catch (error) {
      if (error instanceof FileError) return [];
      throw error;
    }
  }

  #read(file: string): Promise<Certificates> {
    const known = this.#certificates.get(file) ?? readCertificates(file);
    this.#certificates.set(file, known);
    return known;
  }

  /** Warns of a certificate that is not valid now. @param effect what does not work meanwhile */
  validity(key: string, certificate: Certificate, what: string, effect: string): void {
    const problem = untimely(certificate, this.now);
    if (problem !== undefined) this.warn(key, `${what} ${problem}: ${effect}`, VALID_NOW);
  }

  /** {@link validity} of a certificate without which a label cannot issue. */
  caValidity(key: string, certificate: Certificate, what: string): void {
    const problem = untimely(certificate, this.now);
    if (problem !== undefined) this.faults.push({ key, message: `${what} ${problem} (${VALID_NOW})`, isTime: true });
  }

  async privateKey(key: string, file: string): Promise<KeyObject | undefined> {
    const privateKey = await this.kept(
      key,
      file,
      (of) => of.keys,
      () => this.reading(key, file, (path) => readPrivateKey(path)),
    );
    await this.permissions(key, file);
    return privateKey;
  }

  /**
   * A certificate and its private key: readable and matching.
   * @param effect what does not work with an expired one
   */
  async pair(
    certificateKey: string,
    certificateFile: string,
    key: string,
    keyFile: string,
    effect: string,
  ): Promise<KeyPair | undefined> {
    const pair = await this.kept(
      certificateKey,
      certificateFile,
      ({ pairs }) => pairs,
      async () => {
        const certificates = await this.reading(certificateKey, certificateFile, (path) => this.#read(path));
        const privateKey = await this.reading(key, keyFile, (path) => readPrivateKey(path));
        if (certificates === undefined || privateKey === undefined) return undefined;
        if (isKeyOf(privateKey, certificates[0])) return { certificates, privateKey };
        this.notKeyOf(key, certificateKey, certificates[0]);
        return undefined;
      },
    );
    await this.permissions(key, keyFile);
    if (pair !== undefined) this.validity(certificateKey, pair.certificates[0], 'the certificate', effect);
    return pair;
  }

  /** @param certificateKey names the file of the certificate */
  notKeyOf(key: string, certificateKey: string, { subject }: Certificate): void {
    const message = `is not the key of ${certificateKey}, which begins with "${formatName(subject)}"`;
    this.fault(key, message, 'the private key of the first certificate');
  }

  async permissions(key: string, file: string): Promise<void> {
    if (file !== '' && (await isWorldReadable(file)))
      this.warn(key, `${file} is readable by every user of this machine`, 'mode 0600');
  }

  /** A bundle of CA certificates. Expired ones verify nothing. */
  async anchors(key: string, file: string, counts = isAnchor): Promise<Certificates | undefined> {
    const certificates = await this.kept(
      key,
      file,
      (of) => of.certificates,
      async () => {
        const read = await this.reading(key, file, (path) => this.#read(path));
        for (const certificate of read ?? [])
          if (!counts(certificate))
            this.fault(key, `"${formatName(certificate.subject)}" is not a CA certificate`, 'CA certificates only');
        return read;
      },
    );
    for (const certificate of certificates ?? []) {
      const who = `"${formatName(certificate.subject)}"`;
      if (counts(certificate) && !certificate.isCa) {
        const why = certificate.version < 3 ? `is of version ${certificate.version}` : 'has no basicConstraints';
        this.warn(key, `${who} ${why}: other software may not accept it as a CA`, 'a CA certificate of version 3');
      }
      this.validity(key, certificate, who, 'it verifies nothing');
    }
    return certificates;
  }

  async exists(key: string, file: string, allowed: string): Promise<void> {
    await this.look(key, file, (path) =>
      stat(path).catch((error: unknown) => {
        throw new FileError(`cannot read ${path}: ${errorCode(error)}`, allowed);
      }),
    );
  }
}

const VALID_NOW = 'a certificate that is valid now';

/** Why a certificate is not valid at a time, or undefined. */
export function untimely({ notBefore, notAfter }: Certificate, now: number): string | undefined {
  if (notAfter.getTime() < now) return `expired on ${notAfter.toISOString()}`;
  return notBefore.getTime() > now ? `is not valid before ${notBefore.toISOString()}` : undefined;
}
