import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { EstuaryError } from '../../errors.ts';
import { parsePem, tidyPem } from '../../pki/der/pem.ts';
import { InputError } from '../../pki/input-error.ts';
import { type Certificate, isAnchor, parsePemCertificates } from '../../pki/x509/certificate.ts';
import { formatName } from '../../pki/x509/name.ts';
import type { Problem, Warning } from '../problem.ts';
import { errorCode } from '../secret.ts';
import type { Certificates, KeyPair } from './material.ts';

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
    const [first, ...others] = parsePemCertificates(text);
    if (first !== undefined) return [first, ...others];
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    throw new FileError(`${file}: ${error.message}`, CERTIFICATES);
  }
  throw new FileError(`${file} contains no certificate`, CERTIFICATES);
}

const PRIVATE_KEY = 'a PEM file with one private key, without a passphrase';

/** PEM labels of unencrypted private keys: PKCS #8, SEC 1, PKCS #1. */
const KEY_BEGIN = /-----BEGIN (?:PRIVATE KEY|EC PRIVATE KEY|RSA PRIVATE KEY)-----/g;

/** The private key of a PEM file. @throws FileError, without content of the file */
export async function readPrivateKey(file: string): Promise<KeyObject> {
  const pem = await readBytes(file, PRIVATE_KEY);
  try {
    const text = tidyPem(pem.toString('latin1'));
    if (/-----BEGIN ENCRYPTED PRIVATE KEY-----|^Proc-Type: *4, *ENCRYPTED/im.test(text))
      throw new FileError(`${file} is encrypted`, PRIVATE_KEY);
    const [begin, ...others] = text.matchAll(KEY_BEGIN);
    if (others.length > 0) throw new FileError(`${file} contains ${others.length + 1} private keys`, PRIVATE_KEY);
    // `openssl ecparam -genkey` writes an "EC PARAMETERS" block first.
    parsePem(text);
    return parsePrivateKey(text.slice(begin?.index ?? 0), file);
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    throw new FileError(`${file} contains no readable private key: ${error.message}`, PRIVATE_KEY);
  } finally {
    pem.fill(0);
  }
}

function parsePrivateKey(pem: string, file: string): KeyObject {
  try {
    return createPrivateKey(pem);
  } catch {
    throw new FileError(`${file} contains no readable private key`, PRIVATE_KEY);
  }
}

export function isKeyOf(key: KeyObject, certificate: Certificate): boolean {
  const spki = createPublicKey(key).export({ format: 'der', type: 'spki' });
  return spki.equals(certificate.spki);
}

/** Whether users other than the owner and the group may read the file. */
async function isWorldReadable(file: string): Promise<boolean> {
  try {
    return ((await stat(file)).mode & 0o004) !== 0;
  } catch {
    return false;
  }
}

/** Reads the files of a configuration, each only once, and collects problems. */
export class MaterialReader {
  readonly problems: Problem[] = [];
  readonly warnings: Warning[] = [];
  readonly now: number;
  readonly #strict: boolean;
  readonly #certificates = new Map<string, Promise<Certificates>>();
  /** An essential file is missing; the problems name it. */
  incomplete = false;

  /** @param strict `profile = "niap"`: warnings about expiry become problems */
  constructor(now: number, strict: boolean) {
    this.now = now;
    this.#strict = strict;
  }

  problem(key: string, message: string, allowed: string): void {
    this.problems.push({ key, message: `${message} (${allowed})` });
  }

  warn(key: string, message: string, better: string): void {
    this.warnings.push({ key, message: `${message} (${better})` });
  }

  /**
   * The result of `read`, or undefined after a reported failure. Ignores the empty path that replaces an invalid one.
   */
  async reading<T>(key: string, file: string, read: (file: string) => Promise<T>): Promise<T | undefined> {
    const result = await this.look(key, file, read);
    if (result === undefined) this.incomplete = true;
    return result;
  }

  /** {@link reading} for a file that another component reads when needed. */
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

  /** The certificates of a PEM file, or undefined if reported. */
  certificates(key: string, file: string): Promise<Certificates | undefined> {
    return this.reading(key, file, (path) => this.#read(path));
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

  /**
   * @param onceExpired the consequence of expiry, if it must not prevent a start, since it would not stop a running
   * server: then it is a warning (with `profile = "niap"` a problem)
   */
  validity(key: string, { notBefore, notAfter }: Certificate, what: string, onceExpired?: string): void {
    const allowed = 'a certificate that is valid now';
    const expired = `${what} expired on ${notAfter.toISOString()}`;
    if (notAfter.getTime() < this.now && onceExpired !== undefined && !this.#strict)
      this.warn(key, `${expired}: ${onceExpired}`, allowed);
    else if (notAfter.getTime() < this.now) this.problem(key, expired, allowed);
    else if (notBefore.getTime() > this.now)
      this.problem(key, `${what} is not valid before ${notBefore.toISOString()}`, allowed);
  }

  async privateKey(key: string, file: string): Promise<KeyObject | undefined> {
    const privateKey = await this.reading(key, file, readPrivateKey);
    await this.permissions(key, file);
    return privateKey;
  }

  /**
   * A certificate and its private key: readable, matching, and within validity.
   * @param onceExpired see {@link validity}
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
    this.validity(certificateKey, certificates[0], 'the certificate', onceExpired);
    if (privateKey === undefined) return undefined;
    if (!isKeyOf(privateKey, certificates[0]))
      this.problem(key, `is not the key of ${certificateKey}`, 'the private key of the first certificate');
    return { certificates, privateKey };
  }

  async permissions(key: string, file: string): Promise<void> {
    if (file !== '' && (await isWorldReadable(file)))
      this.warn(key, `${file} is readable by every user of this machine`, 'mode 0600');
  }

  /** A bundle of CA certificates. One that does not say that it is a CA, or that expired where others remain, is a warning. */
  async anchors(key: string, file: string, counts = isAnchor): Promise<Certificates | undefined> {
    const certificates = await this.certificates(key, file);
    if (certificates === undefined) return undefined;
    for (const one of certificates) {
      const who = `"${formatName(one.subject)}"`;
      if (!counts(one)) this.problem(key, `${who} is not a CA certificate`, 'CA certificates only');
      else if (!one.isCa) {
        const why = one.version === 1 ? 'is of version 1' : 'has no basicConstraints';
        this.warn(key, `${who} ${why}: other software may not accept it as a CA`, 'a CA certificate of version 3');
      }
    }
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
