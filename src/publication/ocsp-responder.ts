/** Answers OCSP requests from the store, signed by the CA or by its delegated responder (RFC 6960 §2.2). */
import type { OcspDelegate, StatusSigner } from '../ca/driver.ts';
import type { Ca } from '../ca/router.ts';
import { backdated } from './clocks.ts';
import { CountedLines } from '../counted-repeats.ts';
import { describe, EstuaryError, failed, isUnavailable, unavailable } from '../errors.ts';
import type { Logger } from '../log.ts';
import { DerError } from '../pki/der/der.ts';
import {
  buildResponseData,
  type CertId,
  failureResponse,
  isOfIssuer,
  type OcspRequest,
  type OcspStatus,
  parseOcspRequest,
  successfulResponse,
} from '../pki/ocsp/ocsp.ts';
import { isCrlReason } from '../pki/x509/crl.ts';
import { FairLimiter } from '../process/fair-limiter.ts';
import type { CertificateRow, CertificateStore } from '../store/certificate-store.ts';

/** One in this many of a key's concurrent signatures; the others are for certificates. */
const SHARE = 4;
/** Responses that may wait. */
const SHARED_WAITING = 64;
const PRIVATE_WAITING = 16;
/** Milliseconds to wait for each permit: less than clients' timeouts. */
const LONGEST_WAIT = 3000;

const BUSY = 'OCSP_BUSY';

/** Whether a permit was refused because of too many requests. */
const isBusy = (error: unknown): boolean => error instanceof EstuaryError && error.code === BUSY;

/** @returns runs work; throws EstuaryError 503 {@link BUSY} after too many or too long waits */
function ocspLimiter(concurrency: number, queue: number): <T>(work: () => Promise<T>) => Promise<T> {
  const busy = (detail: string) => unavailable(BUSY, 'Too many OCSP requests. Try again later.', { detail });
  const limiter = new FairLimiter({ concurrency, queue, busy });
  return (work) => limiter.run(work, { waitMs: LONGEST_WAIT });
}

/**
 * Limits the signatures of one key: behind enrollment, and fairly between clients. Only a few responses at a time enter
 * the key's queue, so they delay certificates little.
 */
export class SigningLimiter {
  /** Signs a response that any client may receive. @throws as {@link ocspLimiter} */
  readonly shared: <T>(sign: () => Promise<T>) => Promise<T>;
  /** Of responses for a single client (with a nonce), one at a time enters the common queue. */
  readonly #private = ocspLimiter(1, PRIVATE_WAITING);

  /** @param concurrency of the key's signatures */
  constructor(concurrency: number) {
    this.shared = ocspLimiter(Math.max(1, Math.floor(concurrency / SHARE)), SHARED_WAITING);
  }

  /** Signs a response for one client. @throws as {@link ocspLimiter} */
  private<T>(sign: () => Promise<T>): Promise<T> {
    return this.#private(() => this.shared(sign));
  }
}

interface OcspResponderOptions {
  readonly store: Pick<CertificateStore, 'getCertificates'>;
  /** Validity of a response, in seconds. */
  readonly validity: number;
  readonly log: Pick<Logger, 'info' | 'warn' | 'error'>;
  readonly now: () => number;
}

interface Signed {
  readonly der: Buffer;
  readonly thisUpdate: number;
  readonly nextUpdate: number;
}

export interface OcspAnswer extends Pick<Signed, 'der'> {
  /** Validity of a response that other clients may receive; undefined: do not cache. */
  readonly cacheable: Omit<Signed, 'der'> | undefined;
}

interface Finding {
  readonly certId: CertId;
  readonly status: OcspStatus;
  /** Time of the status, which becomes thisUpdate even if the signature has to wait. */
  readonly asOf: number;
}

/** Cached responses without a nonce. */
const MAX_KEPT = 10_000;
/** Concurrent store lookups, few enough to leave the store to enrollments, and lookups that may wait. */
const LOOKED_UP = 2;
const LOOKUPS_WAITING = 256;
/** Maximum hex digits of a serial number: 20 octets (RFC 5280 §4.1.2.2). */
const LONGEST_SERIAL = 40;
/** Milliseconds between log entries about too many requests. */
const BUSY_LOGGED_EVERY = 10_000;

export class OcspResponder {
  readonly #options: OcspResponderOptions;
  /** By CA, CertID and status: a revocation changes the key, so a cached response is never wrong. */
  readonly #kept = new Map<string, Signed>();
  readonly #underWay = new Map<string, Promise<Signed>>();
  readonly #lookups = ocspLimiter(LOOKED_UP, LOOKUPS_WAITING);
  /** By the fingerprint of the key's certificate. */
  readonly #signing = new Map<string, SigningLimiter>();
  /** Anyone can cause these. */
  readonly #malformed: CountedLines;
  #busyLogged = -Infinity;

  constructor(options: OcspResponderOptions) {
    this.#options = options;
    this.#malformed = new CountedLines(options.log);
  }

  /** The response to a DER OCSPRequest. Never throws: errors become OCSP error responses. */
  async answer(ca: Ca, signer: StatusSigner, request: Buffer): Promise<OcspAnswer> {
    try {
      const parsed = parseOcspRequest(request);
      const findings = await this.#lookups(() => this.#look(ca, parsed.certIds));
      // Anyone can invent serial numbers: unknown ones are not worth a signature (RFC 5019 §2.2.3).
      if (findings.every(({ status }) => status.status === 'unknown'))
        return { der: failureResponse('unauthorized'), cacheable: undefined };
      const signed = await this.#respond(ca, signer, findings, parsed);
      return { der: signed.der, cacheable: parsed.nonce === undefined ? signed : undefined };
    } catch (error) {
      return { der: this.#failure(ca, error), cacheable: undefined };
    }
  }

  #failure(ca: Ca, error: unknown): Buffer {
    if (error instanceof DerError) {
      this.#malformed.info(ca.label, { ca: ca.label, detail: error.message }, 'malformed OCSP request');
      return failureResponse('malformedRequest');
    }
    if (isBusy(error)) this.#logBusy(ca, error);
    else this.#options.log.error({ ca: ca.label, detail: describe(error) }, 'cannot respond to an OCSP request');
    return failureResponse(isUnavailable(error) ? 'tryLater' : 'internalError');
  }

