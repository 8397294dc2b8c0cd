/** What a request's head asks of HTTP itself, on either listener. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';

import { badRequest, errorWith, EstuaryError } from '../errors.ts';

/**
 * Lets a request with `Expect: 100-continue` through to the checks instead of inviting its body at once; what else
 * somebody may expect is not on offer (RFC 9110 §10.1.1).
 *
 * @param refuse answers in the listener's form
 */
export function answerExpectations(
  server: Server,
  refuse: (response: ServerResponse, error: EstuaryError) => void,
): void {
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    server.emit('request', request, response);
  });
  server.on('checkExpectation', (_request: IncomingMessage, response: ServerResponse) => {
    const text = 'The only expectation this server meets is 100-continue.';
    refuse(response, errorWith(417, 'EXPECTATION_FAILED', text));
  });
}

/** Whether the client waits to be told to send its body. */
export const expectsContinue = ({ headers }: IncomingMessage): boolean =>
  headers.expect?.toLowerCase() === '100-continue';

/** RFC 9112 §3.2: HTTP/1.1 without Host is refused. */
export function checkHost(raw: IncomingMessage): void {
  if (raw.headers.host === undefined && raw.httpVersion !== '1.0')
    throw badRequest('HOST_MISSING', 'The request needs a Host header.');
}
