/** A request that is made again with the token that was used for it, because its answer was lost. docs/guides/approval.md tells why. */
import { setTimeout as sleep } from 'node:timers/promises';
import { tokenOf, type UsedToken } from '../auth/identity.ts';
import { forbidden, unavailable, type EstuaryError } from '../errors.ts';
import type { CertificateRow, CertificateStore } from '../store/certificate-store.ts';
import type { AuditStore } from '../store/audit-store.ts';
import type { OtpStore, OtpUse, Repeatable } from '../store/otp-store.ts';
import type { RescueStore, RescueUse } from '../store/rescue-store.ts';
import { recognitionOf, type Recognized } from './recognition.ts';
import { rescuedRequest, rescueOver, tokenInvalid, type EnrollmentOutcome, type RequestBase } from './request.ts';

/** Tells whether a request was queued before. */
interface QueueLookup {
  isQueued(request: RequestBase, sent: Recognized): Promise<boolean>;
}

interface RepeatsOptions {
  readonly store: AuditStore & CertificateStore & OtpStore & Pick<RescueStore, 'findRescueUse'>;
  readonly queue: QueueLookup;
  readonly now: () => number;
  /** `otp.retry_window`, in milliseconds. */
  readonly retryWindow: number;
  /** Milliseconds that a repeat waits for the first request. */
  readonly maxWait: number;
}

interface Request {
  readonly request: RequestBase;
  readonly recognition: string;
  readonly key: { readonly kind: 'own' | 'generated' };
}

/** The first delay between checks of a request in progress elsewhere; doubled up to the maximum. */
const FIRST_PAUSE = 20;
const LONGEST_PAUSE = 1000;

/** The same request has taken a use meanwhile, in this process or another. */
export class RequestRepeated extends Error {}

export class Repeats {
  readonly #options: RepeatsOptions;

  constructor(options: RepeatsOptions) {
    this.#options = options;
  }

  /** Identifies the request of a use. */
  repeatable(recognition: string): Repeatable {
    return { recognition, retry_window: this.#options.retryWindow };
  }

  /**
   * What a used-up token permits for a request: `answered`: continue to the answer of the request that it was used for;
   * `refused`: it is that request, but no answer is possible; `unknown`: another request.
   */
  async usedTokenPermits(
    request: RequestBase,
    token: UsedToken,
    sent: Recognized,
  ): Promise<'answered' | 'refused' | 'unknown'> {
    const isQueued = await this.#options.queue.isQueued(request, sent);
    if (isQueued) return token.dead === undefined ? 'answered' : 'refused';
    const use = await this.#options.store.findOtpUse(recognitionOf(request, sent));
    if (use === undefined) return (await this.#hasUse(token)) ? 'answered' : 'unknown';
    if (token.dead !== undefined) return 'refused';
    if (use.under_way && this.#options.retryWindow > 0) return 'answered';
    const isValid = this.#isInWindow(use) && (await this.#unexpiredOf(use))?.revoked_at === null;
    return isValid ? 'answered' : 'refused';
  }

  /** A failed request may have returned its use since the token was checked. */
  async #hasUse({ otp_id, dead }: UsedToken): Promise<boolean> {
    if (dead !== undefined) return false;
    const token = await this.#options.store.getOtp(otp_id);
    return token !== undefined && token.uses < token.max_uses;
  }

  /**
   * The answer to the same request within the window; waits while it is in progress on any node.
   * @param isGone whether the client has disconnected
   * @returns undefined: it is a new request
   * @throws EstuaryError 401 if the certificate or the token is revoked; 403 `KEY_SENT_ONCE`; 503 `REQUEST_UNDER_WAY`
   */
  async answer(again: Request, isGone: () => boolean): Promise<EnrollmentOutcome | undefined> {
    const { store, retryWindow, maxWait } = this.#options;
    const { request, recognition } = again;
    const rescued = rescuedRequest(request, recognition);
    if (rescued === undefined && (retryWindow === 0 || tokenOf(request.identity) === undefined)) return undefined;
    let pause = FIRST_PAUSE;
    for (let waited = 0; ; waited += pause, pause = Math.min(2 * pause, LONGEST_PAUSE)) {
      let isUnderWay;
      if (rescued === undefined) {
        const use = await store.findOtpUse(recognition);
        if (use !== undefined && this.#isInWindow(use)) return this.#again(again, use);
        isUnderWay = use?.under_way;
      } else {
        const use = await store.findRescueUse(rescued);
        if (use?.used === true) return this.#renewedAgain(request, use);
        isUnderWay = use?.under_way;
      }
      if (isUnderWay !== true) return undefined;
      if (waited >= maxWait || isGone()) throw underWay();
      await sleep(Math.min(pause, maxWait - waited));
    }
  }

  #isInWindow({ issued_at }: OtpUse): boolean {
    const { now, retryWindow } = this.#options;
    return issued_at !== null && issued_at > now() - retryWindow;
  }

  /** @throws EstuaryError 401 if its certificate is revoked, has expired, or is gone */
  async #renewedAgain(request: RequestBase, use: RescueUse): Promise<EnrollmentOutcome> {
    const certificate = await this.#unexpiredOf(use);
    if (certificate === undefined || certificate.revoked_at !== null || certificate.der.length === 0)
      throw rescueOver(`the certificate of request ${use.request_id} is revoked, expired, or gone`);
    return this.#sameAgain(request, certificate, use);
  }

  /** An expired certificate is useless: the request counts as new. */
  async #unexpiredOf({ request_id }: Pick<OtpUse, 'request_id'>): Promise<CertificateRow | undefined> {
    const { store, now } = this.#options;
    const row = await store.findCertificateByRequest(request_id);
    return row === undefined || row.not_after < now() ? undefined : row;
  }

  async #again({ request, key }: Request, use: OtpUse): Promise<EnrollmentOutcome | undefined> {
    const { store, now } = this.#options;
    const certificate = await this.#unexpiredOf(use);
    if (certificate === undefined) return undefined;
    const token = await store.getOtp(use.otp_id);
    // Both may have been revoked while it waited.
    if (certificate.revoked_at !== null)
      throw tokenInvalid(request.identity, `certificate ${certificate.serial} is revoked`);
    if (token === undefined || token.revoked_at !== null || token.expires_at <= now())
      throw tokenInvalid(request.identity, `token ${use.otp_id} has expired or is revoked`);
    if (key.kind === 'generated') throw keySentOnce(certificate);
    return this.#sameAgain(request, certificate, use);
  }

  async #sameAgain(
    request: RequestBase,
    { serial, der }: CertificateRow,
    { request_id }: Pick<OtpUse, 'request_id'>,
  ): Promise<EnrollmentOutcome> {
    const note = `repeats the response to ${request_id}`;
    await this.#options.store.audit(
      request.events.map((event) => ({ ...event, serial, detail: `${event.detail ?? ''}; ${note}` })),
    );
    return { status: 'issued', certificate: der };
  }
}

/** 503: the outcome of the first request is not known yet. */
export const underWay = (): EstuaryError =>
  unavailable('REQUEST_UNDER_WAY', 'The same request is still being processed. Send it again later.');

/** 403: a generated key is sent only once; a client that lost it needs another certificate. */
export function keySentOnce({ serial, ca }: { readonly serial: string | null; readonly ca: string }): EstuaryError {
  return forbidden(
    'KEY_SENT_ONCE',
    `The private key was sent with certificate ${serial} and is not kept; have that certificate revoked, then request a new one.`,
    { detail: `certificate ${ca} ${serial}` },
  );
}
