/** Answers OCSP requests from the store, signed by the CA's own key or by a responder that it delegated (RFC 6960 §2.2). */
import type { OcspDelegate, StatementSigner } from '../ca/driver.ts';
import type { Ca } from '../ca/router.ts';
import { describe, EstuaryError, failed } from '../errors.ts';
import type { Logger } from '../log.ts';
import { isCrlReason } from '../pki/x509/crl-reasons.ts';
import { DerError } from '../pki/der/der.ts';
import {
  buildResponseData,
  failureResponse,
  isIssuedBy,
  parseOcspRequest,
  successfulResponse,
  type CertId,
  type OcspRequest,
  type OcspStatus,
} from '../pki/ocsp/ocsp.ts';
import type { CertificateRow, Store } from '../store/store.ts';

export interface OcspResponderOptions {
  readonly store: Pick<Store, 'getCertificates'>;
  /** How long a response is valid, seconds. */
  readonly validity: number;
  readonly log: Pick<Logger, 'info' | 'error'>;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

export interface OcspAnswer {
  /** DER OCSPResponse. */
  readonly der: Buffer;
  /** Times of a successful response that another may be given too, ms; undefined: not to be cached. */
  readonly cacheable: { readonly thisUpdate: number; readonly nextUpdate: number } | undefined;
}

interface Signed {
  readonly der: Buffer;
  readonly thisUpdate: number;
  readonly nextUpdate: number;
}

/** Responses without a nonce that are kept. */
const MAX_KEPT = 10_000;

export class OcspResponder {
  readonly #options: OcspResponderOptions;
  /** By CA, CertID and status: a revocation makes another key, so a kept response is never wrong. */
  readonly #kept = new Map<string, Signed>();

  constructor(options: OcspResponderOptions) {
    this.#options = options;
  }

  /** The response to a DER OCSPRequest. Never throws: what goes wrong is an OCSP error response. */
  async answer(ca: Ca, signer: StatementSigner, request: Buffer): Promise<OcspAnswer> {
    try {
      const parsed = parseOcspRequest(request);
      const signed = await this.#respond(ca, signer, parsed);
      return { der: signed.der, cacheable: parsed.nonce === undefined ? signed : undefined };
    } catch (error) {
      return { der: this.#failure(ca, error), cacheable: undefined };
    }
  }

  #failure(ca: Ca, error: unknown): Buffer {
    if (error instanceof DerError) {
      this.#options.log.info({ ca: ca.label, detail: error.message }, 'malformed OCSP request');
      return failureResponse('malformedRequest');
    }
    this.#options.log.error({ ca: ca.label, detail: describe(error) }, 'an OCSP request could not be answered');
    return failureResponse(error instanceof EstuaryError && error.status === 503 ? 'tryLater' : 'internalError');
  }

  async #respond(ca: Ca, signer: StatementSigner, { certIds, nonce }: OcspRequest): Promise<Signed> {
    const statuses = await Promise.all(
      certIds.map(async (certId) => ({ certId, status: await this.#status(ca, certId) })),
    );
    const [first, ...more] = statuses;
    const only = nonce === undefined && more.length === 0 ? first : undefined;
    const key = only && `${ca.certificate.fingerprint} ${only.certId.der.toString('latin1')} ${only.status.status}`;
    const kept = key === undefined ? undefined : this.#kept.get(key);
    const now = this.#options.now();
    if (kept !== undefined && kept.thisUpdate <= now && now < (kept.thisUpdate + kept.nextUpdate) / 2) return kept;
    const thisUpdate = Math.floor(now / 1000) * 1000;
    const nextUpdate = thisUpdate + this.#options.validity * 1000;
    const delegate = usable(signer.delegate, thisUpdate, nextUpdate);
    const data = buildResponseData({
      spki: (delegate ?? ca).certificate.spki,
      producedAt: new Date(thisUpdate),
      thisUpdate: new Date(thisUpdate),
      nextUpdate: new Date(nextUpdate),
      statuses,
      nonce,
    });
    const basic = await (delegate ?? signer).sign(data);
    const signed = { der: successfulResponse(basic), thisUpdate, nextUpdate };
    // What nobody issued is not kept: anyone can make up serial numbers without end.
    if (key !== undefined && only?.status.status !== 'unknown') this.#keep(key, signed);
    return signed;
  }

  #keep(key: string, signed: Signed): void {
    this.#kept.delete(key);
    this.#kept.set(key, signed);
    const oldest = this.#kept.keys().next();
    if (this.#kept.size > MAX_KEPT && oldest.done !== true) this.#kept.delete(oldest.value);
  }

  /** `unknown`: of another issuer, or a serial number that this CA never issued. */
  async #status(ca: Ca, certId: CertId): Promise<OcspStatus> {
    const { subject, spki } = ca.certificate;
    if (!isIssuedBy(certId, { name: subject.der, spki })) return { status: 'unknown' };
    const [row] = await this.#options.store.getCertificates(certId.serialNumber, ca.label);
    return row === undefined ? { status: 'unknown' } : statusOf(row);
  }
}

/** No response outlives the responder's certificate; then the CA answers itself. */
function usable(delegate: OcspDelegate | undefined, from: number, until: number): OcspDelegate | undefined {
  if (delegate === undefined) return undefined;
  const { notBefore, notAfter } = delegate.certificate;
  return notBefore.getTime() <= from && until <= notAfter.getTime() ? delegate : undefined;
}

function statusOf({ serial, revoked_at, reason }: CertificateRow): OcspStatus {
  if (revoked_at === null) return { status: 'good' };
  if (reason === null || !isCrlReason(reason))
    throw failed('STORE_FAILED', 'the store failed', { detail: `certificate ${serial}: revoked without a CRLReason` });
  return { status: 'revoked', revocationTime: new Date(revoked_at), reason };
}
