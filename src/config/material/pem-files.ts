/** Certificates and keys from files, with reasons an operator can act on. */
import { createPrivateKey, createPublicKey } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { EstuaryError } from '../../errors.ts';
import { parseCertificate } from '../../pki/x509/certificate.ts';
import type { Certificate } from '../../pki/x509/certificate.ts';
import { parsePem } from '../../pki/der/pem.ts';
import { InputError } from '../../pki/input-error.ts';
import { errorCode } from '../secret.ts';
import type { Certificates } from './material.ts';

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
export async function isWorldReadable(file: string): Promise<boolean> {
  try {
    return ((await stat(file)).mode & 0o004) !== 0;
  } catch {
    return false;
  }
}
