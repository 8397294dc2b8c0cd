/** How a key of ours signs: nothing leaves that does not verify. */
import { createPublicKey, type KeyObject } from 'node:crypto';
import { describe, EstuaryError, failed } from '../../errors.ts';
import { bitString, explicit, sequence } from '../../pki/der/der.ts';
import { InputError } from '../../pki/input-error.ts';
import type { Certificate } from '../../pki/x509/certificate.ts';
import { parsePublicKey, type PublicKeyInfo } from '../../pki/x509/public-key.ts';
import {
  createSignature,
  defaultSignatureAlgorithm,
  parseSignatureAlgorithm,
  type SignatureAlgorithm,
  verifySignature,
} from '../../pki/x509/signature-algorithms.ts';
import type { HealthReport, OcspDelegate, Signer } from '../driver.ts';

/** What CRLs and OCSP responses are to the public. */
export const STATUS = 'its revocation data';

/** A signer with the public key that others verify with. */
export class VerifiedSigner {
  readonly algorithm: SignatureAlgorithm;
  readonly #signer: Signer;
  readonly #publicKey: PublicKeyInfo;

  /** @throws DerError on an algorithm that is not known */
  constructor(signer: Signer, publicKey: PublicKeyInfo) {
    this.algorithm = parseSignatureAlgorithm(signer.signatureAlgorithm);
    this.#signer = signer;
    this.#publicKey = publicKey;
  }

  /**
   * DER SEQUENCE of what is signed, the algorithm, the signature, and what follows it.
   *
   * @param what for the public: what could not be signed
   * @throws EstuaryError what the signer throws, or 500 `CA_SIGNATURE_FAILED`
   */
  async sign(tbs: Buffer, what: string, ...following: readonly Buffer[]): Promise<Buffer> {
    const signature = await this.#signer.sign(tbs).catch((error: unknown) => {
      throw error instanceof EstuaryError ? error : signatureFailed(what, describe(error), error);
    });
    // A broken key store must not put a bad certificate into the world. What is cheap is checked right here
    // (0.1 ms, less than a place in the thread pool's queue behind password hashes), the rest in the thread pool.
    if (!(await verifySignature(this.algorithm, this.#publicKey, tbs, signature)))
      throw signatureFailed(what, "the signature does not verify with the certificate's key");
    return sequence(tbs, this.#signer.signatureAlgorithm, bitString(signature), ...following);
  }
}

const signatureFailed = (what: string, detail: string, cause?: unknown): EstuaryError =>
  failed('CA_SIGNATURE_FAILED', `The CA could not sign ${what}.`, {
    detail,
    ...(cause === undefined ? {} : { cause }),
  });

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

/** The OCSP responder that a CA delegates (RFC 6960 §2.6, §4.2.2.2): a key of its own, certified by the CA for that alone. */

/** @throws InputError when the key is not the certificate's. */
export function ocspDelegate(certificate: Certificate, signer: Signer): OcspDelegate {
  if (!signer.spki.equals(certificate.spki)) throw new InputError("the private key is not the certificate's");
  const key = new VerifiedSigner(signer, certificate.publicKey);
  // Relying parties know the CA, not its responder: the certificate goes along.
  const certificates = explicit(0, sequence(certificate.der));
  return {
    certificate,
    sign: (responseData) => key.sign(responseData, STATUS, certificates),
  };
}