  #logBusy(ca: Ca, error: unknown): void {
    const now = performance.now();
    if (now - this.#busyLogged < BUSY_LOGGED_EVERY) return;
    this.#busyLogged = now;
    this.#options.log.warn({ ca: ca.label, detail: describe(error) }, 'OCSP requests get tryLater');
  }

  /** Sequential: a request about many certificates uses the store no more than one about one. */
  async #look(ca: Ca, certIds: readonly CertId[]): Promise<Finding[]> {
    const findings: Finding[] = [];
    const asOf = Math.floor(this.#options.now() / 1000) * 1000;
    for (const certId of certIds) findings.push({ certId, status: await this.#status(ca, certId), asOf });
    return findings;
  }

  /** `unknown`: another issuer, or a serial number that this CA never issued. */
  async #status(ca: Ca, certId: CertId): Promise<OcspStatus> {
    const { subject, spki } = ca.certificate;
    if (!isOfIssuer(certId, { name: subject.der, spki })) return { status: 'unknown' };
    if (certId.serialNumber.length > LONGEST_SERIAL) return { status: 'unknown' };
    const [row] = await this.#options.store.getCertificates(certId.serialNumber, ca.label);
    return row === undefined ? { status: 'unknown' } : statusOf(row);
  }

  async #respond(ca: Ca, signer: StatusSigner, findings: readonly Finding[], { nonce }: OcspRequest): Promise<Signed> {
    const [first, ...more] = findings;
    const only = more.length === 0 ? first : undefined;
    if (only !== undefined && nonce === undefined) return this.#shared(ca, signer, only);
    try {
      return await this.#limiter(signer, ca).private(() => this.#sign(ca, signer, findings, nonce));
    } catch (error) {
      // A response without the nonce, which responders may omit, is better than none.
      if (only === undefined || !isBusy(error)) throw error;
      return await this.#shared(ca, signer, only);
    }
  }

  /** The cached response about one certificate, signed once for all clients. */
  async #shared(ca: Ca, signer: StatusSigner, finding: Finding): Promise<Signed> {
    const key = keyOf(ca, finding);
    const kept = this.#kept.get(key);
    const now = this.#options.now();
    if (kept !== undefined && kept.thisUpdate <= now && now < (kept.thisUpdate + kept.nextUpdate) / 2) return kept;
    const underWay = this.#underWay.get(key);
    if (underWay !== undefined) return underWay;
    const signing = this.#signAndKeep(ca, signer, finding, key).finally(() => this.#underWay.delete(key));
    this.#underWay.set(key, signing);
    return signing;
  }

  async #signAndKeep(ca: Ca, signer: StatusSigner, finding: Finding, key: string): Promise<Signed> {
    const signed = await this.#limiter(signer, ca).shared(() => this.#sign(ca, signer, [finding], undefined));
    const own = { ...signed, der: unpooledCopy(signed.der) };
    this.#kept.delete(key);
    this.#kept.set(key, own);
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > MAX_KEPT && oldest !== undefined) this.#kept.delete(oldest);
    return own;
  }

  #limiter({ delegate, concurrency = 1 }: StatusSigner, ca: Ca): SigningLimiter {
    const { fingerprint } = (delegate ?? ca).certificate;
    const limiter = this.#signing.get(fingerprint) ?? new SigningLimiter(delegate === undefined ? concurrency : 1);
    this.#signing.set(fingerprint, limiter);
    return limiter;
  }

  async #sign(ca: Ca, signer: StatusSigner, statuses: readonly Finding[], nonce: Buffer | undefined): Promise<Signed> {
    const thisUpdate = Math.min(...statuses.map(({ asOf }) => asOf));
    const nextUpdate = thisUpdate + this.#options.validity * 1000;
    const delegate = usable(signer.delegate, thisUpdate, nextUpdate);
    const data = buildResponseData({
      responder: (delegate ?? ca).certificate.subject.der,
      producedAt: new Date(thisUpdate),
      nextUpdate: new Date(nextUpdate),
      statuses: statuses.map(({ certId, status }) => {
        const revoked = status.status === 'revoked' ? status.revocationTime.getTime() : 0;
        return { certId, status, thisUpdate: new Date(backdated(thisUpdate, revoked)) };
      }),
      nonce,
    });
    const basic = await (delegate ?? signer).sign(data);
    return { der: successfulResponse(basic), thisUpdate, nextUpdate };
  }
}

/** Small Buffers share pools of 64 KiB, which thousands of cached slices would retain. */
function unpooledCopy(bytes: Buffer): Buffer {
  const own = Buffer.allocUnsafeSlow(bytes.length);
  bytes.copy(own);
  return own;
}

function keyOf({ certificate }: Ca, { certId, status }: Finding): string {
  const revoked = status.status === 'revoked' ? `${status.revocationTime.getTime()} ${status.reason}` : '';
  return `${certificate.fingerprint} ${status.status} ${revoked} ${certId.der.toString('latin1')}`;
}

/** No response outlives the responder's certificate; then the CA signs. */
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
