/**
 * What a remote driver adds to {@link RemoteCa}: submit, poll, revoke, probe, and the meaning of the upstream's
 * responses.
 */
import { badRequest, failed, forbidden, unavailable, type EstuaryError } from '../../errors.ts';
import { type HttpAnswer, TransportError } from '../../https-client.ts';
import type { VerifiedCsr } from '../../pki/pkcs10/csr.ts';
import type { Certificate } from '../../pki/x509/certificate.ts';
import { namesEqual, type Name } from '../../pki/x509/name.ts';
import { parseRetryAfter } from '../../retry-after.ts';
import type { IssuanceRequest, IssuanceResult } from '../driver.ts';

/** One submission, forwarded as the device signed it. */
export interface UpstreamRequest extends Pick<IssuanceRequest, 'request_id' | 'subject' | 'subjectAltNames'> {
  /** DER CertificationRequest. */
  readonly csr: Buffer;
  readonly requester: string;
  readonly operation: string;
  /** Expiry requested by the profile; the upstream decides. */
  readonly notAfter: Date;
}

export type UpstreamAnswer =
  /** DER of the certificate and its chain, in any order. */
  | { readonly status: 'issued'; readonly certificates: readonly Buffer[] }
  | Extract<IssuanceResult, { readonly status: 'pending' | 'rejected' }>;

export interface Upstream {
  /** As in metrics and messages. */
  readonly name: string;
  /** Whether a poll can find the outcome of an unanswered submission. */
  readonly canRecover: boolean;
  /** A pending response only names the request: poll it at once. */
  readonly continuesAtOnce: boolean;
  /** No call can be made before a reload. */
  readonly hasGivenUp?: boolean;
  /** Opens what every call needs. @throws Error that says why none can be made */
  start?(): Promise<void>;
  /** Rejects, before sending, what the upstream cannot issue. @throws EstuaryError 400 */
  check?(request: Pick<UpstreamRequest, 'subject' | 'subjectAltNames'>): void;
  /**
   * Submits the request once.
   * @param waits a pending result will be stored and polled
   * @throws EstuaryError; {@link Unanswered}
   */
  submit(request: UpstreamRequest, waits: boolean): Promise<UpstreamAnswer>;
  /**
   * Continues a pending request.
   * @param reference undefined: the submission got no response; only with {@link canRecover}
   * @returns `unknown`: the upstream does not know the request
   * @throws EstuaryError; {@link Unanswered}
   */
  poll(
    request: UpstreamRequest,
    reference: string | undefined,
  ): Promise<UpstreamAnswer | { readonly status: 'unknown' }>;
  /**
   * The upstream's published chain, issuing CA first; if absent, learned from issued certificates. @throws EstuaryError
   */
  chain?(): Promise<readonly Certificate[]>;
  /** DER CsrAttrs of the upstream; if absent, the label's own. @throws EstuaryError */
  csrAttributes?(): Promise<Buffer | undefined>;
  /**
   * If absent, revocations stay local. @param certificate DER @param reason RFC 5280 CRLReason name @throws
   * EstuaryError
   */
  revoke?(certificate: Buffer, reason: string): Promise<void>;
  /** Checks the connection. @throws Error with the reason */
  probe(): Promise<void>;
  close(): void;
}

/** @throws EstuaryError 403 unless the CSR, which is forwarded as signed, has the subject to certify */
export function checkSubject(csr: VerifiedCsr | undefined, subject: Name): asserts csr is VerifiedCsr {
  if (csr === undefined || !namesEqual(csr.subject, subject))
    throw forbidden(
      'SUBJECT_NOT_IN_CSR',
      'This CA uses the subject of the CSR, and the requester may not have this subject.',
      { detail: 'the CSR is forwarded as the device signed it' },
    );
}

/** The upstream may have received the request; its outcome is unknown. */
export class Unanswered extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'Unanswered';
  }
}

/** Upstream text for our messages: one line, without control characters. */
export function shortened(text: string): string {
  const line = text.replace(/[\p{Cc}\p{Cf}\s]+/gu, ' ').trim();
  return line.length > 200 ? `${line.slice(0, 199)}…` : line;
}

/** What an upstream's rejection means for the device. */
interface Refusal {
  readonly status: number;
  /** Public for 400 and 403, otherwise for the log. */
  readonly text: string;
  readonly retryAfter?: number | undefined;
}

/** @param retryAfter default in seconds */
export function refusalOf({ status, text, retryAfter }: Refusal, usualRetryAfter: number): EstuaryError {
  const detail = `the upstream CA answered ${status}: ${shortened(text)}`;
  const sentence = shortened(text);
  if (status === 400)
    return badRequest('UPSTREAM_BAD_REQUEST', sentence === '' ? 'The upstream CA rejected the CSR.' : sentence, {
      detail,
    });
  if (status === 403)
    return forbidden('UPSTREAM_FORBIDDEN', sentence === '' ? 'The upstream CA rejected the request.' : sentence, {
      detail,
    });
  if (status === 429 || status === 503) return caUnavailable(detail, retryAfter ?? usualRetryAfter);
  return upstreamFailed(detail);
}

/** Seconds that the upstream asks to wait. */
export const waitOf = ({ headers }: Pick<HttpAnswer, 'headers'>): number | undefined =>
  parseRetryAfter(headers['retry-after'], Date.now());

/** What a call without an answer means; other errors as they are. @param issues of a submission */
export function withoutAnswer(error: unknown, retryAfter: number, issues = false): unknown {
  if (!(error instanceof TransportError)) return error;
  const mayBeIssued = issues && error.mayHaveArrived;
  if (error.isTooLong) return upstreamFailed(`${mayBeIssued ? 'possibly issued: ' : ''}${error.message}`);
  return mayBeIssued ? new Unanswered(error.message, error) : caUnavailable(error.message, retryAfter);
}

/** 503. @param detail for the log */
export const caUnavailable = (detail: string, retryAfter: number): EstuaryError =>
  unavailable('CA_UNAVAILABLE', 'The CA is unavailable.', { retryAfter, detail });

/** 500. @param detail for the log */
export const upstreamFailed = (detail: string): EstuaryError =>
  failed('UPSTREAM_FAILED', 'The upstream CA could not process the request.', { detail });
