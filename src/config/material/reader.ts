import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { EstuaryError } from '../../errors.ts';
import { parsePem } from '../../pki/der/pem.ts';
import { InputError } from '../../pki/input-error.ts';
import { type Certificate, parseCertificate } from '../../pki/x509/certificate.ts';
import { formatName } from '../../pki/x509/name.ts';
import type { Problem, Warning } from '../problem.ts';
import { errorCode } from '../secret.ts';
import type { Certificates, KeyPair } from './material.ts';

/** `FILE_INVALID`: why a file is not what it should be, and what is allowed. */
export class FileError extends EstuaryError {
  readonly allowed: string;

  constructor(message: string, allowed: string) {
    super(500, 'FILE_INVALID', message);
    this.allowed = allowed;
  }
}

/** @throws FileError */
export async function readBytes(file: string, allowed: string): Promise<Buffer> {
  try {
    return await readFile(file);
  } catch (error) {
    throw new FileError(`cannot read ${file}: ${errorCode(error)}`, allowed);
  }
}

const CERTIFICATES = 'a PEM file with one certificate or more';

/** The certificates of a PEM file, at least one. @throws FileError */
export async function readCertificates(file: string): Promise<Certificates> {
  const text = (await readBytes(file, CERTIFICATES)).toString('latin1');
  try {
    const [first, ...others] = parsePem(text)
      .filter(({ label }) => label === 'CERTIFICATE' || label === 'X509 CERTIFICATE')
      .map(({ der }) => parseCertificate(der));
    if (first !== undefined) return [first, ...others];
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    throw new FileError(`${file} holds a damaged certificate: ${error.message}`, CERTIFICATES);
  }
  throw new FileError(`${file} holds no certificate`, CERTIFICATES);
}

const PRIVATE_KEY = 'a PEM file with one private key, without a passphrase';

/** PEM labels of unencrypted private keys: PKCS #8, SEC 1, PKCS #1. */
const KEY_BEGIN = /-----BEGIN (?:PRIVATE KEY|EC PRIVATE KEY|RSA PRIVATE KEY)-----/g;

/** The private key of a PEM file. @throws FileError, which says nothing of the file's contents */
export async function readPrivateKey(file: string): Promise<KeyObject> {
  const pem = await readBytes(file, PRIVATE_KEY);
  try {
    const text = pem.toString('latin1');
    if (/-----BEGIN ENCRYPTED PRIVATE KEY-----|^Proc-Type: *4, *ENCRYPTED/im.test(text))
      throw new FileError(`${file} is encrypted`, PRIVATE_KEY);
    const [begin, ...others] = text.matchAll(KEY_BEGIN);
    if (others.length > 0) throw new FileError(`${file} holds ${others.length + 1} private keys`, PRIVATE_KEY);
    // An "EC PARAMETERS" block in front is what `openssl ecparam -genkey` writes.
    return parsePrivateKey(pem.subarray(begin?.index ?? 0), file);
  } finally {
    pem.fill(0);
  }
}

function parsePrivateKey(pem: Buffer, file: string): KeyObject {
  try {
    return createPrivateKey(pem);
  } catch {
    throw new FileError(`${file} holds no readable private key`, PRIVATE_KEY);
  }
}

/** Whether the certificate is the key's. */
export function isKeyOf(key: KeyObject, certificate: Certificate): boolean {
  const spki = createPublicKey(key).export({ format: 'der', type: 'spki' });
  return spki.equals(certificate.spki);
}

/** Whether others than the owner and the group may read the file. */
async function isWorldReadable(file: string): Promise<boolean> {
  try {
    return ((await stat(file)).mode & 0o004) !== 0;
  } catch {
    return false;
  }
}

/** Reads the files of a configuration, each of certificates once, and collects what is wrong with them. */
export class MaterialReader {
  readonly problems: Problem[] = [];
  readonly warnings: Warning[] = [];
  readonly now: number;
  readonly #strict: boolean;
  readonly #certificates = new Map<string, Promise<Certificates>>();
  #incomplete = false;

  /**
   * @param now milliseconds since the epoch, for validity
   * @param strict `profile = "niap"`: what else would be a warning about expiry is a problem
   */
  constructor(now: number, strict: boolean) {
    this.now = now;
    this.#strict = strict;
  }

  /** Whether something that the service works with could not be read; what it is, is among the problems. */
  get incomplete(): boolean {
    return this.#incomplete;
  }

  problem(key: string, message: string, allowed: string): void {
    this.problems.push({ key, message: `${message} (${allowed})` });
  }

