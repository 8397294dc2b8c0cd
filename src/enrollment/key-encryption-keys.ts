/** `[serverkeygen]` with its files read: what the key identifiers of CSRs may name, and how keys are protected. */
import { readFile } from 'node:fs/promises';
import type { Config } from '../config/schema.ts';
import { failed } from '../errors.ts';
import { parsePemCertificates, type Certificate } from '../pki/x509/certificate.ts';

export interface KeyProtectionSettings {
  readonly encryption: 'optional' | 'password' | 'required';
  /** The pre-shared secret of `password`. */
  readonly password: Buffer | undefined;
  /** AES key-encryption keys by the lower-case hex of their identifier. */
  readonly symmetricKeys: ReadonlyMap<string, Buffer>;
  /** Certificates by the lower-case hex of the identifier. */
  readonly certificates: ReadonlyMap<string, Certificate>;
}

/** Reads the certificates that `[[serverkeygen.keys]]` names. @throws a file error, DerError, or EstuaryError on an empty file */
export async function loadKeyProtection({ serverkeygen }: Config): Promise<KeyProtectionSettings> {
  const symmetricKeys = new Map<string, Buffer>();
  const certificates = new Map<string, Certificate>();
  for (const { id, symmetric_key: key, certificate: path } of serverkeygen.keys) {
    if (key !== undefined) symmetricKeys.set(id.toLowerCase(), key.reveal());
    if (path !== undefined) certificates.set(id.toLowerCase(), await readCertificate(path));
  }
  const { encryption, password } = serverkeygen;
  return { encryption, password: password?.reveal(), symmetricKeys, certificates };
}

async function readCertificate(path: string): Promise<Certificate> {
  const [certificate] = parsePemCertificates(await readFile(path, 'latin1'));
  if (certificate === undefined)
    throw failed('NO_CERTIFICATE', 'A certificate is missing.', { detail: `${path} holds none` });
  return certificate;
}
