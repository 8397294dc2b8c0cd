/** A CA key in a file. */
import { createPublicKey, type KeyObject } from 'node:crypto';

import { parsePublicKey } from '../../pki/x509/public-key.ts';
import {
  createSignature,
  defaultSignatureAlgorithm,
  type SignatureAlgorithm,
} from '../../pki/x509/signature-algorithms.ts';
import type { HealthReport, Signer } from '../driver.ts';
import { InputError } from '../../pki/input-error.ts';

/** Signs with a key held in memory: SHA-256 with RSA and P-256, SHA-384 with P-384, SHA-512 with P-521, EdDSA, ML-DSA. */
export class FileSigner implements Signer {
  readonly spki: Buffer;
  readonly signatureAlgorithm: Buffer;
  readonly #algorithm: SignatureAlgorithm;
  readonly #keyType: string;
  readonly #key: KeyObject;

  /** @throws InputError where a key of its type does not sign certificates */
  constructor(privateKey: KeyObject) {
    this.#key = privateKey;
    this.spki = createPublicKey(this.#key).export({ format: 'der', type: 'spki' });
    this.#keyType = parsePublicKey(this.spki).keyType;
    const algorithm = defaultSignatureAlgorithm(this.#keyType);
    if (algorithm === undefined) throw new InputError(`a CA key of the type ${this.#keyType} is not supported`);
    this.#algorithm = algorithm;
    this.signatureAlgorithm = algorithm.der;
  }

  /** At once where that is cheap, otherwise in the thread pool: see {@link createSignature}. */
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