  warn(key: string, message: string, better: string): void {
    this.warnings.push({ key, message: `${message} (${better})` });
  }

  /** The result of a reading, or undefined when it failed and has been reported. The empty path that stands in for a wrong one is not read. */
  async reading<T>(key: string, file: string, read: (file: string) => Promise<T>): Promise<T | undefined> {
    const result = await this.look(key, file, read);
    if (result === undefined) this.#incomplete = true;
    return result;
  }

  /** As {@link reading}, of a file that another reads when it is needed. */
  async look<T>(key: string, file: string, read: (file: string) => Promise<T>): Promise<T | undefined> {
    if (file === '') return undefined;
    try {
      return await read(file);
    } catch (error) {
      if (!(error instanceof FileError)) throw error;
      this.problem(key, error.message, error.allowed);
      return undefined;
    }
  }

  /** The certificates of a PEM file, or undefined when that has been reported. */
  certificates(key: string, file: string): Promise<Certificates | undefined> {
    return this.reading(key, file, (path) => this.#read(path));
  }

  /** As {@link certificates}; what is wrong with the file is reported by another. */
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

  validity(key: string, certificate: Certificate, what: string): void {
    const { notBefore, notAfter } = certificate;
    if (notAfter.getTime() < this.now)
      this.problem(key, `${what} expired on ${notAfter.toISOString()}`, 'a certificate that is valid now');
    else if (notBefore.getTime() > this.now)
      this.problem(key, `${what} is not valid before ${notBefore.toISOString()}`, 'a certificate that is valid now');
  }

  /**
   * Like {@link validity} for a certificate whose end must not keep a server from starting: one that runs would have gone
   * on, too. `effect` says what becomes of it.
   */
  #validityUnlessExpired(key: string, certificate: Certificate, effect: string): void {
    const { notAfter } = certificate;
    if (this.#strict || notAfter.getTime() >= this.now) this.validity(key, certificate, 'the certificate');
    else this.warn(key, `the certificate expired on ${notAfter.toISOString()}: ${effect}`, 'one that is valid now');
  }

  /** A private key, or undefined when what is wrong with it has been reported. */
  async privateKey(key: string, file: string): Promise<KeyObject | undefined> {
    const privateKey = await this.reading(key, file, readPrivateKey);
    await this.permissions(key, file);
    return privateKey;
  }

  /**
   * A certificate and its private key: both readable, belonging together, in their validity.
   *
   * @param onceExpired what happens without it; given, an expired certificate is a warning (with `profile = "niap"` a
   *   problem like any other)
   */
  async pair(
    certificateKey: string,
    certificateFile: string,
    key: string,
    keyFile: string,
    onceExpired?: string,
  ): Promise<KeyPair | undefined> {
    const certificates = await this.certificates(certificateKey, certificateFile);
    const privateKey = await this.privateKey(key, keyFile);
    if (certificates === undefined) return undefined;
    if (onceExpired === undefined) this.validity(certificateKey, certificates[0], 'the certificate');
    else this.#validityUnlessExpired(certificateKey, certificates[0], onceExpired);
    if (privateKey === undefined) return undefined;
    if (!isKeyOf(privateKey, certificates[0]))
      this.problem(key, `is not the key of ${certificateKey}`, 'the private key of the first certificate');
    return { certificates, privateKey };
  }

  async permissions(key: string, file: string): Promise<void> {
    if (file !== '' && (await isWorldReadable(file)))
      this.warn(key, `${file} can be read by everybody on this machine`, 'mode 0600');
  }

  /** A bundle of CA certificates. One that has expired is only a warning while others are left. */
  async anchors(key: string, file: string): Promise<Certificates | undefined> {
    const certificates = await this.certificates(key, file);
    if (certificates === undefined) return undefined;
    for (const { isCa, subject } of certificates)
      if (!isCa) this.problem(key, `"${formatName(subject)}" is no CA certificate`, 'CA certificates only');
    const expired = certificates.filter(({ notAfter }) => notAfter.getTime() < this.now);
    if (expired.length === certificates.length)
      this.problem(key, 'every certificate in it has expired', 'at least one that is valid now');
    else
      for (const { subject, notAfter } of expired)
        this.warn(key, `"${formatName(subject)}" expired on ${notAfter.toISOString()}`, 'valid CA certificates');
    return certificates;
  }

  async exists(key: string, file: string, allowed: string): Promise<void> {
    if (file === '') return;
    try {
      await stat(file);
    } catch (error) {
      this.problem(key, `cannot read ${file}: ${errorCode(error)}`, allowed);
    }
  }
}
