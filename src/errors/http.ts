import type { ErrorTable } from './table.ts';

/** What is wrong with a request before anybody reads what it asks for. */
export const HTTP_ERRORS = {
  BAD_PATH: {
    status: 400,
    cause: 'The request target is not a path or a URL, or contains an invalid percent-encoding.',
    remedy: 'Correct the URL that the client is configured with.',
  },
  BAD_REQUEST: {
    status: [400, 414],
    cause: 'The request breaks a rule of HTTP that the server holds to.',
    remedy: "Look at what the client sends; the log has the parser's reason.",
  },
  BODY_BAD_PEM: {
    status: 400,
    cause: 'The body starts as PEM but is not exactly one complete block.',
    remedy: 'Send one block with its BEGIN and END lines, or bare base64.',
  },
  BODY_EMPTY: {
    status: 400,
    cause: 'The body holds nothing.',
    remedy: 'Send the base64 of the DER structure that the operation takes.',
  },
  BODY_INCOMPLETE: {
    status: 400,
    cause: 'The connection ended before the whole body had come.',
    remedy: 'Send the call again; look at the network where it happens often.',
  },
  BODY_LENGTH_MISMATCH: {
    status: 400,
    cause: 'The body is longer or shorter than Content-Length says.',
    remedy: 'Correct the client or the proxy that sets the header.',
  },
  BODY_NOT_BASE64: {
    status: 400,
    cause: 'The body is not base64, as RFC 8951 §3.1 asks for (raw DER is what clients most often send instead).',
    remedy: 'Encode the DER as base64.',
  },
  BODY_NOT_JSON: {
    status: 400,
    cause: 'The body of an admin call cannot be read as JSON in UTF-8.',
    remedy: 'Correct the body.',
  },
  BODY_TOO_LARGE: {
    status: 413,
    cause: 'The body is larger than the listener takes.',
    remedy: 'Send less, or raise server.body_limit where it bounds the body.',
  },
  CONTENT_CODING_UNSUPPORTED: {
    status: 415,
    cause: 'The body of an admin call is compressed.',
    remedy: 'Send it without Content-Encoding.',
  },
  CONTENT_ENCODING: {
    status: 415,
    cause: 'The body of an EST request is compressed.',
    remedy: 'Send it without Content-Encoding.',
  },
  CONTENT_TYPE_MISSING: {
    status: 400,
    cause: 'The request does not say what its body is.',
    remedy: 'Send the Content-Type that the answer names.',
  },
  CONTENT_TYPE_WRONG: {
    status: 415,
    cause: 'The body is of another type than the operation takes.',
    remedy: 'Send the Content-Type that the answer names.',
  },
  CROSS_SITE: {
    status: 403,
    cause: 'A browser sent the call for a page of another site.',
    remedy: 'Call the admin API from a page of its own origin, or without a browser.',
  },
  EXPECTATION_FAILED: {
    status: 417,
    cause: 'The Expect header asks for something else than 100-continue.',
    remedy: 'Leave the header out.',
    text: 'The only expectation this server meets is 100-continue.',
  },
  FULLCMC_NO_SIGNER: {
    status: 501,
    cause: 'CMC responses need a signer, and this CA has none.',
    remedy: 'Configure cmc.certificate and cmc.key, or use simpleenroll.',
  },
  OVERLOADED: {
    status: 503,
    cause: 'The server carries out as many requests as it can, or this address already has most of them.',
    remedy: 'Let clients try again after Retry-After. If it lasts, add nodes (docs/operations.md).',
  },
  RATE_LIMITED: {
    status: 503,
    cause: 'More requests came, from this address or in all, than `[limits]` allows.',
    remedy: 'Let the client wait for Retry-After; raise the limit where its rate is right.',
  },
  HEADERS_TOO_LARGE: {
    status: 431,
    cause: "The request's headers are larger than the HTTP parser takes.",
    remedy: 'Send fewer or shorter headers.',
    text: 'The request headers are too large.',
  },
  HOST_MISSING: { status: 400, cause: 'A request of HTTP/1.1 has no Host header.', remedy: 'Send the header.' },
  HOST_REPEATED: {
    status: 400,
    cause: 'The request has more than one Host header.',
    remedy: 'Send one; check that no proxy adds another.',
  },
  HTTP_INVALID: {
    status: 400,
    cause: 'What came is not HTTP.',
    remedy: 'Check that the client speaks HTTP over TLS to this port.',
    text: 'The request is not valid HTTP.',
  },
  INTERNAL: {
    status: 500,
    cause: 'Something happened that nobody foresaw.',
    remedy: 'Look for the error in the log, and report it with its stack.',
  },
  INTERNAL_ERROR: {
    status: 500,
    cause: 'Something happened during an admin call that nobody foresaw.',
    remedy: 'Look for the error in the log, and report it with its stack.',
    text: 'the request failed inside the server',
  },
  MALFORMED_DER: {
    status: 400,
    cause: 'The body is base64 of something else than the structure that the operation takes.',
    remedy: 'Check what the client encodes.',
  },
  MEDIA_TYPE_UNSUPPORTED: {
    status: 415,
    cause: 'The body is of another media type than this path takes.',
    remedy: 'Send the Content-Type that the answer names.',
  },
  METHOD_NOT_ALLOWED: {
    status: 405,
    cause: 'The path takes other methods only.',
    remedy: 'Use a method of the Allow header.',
  },
  NOT_FOUND: { status: 404, cause: 'Nothing is served at this path.', remedy: 'Correct the path.' },
  NOT_PUBLISHED_HERE: {
    status: 404,
    cause: 'The CA stands elsewhere and publishes its own revocation lists and OCSP answers.',
    remedy: 'Follow the addresses in the certificate.',
  },
  OPERATION_OFF: {
    status: 501,
    cause: 'The operation is switched off, or this CA has nothing to offer for it.',
    remedy: 'Use another operation, or switch it on in the configuration.',
  },
  REQUEST_TIMEOUT: {
    status: 408,
    cause: 'The request did not arrive in the time that the listener allows.',
    remedy: 'Look at the network between client and server.',
    text: 'The request took too long to arrive.',
  },
  ROUTE_NOT_FOUND: {
    status: 404,
    cause: 'The admin API has no such path.',
    remedy: 'Correct the path; docs/admin-api.md lists them.',
  },
  TRANSFER_ENCODING: {
    status: 400,
    cause: 'The body comes in another transfer coding than chunked.',
    remedy: 'Send it chunked, or with Content-Length.',
  },
  UNKNOWN_LABEL: {
    status: 404,
    cause: 'No CA of the configuration has the label in the path.',
    remedy: 'Correct the label, or leave it out for the default CA.',
  },
  UNKNOWN_OPERATION: {
    status: 404,
    cause: 'The path names no operation of EST.',
    remedy: 'Correct the URL that the client is configured with.',
  },
  TOO_MANY_STREAMS: {
    status: 503,
    cause: 'As many callers listen to events as one process serves.',
    remedy: 'Close pages that nobody looks at; the browser tries again by itself.',
  },
  URL_INVALID: {
    status: 400,
    cause: 'The path of an admin call has an escape that is none.',
    remedy: 'Correct the path.',
  },
  URL_TOO_LONG: {
    status: 414,
    cause: 'A part of the path of an admin call is longer than any identifier.',
    remedy: 'Correct the path.',
  },
} as const satisfies ErrorTable;
