/** An EST operation for the listener: its name, HTTP properties and handler. One file per operation. */
import type { PresentedCredentials } from '../../auth/identity.ts';
import type { Ca } from '../../ca/router.ts';
import type { OPERATION_NAMES } from '../../config/vocabulary.ts';

export type OperationName = (typeof OPERATION_NAMES)[number];

/** A request that passed the cheap checks, with its body. */
export interface EstRequest {
  /** Correlates log, audit and store records. */
  readonly requestId: string;
  readonly ca: Ca;
  readonly presented: PresentedCredentials;
  /** tls-unique or tls-exporter of the connection, computed on demand. */
  channelBinding(): Buffer | undefined;
  /** Whether the client has closed its connection. */
  isGone(): boolean;
  /** What the path names behind the operation. */
  readonly id: string | undefined;
  /** The body as received; empty for GET. */
  readonly body: Buffer;
  /** Columns of base64 lines that the client can read; undefined: one line. */
  readonly lineLength: number | undefined;
}

/** A response; the listener adds Content-Length and writes head and body at once. */
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
  /** The required media type of the body; undefined for GET. */
  readonly requestType?: 'application/pkcs10' | 'application/pkcs7-mime';
  /** False returns 501: disabled or not configured. */
  readonly enabled: boolean;
  /** Default: every CA offers it. @throws EstuaryError 501 if this one does not */
  checkOffered?(ca: Ca): void;
  /** True if a password or a Negotiate token may authenticate: without credentials, the 401 only challenges. */
  readonly challenges: boolean;
  handle(request: EstRequest): Promise<EstAnswer>;
}

/** For everybody, and without a body. */
export const PUBLIC = { method: 'GET', enabled: true, challenges: false } as const;

/** The exact type of enrollment and cacerts responses: libest compares it literally, including the space. */
export const CERTS_ONLY = 'application/pkcs7-mime; smime-type=certs-only';

/** A 200 with base64 of DER. */
export function derAnswer(contentType: string, body: string): EstAnswer {
  // Without this header Bouncy Castle takes the body for raw DER (RFC 8951 §3.1 allows the header).
  return { status: 200, headers: { 'Content-Type': contentType, 'Content-Transfer-Encoding': 'base64' }, body };
}

/** 202: repeat the request after `retryAfter` seconds (RFC 7030 §4.2.3). The body is empty. */
export function pendingAnswer(retryAfter: number): EstAnswer {
  return { status: 202, headers: { 'Retry-After': String(retryAfter) }, body: '' };
}
