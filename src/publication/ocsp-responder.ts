/** Answers OCSP requests from the store, signed by the CA's own key or by a responder that it delegated (RFC 6960 §2.2). */
import type { OcspDelegate, StatusSigner } from '../ca/driver.ts';
import type { Ca } from '../ca/router.ts';
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

/** Who may have an OCSP response signed when: less weight than enrollment, and no asker before the others. */

/** One in so many of the signatures that a key makes at a time; the others are for certificates. */
const SHARE = 4;
/** Responses that may wait. */
const SHARED_WAITING = 64;
const PRIVATE_WAITING = 16;
/** Milliseconds that a request waits for each of its permits: less than clients wait for an answer. */
const LONGEST_WAIT = 3000;

const BUSY = 'OCSP_BUSY';

/** Whether a permit was refused because there are too many requests. */
const isBusy = (error: unknown): boolean => error instanceof EstuaryError && error.code === BUSY;

/** A limiter of OCSP requests. */
class OcspLimiter {
  readonly #limiter: FairLimiter;

  constructor(concurrency: number, queue: number) {
    this.#limiter = new FairLimiter({
      concurrency,
      queue,
      busy: (detail) => unavailable(BUSY, 'Too many OCSP requests. Try again later.', { detail }),
    });
  }

  /** @throws EstuaryError 503 {@link BUSY} when too many wait, or too long; otherwise what `work` throws */
  run<T>(work: () => Promise<T>): Promise<T> {
    return this.#limiter.run(work, { waitMs: LONGEST_WAIT });
  }
}

/**
 * Limits the signatures of one key. Only a few responses at a time stand in the key's own queue, where certificates stand
 * too: so however many are asked for, a certificate waits behind no more than those.
 */
export class SigningLimiter {
  readonly #all: OcspLimiter;
  /** Of the responses that only one asker can use (a nonce), one at a time stands in the queue of all. */
  readonly #private = new OcspLimiter(1, PRIVATE_WAITING);

  /** @param concurrency how many signatures the key makes at a time */
  constructor(concurrency: number) {
    this.#all = new OcspLimiter(Math.max(1, Math.floor(concurrency / SHARE)), SHARED_WAITING);
  }

  /** Signs what everybody may be given who asks the same. @throws as {@link OcspLimiter.run} */
  shared<T>(sign: () => Promise<T>): Promise<T> {
    return this.#all.run(sign);
  }

  /** Signs what is for one asker. @throws as {@link OcspLimiter.run} */
  private<T>(sign: () => Promise<T>): Promise<T> {
    return this.#private.run(() => this.#all.run(sign));
  }
}

interface OcspResponderOptions {
  readonly store: Pick<CertificateStore, 'getCertificates'>;
  /** How long a response is valid, seconds. */
  readonly validity: number;
  readonly log: Pick<Logger, 'info' | 'warn' | 'error'>;
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

interface Finding {
  readonly certId: CertId;
  readonly status: OcspStatus;
  /** When the status was that, ms: the response says so, however long it waits for its signature. */
  readonly asOf: number;
}

/** Responses without a nonce that are kept. */
const MAX_KEPT = 10_000;
/** Requests that the store is asked for at a time, so that enrollments find it free; and how many more may wait. */
const LOOKED_UP = 2;
const LOOKUPS_WAITING = 256;
/** A serial number has at most 20 octets (RFC 5280 §4.1.2.2); hex digits. */
const LONGEST_SERIAL = 40;
/** Milliseconds between two lines of the log about too many requests. */
const BUSY_LOGGED_EVERY = 10_000;

export class OcspResponder {
  readonly #options: OcspResponderOptions;
  /** By CA, CertID and status: a revocation makes another key, so a kept response is never wrong. */
  readonly #kept = new Map<string, Signed>();
  readonly #underWay = new Map<string, Promise<Signed>>();
  readonly #lookups = new OcspLimiter(LOOKED_UP, LOOKUPS_WAITING);
  /** By the fingerprint of the key's certificate. */
  readonly #signing = new Map<string, SigningLimiter>();
  /** Anybody can send them. */
  readonly #malformed: CountedLines;
  #busyLogged = -Infinity;

