/** The certificates that a client presents on one connection: parsed and validated once. */
import { hash } from 'node:crypto';

import { EstuaryError, unauthorized, isUnauthenticated } from '../../errors.ts';
import { boundsProblem } from '../../pki/x509/certificate-bounds.ts';
import { parseCertificate, type Certificate } from '../../pki/x509/certificate.ts';
import { DerError, unlessMalformed } from '../../pki/der/der.ts';
import type { ClientTrust } from './client-trust.ts';

/** Maximum certificates in addition to the client's; further ones are ignored. */
export const MAX_INTERMEDIATES = 8;

interface Refusal {
  /** The period in which no possible certificate of a path becomes valid or expires. */
  readonly from: number;
  readonly until: number;
  readonly verdict: Promise<readonly Certificate[]>;
}

/**
 * Caches a failed path search for its lifetime (usually a connection), until the trust snapshot changes or time may
 * change the result. The snapshot caches successful paths.
 */
export class PresentedCertificates {
  /** DER of the client's certificate. */
  readonly der: Buffer;
  /** DER of the client's further certificates. */
  readonly further: readonly Buffer[];
  #fingerprint: string | undefined;
  #leaf: Certificate | EstuaryError | undefined;
  #intermediates: readonly Certificate[] | undefined;
  readonly #refusals = new WeakMap<ClientTrust, Refusal>();

  constructor(der: Buffer, further: readonly Buffer[]) {
    this.der = der;
    this.further = further;
  }

  /** Hex SHA-256 of the client's certificate. For caches only, because an ECDSA signature has a second valid form. */
  get fingerprint(): string {
    return (this.#fingerprint ??= hash('sha256', this.der, 'hex'));
  }

  /** Hex SHA-256 of the tbsCertificate, equal for all encodings; of the whole certificate if it is malformed. */
  get identity(): string {
    this.#leaf ??= parseLeaf(this.der);
    return this.#leaf instanceof EstuaryError ? this.fingerprint : hash('sha256', this.#leaf.tbs, 'hex');
  }

  /** @throws EstuaryError 401, always the same one, for a malformed or too large certificate */
  leaf(): Certificate {
    this.#leaf ??= parseLeaf(this.der);
    if (this.#leaf instanceof EstuaryError) throw this.#leaf;
    return this.#leaf;
  }

  /** The client's further certificates of acceptable size. */
  intermediates(): readonly Certificate[] {
    return (this.#intermediates ??= readCertificates(this.further));
  }

  /**
   * Searches for a path, unless a cached failure applies.
   * @param at time of the path's validity
   * @param search throws EstuaryError 401 if there is no path
   */
  path(trust: ClientTrust, at: number, search: () => Promise<readonly Certificate[]>): Promise<readonly Certificate[]> {
    const known = this.#refusals.get(trust);
    if (known !== undefined && at >= known.from && at < known.until) return known.verdict;
    const refusal: Refusal = { ...this.#unchangedAround(trust, at), verdict: search() };
    // Concurrent requests wait for the same search.
    this.#refusals.set(trust, refusal);
    const forget = (): void => {
      if (this.#refusals.get(trust) === refusal) this.#refusals.delete(trust);
    };
    refusal.verdict.then(forget, (error: unknown) => {
      if (!isUnauthenticated(error)) forget();
    });
    return refusal.verdict;
  }

  #unchangedAround(trust: ClientTrust, at: number): Pick<Refusal, 'from' | 'until'> {
    let [from, until] = [-Infinity, Infinity];
    for (const { notBefore, notAfter } of [...trust.certificates, ...this.intermediates()])
      for (const change of [notBefore.getTime(), notAfter.getTime() + 1000])
        if (change <= at) from = Math.max(from, change);
        else until = Math.min(until, change);
    return { from, until };
  }
}

export interface ConnectionCertificates {
  /** DER of the handshake's certificate, also on a resumed session. */
  readonly peerCertificate: Buffer | undefined;
  /** DER of the client's further certificates, if the TLS stack still has them. */
  readonly peerIntermediates: readonly Buffer[];
  /** The same certificates, with results cached for the connection. */
  readonly certificates?: PresentedCertificates | undefined;
}

export function presentedCertificates(presented: ConnectionCertificates): PresentedCertificates | undefined {
  const { certificates, peerCertificate, peerIntermediates } = presented;
  if (certificates !== undefined || peerCertificate === undefined) return certificates;
  return new PresentedCertificates(peerCertificate, peerIntermediates);
}

/** Parses certificates; skips malformed or too large ones. */
export function readCertificates(ders: readonly Buffer[]): Certificate[] {
  return ders
    .slice(0, MAX_INTERMEDIATES)
    .flatMap((der) => unlessMalformed(() => (boundsProblem(der) === undefined ? [parseCertificate(der)] : []), []));
}

function parseLeaf(der: Buffer): Certificate | EstuaryError {
  try {
    const problem = boundsProblem(der);
    return problem === undefined
      ? parseCertificate(der)
      : unauthorized('CLIENT_CERTIFICATE_TOO_LARGE', 'client certificate too large', { detail: problem });
  } catch (error) {
    if (!(error instanceof DerError)) throw error;
    return unauthorized('CLIENT_CERTIFICATE_MALFORMED', 'client certificate malformed', { detail: error.message });
  }
}
