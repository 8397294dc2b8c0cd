/**
 * Stage after parsing: the request's content, and the proof that its sender has the key (or requests a generated one).
 */
import {
  parseCertificateRequest,
  requestKey,
  type CmcCertificateRequest,
  type ProofOfPossession,
} from '../pki/cmc/tagged-request.ts';
import { isWithoutSecrets } from '../pki/pkcs10/challenges.ts';
import {
  parseCsr,
  parseCsrWithoutProof,
  verifyCsr,
  type Csr,
  type RequestKey,
  type VerifiedCsr,
} from '../pki/pkcs10/csr.ts';
import type { CsrContent } from '../pki/pkcs10/csr-content.ts';
import type { PublicKeyInfo } from '../pki/x509/public-key.ts';
import type { RequestFormat, RequestRow } from '../store/request-store.ts';
import { bodyOf, type ReceivedByEst } from './request.ts';

export interface OwnKey {
  readonly kind: 'own';
  readonly publicKey: PublicKeyInfo;
  /** Key and signature for the csrattrs check. */
  readonly shown: RequestKey;
  /** The CSR if it proves possession of the key. */
  readonly proof: VerifiedCsr | undefined;
  /** Of the request's DER. */
  readonly format: RequestFormat;
}

interface WantedKey {
  readonly kind: 'generated';
  /** Type of the CSR's own key, which is otherwise ignored. */
  readonly likeKeyType: string;
}

export type RequestedKey = OwnKey | WantedKey;

/** Created only with a verified proof of possession, or if none is needed. */
export class Proven {
  readonly csr: CsrContent;
  /** Nobody has proven anything. */
  readonly isSimulated: boolean;
  readonly #key: RequestedKey;

  private constructor(csr: CsrContent, key: RequestedKey, isSimulated = false) {
    this.csr = csr;
    this.isSimulated = isSimulated;
    this.#key = key;
  }

  get key(): RequestedKey {
    return this.#key;
  }

  /** @throws EstuaryError 400 */
  static async byEst(received: ReceivedByEst): Promise<Proven> {
    const der = bodyOf(received);
    return received.operation === 'serverkeygen' ? Proven.#withoutKey(der) : Proven.#ofCsr(der);
  }

  /** @throws EstuaryError 400 */
  static forDryRun(der: Buffer): Promise<Proven> {
    return Proven.#ofCsr(der);
  }

  /**
   * A request whose key exists nowhere, for the simulation of a renewal. {@link Authorized.of} rejects it, unless the
   * reservation will.
   */
  static simulated(csr: Csr): Proven {
    return Proven.#ofOwnKey(csr, undefined, true);
  }

  /** A request of a CMC message, with the proof that its service verified. @throws CmcError `algorithm` */
  static byCmc(request: CmcCertificateRequest, proof: ProofOfPossession): Proven {
    const { publicKey, kind: format } = request;
    const csr = proof.method === 'signature' ? proof.csr : undefined;
    return new Proven(request, { kind: 'own', publicKey, shown: requestKey(request), proof: csr, format });
  }

  /** A queued request, proven before it was queued. @throws EstuaryError 400; CmcError */
  static async queued({ csr: der, format, spki_sha256 }: RequestRow): Promise<Proven> {
    if (spki_sha256 === null) return Proven.#withoutKey(der);
    if (format === 'pkcs10') return Proven.#ofStored(der);
    const request = parseCertificateRequest({ kind: 'crm', bodyPartID: 1, der });
    return Proven.byCmc(request, { method: 'signature', csr: undefined });
  }

  static async #ofCsr(der: Buffer): Promise<Proven> {
    const csr = await verifyCsr(parseCsr(der));
    return Proven.#ofOwnKey(csr, csr);
  }

  /** Secrets, and with them the signature, were removed from it. */
  static async #ofStored(der: Buffer): Promise<Proven> {
    const csr = parseCsr(der);
    return isWithoutSecrets(csr) ? Proven.#ofOwnKey(csr, undefined) : Proven.#ofCsr(der);
  }

  static #ofOwnKey(csr: Csr, proof: VerifiedCsr | undefined, isSimulated = false): Proven {
    const { publicKey, signatureAlgorithm } = csr;
    const shown = { keyType: publicKey.keyType, signatureAlgorithm };
    return new Proven(csr, { kind: 'own', publicKey, shown, proof, format: 'pkcs10' }, isSimulated);
  }

  /** RFC 7030 §4.4.1: the CSR's own key and signature are ignored. */
  static #withoutKey(der: Buffer): Proven {
    const csr = parseCsrWithoutProof(der);
    return new Proven(csr, { kind: 'generated', likeKeyType: csr.publicKey.keyType });
  }
}
