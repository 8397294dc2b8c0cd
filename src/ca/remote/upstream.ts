/** What a driver of a remote CA adds to {@link RemoteCa}: how to submit, poll, revoke and probe; and what an upstream's answers mean. */
import { badRequest, failed, forbidden, unavailable, type EstuaryError } from '../../errors.ts';
import type { Certificate } from '../../pki/x509/certificate.ts';
import type { GeneralName } from '../../pki/x509/general-name.ts';
import type { Name } from '../../pki/x509/name.ts';

/** One submission. It goes on as the device signed it. */
export interface UpstreamRequest {
  readonly request_id: string;
  /** DER CertificationRequest. */
  readonly csr: Buffer;
  readonly subject: Name;
  readonly subjectAltNames: readonly GeneralName[];
  readonly requester: string;
  readonly operation: string;
  /** The end of validity that the profile asks for; the upstream decides. */
  readonly notAfter: Date;
}

export type UpstreamAnswer =
  /** The certificate, and others of its chain in any order, DER. */
  | { readonly status: 'issued'; readonly certificates: readonly Buffer[] }
  /** `retryAfter`: seconds until the next poll. */
  | { readonly status: 'pending'; readonly reference: string; readonly retryAfter?: number | undefined }
  | { readonly status: 'rejected'; readonly reason: string };

export interface Upstream {
  /** As metrics and messages name it. */
  readonly name: 'est' | 'acme' | 'command';
  /** Whether a poll can find out what became of a submission without an answer. */
  readonly canRecover: boolean;
  /** A pending answer only names the request: it is polled at once. */
  readonly continuesAtOnce: boolean;
  /** Rejects what the upstream cannot issue, before anything is sent. @throws EstuaryError 400 */
  check?(request: Pick<UpstreamRequest, 'subject' | 'subjectAltNames'>): void;
  /**
   * Submits the request once.
   *
   * @param waits a pending answer is stored, and {@link poll} continues
   * @throws EstuaryError; {@link Unanswered}
   */
  submit(request: UpstreamRequest, waits: boolean): Promise<UpstreamAnswer>;
  /**
   * Continues a pending request.
   *
   * @param reference undefined: the submission was not answered; only where {@link canRecover}
   * @returns `unknown`: the upstream does not know the request
   * @throws EstuaryError; {@link Unanswered}
   */
  poll(
    request: UpstreamRequest,
    reference: string | undefined,
  ): Promise<UpstreamAnswer | { readonly status: 'unknown' }>;
  /** The chain that the upstream publishes, issuing CA first; absent: it is learned from what the upstream issues. @throws EstuaryError */
  chain?(): Promise<readonly Certificate[]>;
  /** DER CsrAttrs of the upstream; absent: the label's own are used. @throws EstuaryError */
  csrAttributes?(): Promise<Buffer | undefined>;
  /** Absent: only this server knows of revocations. @param certificate DER @param reason RFC 5280 CRLReason name @throws EstuaryError */
  revoke?(certificate: Buffer, reason: string): Promise<void>;
  /** Whether it answers. @throws Error with the reason */
  probe(): Promise<void>;
  close(): void;
}

/** The upstream may have received what was sent, and nothing tells what became of it. */
export class Unanswered extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'Unanswered';
  }
}

/** Texts of an upstream in our messages: one line, without control characters. */
export function shortened(text: string): string {
  const line = text.replace(/[\p{Cc}\p{Cf}\s]+/gu, ' ').trim();
  return line.length > 200 ? `${line.slice(0, 199)}…` : line;
}

/** What a refusal of an upstream means for the device. */
interface Refusal {
  readonly status: number;
  /** Public for 400 and 403, otherwise for the log. */
  readonly text: string;
  /** Seconds. */
  readonly retryAfter?: number | undefined;
}

/** @param retryAfter seconds, where the upstream names none */
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
  if (status === 429 || status === 503)
    return unavailable('CA_UNAVAILABLE', 'The CA is unavailable.', {
      retryAfter: retryAfter ?? usualRetryAfter,
      detail,
    });
  return failed('UPSTREAM_FAILED', 'The upstream CA could not process the request.', { detail });
}
