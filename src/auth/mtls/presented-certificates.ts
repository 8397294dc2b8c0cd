/** The certificates that a client shows on one connection: read once, judged once. */
import { hash } from 'node:crypto';

import { EstuaryError, unauthorized, isUnauthenticated } from '../../errors.ts';
import { boundsProblem } from '../../pki/x509/certificate-bounds.ts';
import { parseCertificate, type Certificate } from '../../pki/x509/certificate.ts';
import { DerError, unlessMalformed } from '../../pki/der/der.ts';
import type { ClientTrust } from './client-trust.ts';

/** Certificates beside the client's own that are looked at; a longer chain is cut off. */
export const MAX_INTERMEDIATES = 8;

interface Refusal {
  /** From when (ms) until before when none of the certificates that could be in a path begins or ends to be valid. */
  readonly from: number;
  readonly until: number;
  readonly verdict: Promise<readonly Certificate[]>;
}

/**
 * As long as it lives (a connection, as a rule), a client that has no path to an anchor costs one search: the refusal
 * is kept until another snapshot of trust is asked, or time may have changed the answer. A path that was found is the
 * snapshot's to keep.
 */
export class PresentedCertificates {
  /** DER of the client's own certificate. */
  readonly der: Buffer;
  /** DER of what else the client sent. */
  readonly further: readonly Buffer[];
  #fingerprint: string | undefined;
  #leaf: Certificate | EstuaryError | undefined;
  #intermediates: readonly Certificate[] | undefined;
  readonly #refusals = new WeakMap<ClientTrust, Refusal>();

  /** @param further DER of what else the client sent */
  constructor(der: Buffer, further: readonly Buffer[]) {
    this.der = der;
    this.further = further;
  }

  /** Hex SHA-256 of the client's certificate: for caches only, because an ECDSA signature has a second valid form. */
  get fingerprint(): string {
    return (this.#fingerprint ??= hash('sha256', this.der, 'hex'));
  }

  /** Hex SHA-256 of the tbsCertificate, equal for all encodings of the certificate; of the whole if it is malformed. */
  get identity(): string {
    this.#leaf ??= parseLeaf(this.der);
    return this.#leaf instanceof EstuaryError ? this.fingerprint : hash('sha256', this.#leaf.tbs, 'hex');
  }

  /** @throws EstuaryError 401, the same one each time, when the certificate is malformed or too large */
  leaf(): Certificate {
    this.#leaf ??= parseLeaf(this.der);
    if (this.#leaf instanceof EstuaryError) throw this.#leaf;
    return this.#leaf;
  }

  /** What else the client sent, as far as it is certificates of an acceptable size. */
  intermediates(): readonly Certificate[] {
    return (this.#intermediates ??= readCertificates(this.further));
  }

  /**
   * Searches for a path, unless the answer is known to be none.
   *
   * @param at milliseconds for which a path is wanted
   * @param search throws EstuaryError 401 where there is none
   */
  path(trust: ClientTrust, at: number, search: () => Promise<readonly Certificate[]>): Promise<readonly Certificate[]> {
    const known = this.#refusals.get(trust);
    if (known !== undefined && at >= known.from && at < known.until) return known.verdict;
    const refusal: Refusal = { ...this.#unchangedAround(trust, at), verdict: search() };
    // Requests that come meanwhile wait for the same search.
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

/** What a connection shows of its client. */
export interface ConnectionCertificates {
  /** DER of the certificate of the TLS handshake, also on a resumed session. */
  readonly peerCertificate: Buffer | undefined;
  /** DER of the further certificates the client sent, where the TLS stack still has them. */
  readonly peerIntermediates: readonly Buffer[];
  /** The same certificates, with what has been found out about them as long as the connection lives. */
  readonly certificates?: PresentedCertificates | undefined;
}

/** The certificates of a request's sender; undefined without one. */
export function presentedCertificates(presented: ConnectionCertificates): PresentedCertificates | undefined {
  const { certificates, peerCertificate, peerIntermediates } = presented;
  if (certificates !== undefined || peerCertificate === undefined) return certificates;
  return new PresentedCertificates(peerCertificate, peerIntermediates);
}

/** The certificates among these, without the ones that do not parse or are too large. */
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
