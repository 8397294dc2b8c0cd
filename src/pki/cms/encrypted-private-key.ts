/** EncryptedPrivateKeyInfo (RFC 5958 §3) with PBES2 (RFC 8018 §6.2): PBKDF2-HMAC-SHA256 and AES-256-CBC. */
import { createCipheriv, pbkdf2, randomBytes } from 'node:crypto';
import { promisify } from 'node:util';
import { integer, NULL, octetString, oid, sequence } from '../der/der.ts';
import { OID } from '../der/oids.ts';

/** Slows down guessing. The 256-bit OTPs do not need it; a pre-shared secret chosen by a person does. */
const ITERATIONS = 210_000;
const SALT_LENGTH = 16;
const KEY_LENGTH = 32;
const BLOCK_LENGTH = 16;

const derive = promisify(pbkdf2);

/**
 * Encrypts a PrivateKeyInfo; the derivation runs in the thread pool.
 * @param pkcs8 DER PrivateKeyInfo
 * @returns DER EncryptedPrivateKeyInfo
 */
export async function encryptPrivateKey(pkcs8: Buffer, password: Buffer): Promise<Buffer> {
  const salt = randomBytes(SALT_LENGTH);
  const iv = randomBytes(BLOCK_LENGTH);
  const key = await derive(password, salt, ITERATIONS, KEY_LENGTH, 'sha256');
  const cipher = createCipheriv('aes-256-cbc', key, iv);
  const encrypted = Buffer.concat([cipher.update(pkcs8), cipher.final()]);
  key.fill(0);
  const prf = sequence(oid(OID.hmacWithSHA256), NULL);
  const derivation = sequence(oid(OID.pbkdf2), sequence(octetString(salt), integer(ITERATIONS), prf));
  const encryption = sequence(oid(OID.aes256CBC), octetString(iv));
  return sequence(sequence(oid(OID.pbes2), sequence(derivation, encryption)), octetString(encrypted));
}
