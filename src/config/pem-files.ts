/** Certificates and keys from files, with reasons an operator can act on. */
import { createPrivateKey, createPublicKey } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { EstuaryError } from '../errors.ts';
import { parseCertificate } from '../pki/x509/certificate.ts';
import type { Certificate } from '../pki/x509/certificate.ts';
import { parsePem } from '../pki/der/pem.ts';
import { errorCode } from './load-secret.ts';
import { InputError } from '../pki/input-error.ts';

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
export async function readCertificates(file: string): Promise<readonly [Certificate, ...Certificate[]]> {
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

/** The private key of a PEM file. @throws FileError, which says nothing of the file's contents */
export async function readPrivateKey(file: string): Promise<KeyObject> {
  const pem = await readBytes(file, PRIVATE_KEY);
  if (/-----BEGIN ENCRYPTED PRIVATE KEY-----|^Proc-Type: 4,ENCRYPTED/m.test(pem.toString('latin1')))
    throw new FileError(`${file} is encrypted`, PRIVATE_KEY);
  try {
    return createPrivateKey(pem);
  } catch {
    throw new FileError(`${file} holds no readable private key`, PRIVATE_KEY);
  } finally {
    pem.fill(0);
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
