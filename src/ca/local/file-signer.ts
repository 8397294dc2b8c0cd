/** A CA key in a PEM file. */
import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';

import { parsePem } from '../../pki/der/pem.ts';
import { parsePublicKey } from '../../pki/x509/public-key.ts';
import {
  createSignature,
  defaultSignatureAlgorithm,
  type SignatureAlgorithm,
} from '../../pki/x509/signature-algorithms.ts';
import type { HealthReport, Signer } from '../driver.ts';
import { InputError } from '../../pki/input-error.ts';

/** PEM labels of unencrypted private keys: PKCS #8, SEC 1, PKCS #1. */
const KEY_LABELS = ['PRIVATE KEY', 'EC PRIVATE KEY', 'RSA PRIVATE KEY'];

/** Signs with a key held in memory: SHA-256 with RSA and P-256, SHA-384 with P-384, SHA-512 with P-521, Ed25519. */
export class FileSigner implements Signer {
  readonly spki: Buffer;
  readonly signatureAlgorithm: Buffer;
  readonly #algorithm: SignatureAlgorithm;
  readonly #keyType: string;
  readonly #key: KeyObject;

  /**
   * @param pem one private key: PKCS #8, SEC 1 or PKCS #1, not encrypted
   * @throws InputError that says what is wrong with it, without a byte of it
   */
  constructor(pem: string) {
    this.#key = readPrivateKey(pem);
    this.spki = createPublicKey(this.#key).export({ format: 'der', type: 'spki' });
    this.#keyType = parsePublicKey(this.spki).keyType;
    const algorithm = defaultSignatureAlgorithm(this.#keyType);
    if (algorithm === undefined) throw new InputError(`a CA key of the type ${this.#keyType} is not supported`);
    this.#algorithm = algorithm;
    this.signatureAlgorithm = algorithm.der;
  }

  /** P-256 and Ed25519 at once, the rest in the thread pool. */
  sign(tbs: Buffer): Promise<Buffer> {
    return createSignature(this.#algorithm, this.#key, this.#keyType, tbs);
  }

  health(): Promise<HealthReport> {
    return Promise.resolve({ health: 'ok' });
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

function readPrivateKey(pem: string): KeyObject {
  const labels = parsePem(pem).map(({ label }) => label);
  if (labels.includes('ENCRYPTED PRIVATE KEY') || /Proc-Type: *4, *ENCRYPTED/i.test(pem))
    throw new InputError('the private key is encrypted; give it without a passphrase and guard it by its permissions');
  // an "EC PARAMETERS" block in front is what `openssl ecparam -genkey` writes
  const keys = labels.filter((label) => KEY_LABELS.includes(label));
  if (keys.length !== 1) throw new InputError('not a PEM file with exactly one private key');
  try {
    return createPrivateKey(pem.slice(pem.indexOf(`-----BEGIN ${keys[0] ?? ''}-----`)));
  } catch {
    throw new InputError('the private key cannot be read');
  }
}
