import type { ErrorTable } from './table.ts';

/** Errors in a request's HTTP form. */
export const HTTP_ERRORS = {
  BAD_PATH: {
    status: 400,
    cause: 'The request target is not a path or a URL, or contains an invalid percent-encoding.',
    remedy: 'Correct the URL that the client is configured with.',
  },
  BAD_REQUEST: {
    status: [400, 414],
    cause: 'The request violates HTTP.',
    remedy: "Correct the client. The log has the parser's reason.",
  },
  BODY_BAD_PEM: {
    status: 400,
    cause: 'The body starts as PEM but is not exactly one complete block.',
    remedy: 'Send one block with its BEGIN and END lines, or bare base64.',
  },
  BODY_EMPTY: {
    status: 400,
    cause: 'The body is empty.',
    remedy: 'Send the base64 of the DER structure that the operation takes.',
  },
  BODY_INCOMPLETE: {
    status: 400,
    cause: 'The connection closed before the whole body arrived.',
    remedy: 'Send the request again. If this happens often, check the network.',
  },
  BODY_LENGTH_MISMATCH: {
    status: 400,
    cause: 'The length of the body differs from Content-Length.',
    remedy: 'Correct the client or the proxy that sets the header.',
  },
  BODY_NOT_BASE64: {
    status: 400,
    cause: 'The body is not base64 (RFC 8951 section 3.1). Clients often send raw DER instead.',
    remedy: 'Encode the DER as base64.',
  },
  BODY_NOT_JSON: {
    status: 400,
    cause: 'The body of an admin call is not valid JSON in UTF-8.',
    remedy: 'Correct the body.',
  },
  BODY_TOO_LARGE: {
    status: 413,
    cause: 'The body exceeds the limit of the listener.',
    remedy: 'Send less, or raise server.body_limit if that is the limit.',
  },
  CONTENT_CODING_UNSUPPORTED: {
    status: 415,
    cause: 'The body is compressed.',
    remedy: 'Send it without Content-Encoding.',
  },
  CONTENT_TYPE_MISSING: {
    status: 400,
    cause: 'The request has a body but no Content-Type.',
    remedy: 'Send the Content-Type that the response names.',
  },
  CONTENT_TYPE_WRONG: {
    status: 415,
    cause: 'The operation does not accept this type of body.',
    remedy: 'Send the Content-Type that the response names.',
  },
  CROSS_SITE: {
    status: 403,
    cause: 'A browser sent the call on behalf of a page of another site.',
    remedy: 'Call the admin API from the console, or without a browser.',
  },
  EXPECTATION_FAILED: {
    status: 417,
    cause: 'The Expect header is not 100-continue.',
    remedy: 'Omit the header.',
    text: 'The only expectation this server meets is 100-continue.',
  },
  FULLCMC_NO_SIGNER: {
    status: 501,
    cause: 'CMC responses need a signer, and this CA has none.',
    remedy: 'Configure cmc.certificate and cmc.key, or use simpleenroll.',
  },
  OVERLOADED: {
    status: 503,
    cause: 'The server is at its limit of concurrent requests, or this address uses most of it.',
    remedy: 'Retry after the seconds in Retry-After. If it lasts, add nodes (docs/guides/limits.md).',
  },
  RATE_LIMITED: {
    status: 503,
    cause: 'The rate of requests, from this address or in total, exceeds `[limits]`.',
    remedy: 'Retry after the seconds in Retry-After. Raise the limit if the rate is legitimate.',
  },
  HEADERS_TOO_LARGE: {
    status: 431,
    cause: 'The request headers exceed the limit of the HTTP parser.',
    remedy: 'Send fewer or shorter headers.',
    text: 'The request headers are too large.',
  },
  HOST_MISSING: { status: 400, cause: 'An HTTP/1.1 request has no Host header.', remedy: 'Send the header.' },
  HOST_REPEATED: {
    status: 400,
    cause: 'The request has more than one Host header.',
    remedy: 'Send one Host header. Check whether a proxy adds another.',
  },
  HTTP_INVALID: {
    status: 400,
    cause: 'The data received is not HTTP.',
    remedy: 'Check that the client speaks HTTP over TLS to this port.',
    text: 'The request is not valid HTTP.',
  },
  INTERNAL_ERROR: {
    status: 500,
    cause: 'An unexpected error occurred.',
    remedy: 'Find the error in the log and report it with its stack.',
  },
  MALFORMED_DER: {
    status: 400,
    cause: 'The decoded body is not the structure that the operation requires.',
    remedy: 'Check what the client encodes.',
  },
  MEDIA_TYPE_UNSUPPORTED: {
    status: 415,
    cause: 'This path does not accept the media type of the body.',
    remedy: 'Send the Content-Type that the response names.',
  },
  METHOD_NOT_ALLOWED: {
    status: 405,
    cause: 'The path does not support this method.',
    remedy: 'Use a method from the Allow header.',
  },
  NOT_FOUND: { status: 404, cause: 'Nothing is served at this path.', remedy: 'Correct the path.' },
  NOT_PUBLISHED_HERE: {
    status: 404,
    cause: 'The CA is remote and publishes its own CRLs and OCSP responses.',
    remedy: 'Use the addresses in the certificate.',
  },
  OPERATION_OFF: {
    status: 501,
    cause: 'The operation is disabled, or this CA does not support it.',
    remedy: 'Use another operation, or enable it in the configuration.',
  },
  REQUEST_TIMEOUT: {
    status: 408,
    cause: 'The request did not arrive within the timeout of the listener.',
    remedy: 'Check the network between client and server.',
    text: 'The request took too long to arrive.',
  },
  TRANSFER_ENCODING: {
    status: 400,
    cause: 'The body uses a transfer coding other than chunked.',
    remedy: 'Send it chunked, or with Content-Length.',
  },
  RENEWAL_UNKNOWN: {
    status: 404,
    cause: 'The certificate of a renewal-info request is unknown at this label, expired or revoked.',
    remedy: 'Renew the certificate by the schedule of the client, or enroll again.',
  },
  UNKNOWN_LABEL: {
    status: 404,
    cause: 'The path contains a label that no CA in the configuration has.',
    remedy: 'Correct the label, or omit it for the default CA.',
  },
  UNKNOWN_OPERATION: {
    status: 404,
    cause: 'The path does not name an EST operation.',
    remedy: 'Correct the URL that the client is configured with.',
  },
  TOO_MANY_STREAMS: {
    status: 503,
    cause: 'The process serves the maximum number of event streams.',
    remedy: 'Close unused pages. The browser reconnects automatically.',
  },
  URL_TOO_LONG: {
    status: 414,
    cause: 'A segment of the path is too long.',
    remedy: 'Correct the path.',
  },
} as const satisfies ErrorTable;
