/** What an EST operation is to the listener: its name, its HTTP shape, and what answers it. One file per operation. */
import type { PresentedCredentials } from '../../auth/identity.ts';
import type { Ca } from '../../ca/router.ts';
import type { OPERATION_NAMES } from '../../config/vocabulary.ts';

export type OperationName = (typeof OPERATION_NAMES)[number];

/** A request that has passed the cheap checks and whose body has been read. */
export interface EstRequest {
  /** Correlates log, audit and store records. */
  readonly requestId: string;
  readonly ca: Ca;
  readonly presented: PresentedCredentials;
  /** tls-unique or tls-exporter of the connection; worked out only when somebody asks. */
  channelBinding(): Buffer | undefined;
  /** Whether the client has closed its connection, so that nobody is there to take an answer. */
  isGone(): boolean;
  /** The body as it came; empty for GET. */
  readonly body: Buffer;
  /** Columns of base64 lines that the client can read; undefined: one line. */
  readonly lineLength: number | undefined;
}

/** An answer; the listener adds Content-Length and writes header and body at once. */
export interface EstAnswer {
  readonly status: 200 | 202 | 204 | 400 | 401 | 403 | 500 | 503;
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  /** ASCII. */
  readonly body: string;
}

export interface EstOperation {
  readonly name: OperationName;
  /** GET includes HEAD. */
  readonly method: 'GET' | 'POST';
  /** The media type a request body must have; undefined for GET. */
  readonly requestType?: 'application/pkcs10' | 'application/pkcs7-mime';
  /** False answers 501: switched off in the configuration, or nothing for it. */
  readonly enabled: boolean;
  /** Absent: every CA offers it. @throws EstuaryError 501 where this one does not */
  checkOffered?(ca: Ca): void;
  /** True where a password or a Negotiate token may authenticate: with nothing presented, the 401 only challenges. */
  readonly challenges: boolean;
  handle(request: EstRequest): Promise<EstAnswer>;
}

/** The exact type of enrollment and cacerts answers: libest compares it to the letter, space included. */
export const CERTS_ONLY = 'application/pkcs7-mime; smime-type=certs-only';

/** A 200 whose body is base64 of DER. */
export function derAnswer(contentType: string, body: string): EstAnswer {
  // Bouncy Castle takes the body for raw DER without this header (RFC 8951 §3.1 lets us send it).
  return { status: 200, headers: { 'Content-Type': contentType, 'Content-Transfer-Encoding': 'base64' }, body };
}

/** 202: come back in `retryAfter` seconds with the same request (RFC 7030 §4.2.3). The body is empty. */
export function pendingAnswer(retryAfter: number): EstAnswer {
  return { status: 202, headers: { 'Retry-After': String(retryAfter) }, body: '' };
}
