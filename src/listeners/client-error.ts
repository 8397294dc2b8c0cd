import type { Socket } from 'node:net';
import { errorAnswer, type ErrorAnswer } from '../admin/error-answer.ts';

/** Answers what Node's HTTP parser refused before there was a request, in the admin API's error form. */
export function writeClientError(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const answer = answerOf(error.code);
  const body = JSON.stringify(answer);
  socket.end(
    [
      `HTTP/1.1 ${answer.statusCode} ${answer.error}`,
      'Content-Type: application/json; charset=utf-8',
      `Content-Length: ${Buffer.byteLength(body)}`,
      'Connection: close',
      '',
      body,
    ].join('\r\n'),
  );
}

function answerOf(code: string | undefined): ErrorAnswer {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return errorAnswer(431, 'HEADERS_TOO_LARGE', 'the header of the request is too large');
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return errorAnswer(408, 'REQUEST_TIMEOUT', 'the request did not arrive in time');
    default:
      return errorAnswer(400, 'HTTP_INVALID', 'this is not a valid HTTP request');
  }
}
