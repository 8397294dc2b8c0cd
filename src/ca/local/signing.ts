/** Signs with local keys. Every signature is verified before it leaves. */
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
import { caOutOfService, type OcspDelegate, type Signer } from '../driver.ts';

/** The public name of CRLs and OCSP responses in messages. */
export const STATUS = 'its revocation data';

export class VerifiedSigner {
  readonly algorithm: SignatureAlgorithm;
  readonly #signer: Signer;
  readonly #publicKey: PublicKeyInfo;

  /** @throws DerError for an unknown algorithm */
  constructor(signer: Signer, publicKey: PublicKeyInfo) {
    this.algorithm = parseSignatureAlgorithm(signer.signatureAlgorithm);
    this.#signer = signer;
    this.#publicKey = publicKey;
  }

  /**
   * DER SEQUENCE of `tbs`, the algorithm, the signature, and `following`.
   * @param what is signed, for the public message
   * @throws EstuaryError of the signer, or 500 `CA_SIGNATURE_FAILED`
   */
  async sign(tbs: Buffer, what: string, ...following: readonly Buffer[]): Promise<Buffer> {
    const signature = await this.#signer.sign(tbs).catch((error: unknown) => {
      throw error instanceof EstuaryError ? error : signatureFailed(what, describe(error), error);
    });
    // A broken key store must not release a bad certificate. Cheap verifications run here (0.1 ms, less than the thread
    // pool's queue behind password hashes), others in the thread pool.
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

/** Signs with a key in memory: SHA-256 with RSA and P-256, SHA-384 with P-384, SHA-512 with P-521, EdDSA, ML-DSA. */
export class FileSigner implements Signer {
  readonly spki: Buffer;
  readonly signatureAlgorithm: Buffer;
  readonly #algorithm: SignatureAlgorithm;
  readonly #keyType: string;
  readonly #key: KeyObject;

  /** @throws InputError if the key type cannot sign certificates */
  constructor(privateKey: KeyObject) {
    this.#key = privateKey;
    this.spki = createPublicKey(this.#key).export({ format: 'der', type: 'spki' });
    this.#keyType = parsePublicKey(this.spki).keyType;
    this.#algorithm = algorithmFor(this.#keyType);
    this.signatureAlgorithm = this.#algorithm.der;
  }

  /** Synchronously if cheap, otherwise in the thread pool: see {@link createSignature}. */
  sign(tbs: Buffer): Promise<Buffer> {
    return createSignature(this.#algorithm, this.#key, this.#keyType, tbs);
  }
}

/** Stands for a key that cannot be used. */
export class AbsentSigner implements Signer {
  readonly spki: Buffer;
  readonly signatureAlgorithm: Buffer;
  readonly #label: string;

  /** @param publicKey of the CA's certificate @throws InputError if keys of its type cannot sign certificates */
  constructor(label: string, { spki, keyType }: PublicKeyInfo) {
    this.#label = label;
    this.spki = spki;
    this.signatureAlgorithm = algorithmFor(keyType).der;
  }

  requireUp(): never {
    throw caOutOfService(this.#label, 'its key cannot be used');
  }

  sign(): Promise<Buffer> {
    return Promise.reject(caOutOfService(this.#label, 'its key cannot be used'));
  }
}

function algorithmFor(keyType: string): SignatureAlgorithm {
  const algorithm = defaultSignatureAlgorithm(keyType);
  if (algorithm === undefined) throw new InputError(`a CA key of the type ${keyType} is not supported`);
  return algorithm;
}

/**
 * A delegated OCSP responder (RFC 6960 §2.6, §4.2.2.2) with its own key, which the CA has certified.
 * @throws InputError if the key does not match the certificate
 */
export function ocspDelegate(certificate: Certificate, signer: Signer): OcspDelegate {
  if (!signer.spki.equals(certificate.spki)) throw new InputError('the private key does not belong to the certificate');
  const key = new VerifiedSigner(signer, certificate.publicKey);
  // Relying parties know the CA, not its responder, so the response includes the certificate.
  const certificates = explicit(0, sequence(certificate.der));
  return {
    certificate,
    sign: (responseData) => key.sign(responseData, STATUS, certificates),
  };
}