  constructor(options: OcspResponderOptions) {
    this.#options = options;
    this.#malformed = new CountedLines(options.log);
  }

  /** The response to a DER OCSPRequest. Never throws: what goes wrong is an OCSP error response. */
  async answer(ca: Ca, signer: StatusSigner, request: Buffer): Promise<OcspAnswer> {
    try {
      const parsed = parseOcspRequest(request);
      const findings = await this.#lookups.run(() => this.#look(ca, parsed.certIds));
      // Anyone can make up serial numbers without end: what nobody issued is not worth a signature (RFC 5019 §2.2.3).
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
    else this.#options.log.error({ ca: ca.label, detail: describe(error) }, 'an OCSP request could not be answered');
    return failureResponse(isUnavailable(error) ? 'tryLater' : 'internalError');
  }

  #logBusy(ca: Ca, error: unknown): void {
    const now = performance.now();
    if (now - this.#busyLogged < BUSY_LOGGED_EVERY) return;
    this.#busyLogged = now;
    this.#options.log.warn({ ca: ca.label, detail: describe(error) }, 'OCSP requests are told to try later');
  }

  /** One after the other: a request about many certificates takes no more of the store at a time than one about one. */
  async #look(ca: Ca, certIds: readonly CertId[]): Promise<Finding[]> {
    const findings: Finding[] = [];
    const asOf = Math.floor(this.#options.now() / 1000) * 1000;
    for (const certId of certIds) findings.push({ certId, status: await this.#status(ca, certId), asOf });
    return findings;
  }

  /** `unknown`: of another issuer, or a serial number that this CA never issued. */
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
      // Better an answer without the nonce, which a responder may leave out, than none.
      if (only === undefined || !isBusy(error)) throw error;
      return await this.#shared(ca, signer, only);
    }
  }

  /** The response about one certificate for everybody: signed once for all who ask while it is young. */
  async #shared(ca: Ca, signer: StatusSigner, finding: Finding): Promise<Signed> {
    const key = keyOf(ca, finding);
    const kept = this.#kept.get(key);
    const now = this.#options.now();
    if (kept !== undefined && kept.thisUpdate <= now && now < (kept.thisUpdate + kept.nextUpdate) / 2) return kept;
    const underWay = this.#underWay.get(key);
    if (underWay !== undefined) return underWay;
    const signing = this.#limiter(signer, ca)
      .shared(() => this.#sign(ca, signer, [finding], undefined))
      .finally(() => this.#underWay.delete(key));
    this.#underWay.set(key, signing);
    const signed = await signing;
    const own = { ...signed, der: withMemoryOfItsOwn(signed.der) };
    this.#keep(key, own);
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
      spki: (delegate ?? ca).certificate.spki,
      producedAt: new Date(thisUpdate),
      thisUpdate: new Date(thisUpdate),
      nextUpdate: new Date(nextUpdate),
      statuses,
      nonce,
    });
    const basic = await (delegate ?? signer).sign(data);
    return { der: successfulResponse(basic), thisUpdate, nextUpdate };
  }

  #keep(key: string, signed: Signed): void {
    this.#kept.delete(key);
    this.#kept.set(key, signed);
    const oldest = this.#kept.keys().next();
    if (this.#kept.size > MAX_KEPT && oldest.done !== true) this.#kept.delete(oldest.value);
  }
}

/** Small Buffers are cut from shared ones of 64 KiB: each of thousands that are kept would keep such a one. */
function withMemoryOfItsOwn(bytes: Buffer): Buffer {
  const own = Buffer.allocUnsafeSlow(bytes.length);
  bytes.copy(own);
  return own;
}

function keyOf({ certificate }: Ca, { certId, status }: Finding): string {
  const revoked = status.status === 'revoked' ? `${status.revocationTime.getTime()} ${status.reason}` : '';
  return `${certificate.fingerprint} ${status.status} ${revoked} ${certId.der.toString('latin1')}`;
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
