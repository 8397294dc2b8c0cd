/** How a key of ours signs: nothing leaves that does not verify. */
import { describe, EstuaryError, failed } from '../../errors.ts';
import { bitString, sequence } from '../../pki/der/der.ts';
import type { PublicKeyInfo } from '../../pki/x509/public-key.ts';
import {
  parseSignatureAlgorithm,
  verifySignature,
  type SignatureAlgorithm,
} from '../../pki/x509/signature-algorithms.ts';
import type { Signer } from '../driver.ts';

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
