import { createServer, get, type RequestListener } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { EstuaryError } from '../../src/errors.ts';
import { applyHttpRules, checkHead } from '../../src/http/request-head.ts';

/** The Retry-After of what a server with this handler answers. */
async function retryAfter(handler: RequestListener): Promise<string | undefined> {
  const server = createServer(handler).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  applyHttpRules(server, 7, () => undefined);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return new Promise((resolve, reject) => {
    get({ port, agent: false }, (response) => {
      response.resume();
      resolve(response.headers['retry-after']);
    }).on('error', reject);
  });
}

describe('RFC 9110 §15.6.4: every 503 carries Retry-After, however it is written', () => {
  test.each<[string, RequestListener]>([
    ['by its statusCode', (_, response) => response.writeHead(503).end('no')],
    ['with a reason', (_, response) => response.writeHead(503, 'No').end('no')],
    ['with headers', (_, response) => response.writeHead(503, { 'Content-Type': 'text/plain' }).end('no')],
    ['with raw headers', (_, response) => response.writeHead(503, ['Content-Type', 'text/plain']).end('no')],
    [
      'implicitly',
      (_, response) => {
        response.statusCode = 503;
        response.end('no');
      },
    ],
  ])('%s', async (_, handler) => {
    expect(await retryAfter(handler)).toBe('7');
  });

  test.each<[string, RequestListener]>([
    ['in writeHead', (_, response) => response.writeHead(503, { 'retry-after': '99' }).end()],
    ['before', (_, response) => response.setHeader('Retry-After', '99').writeHead(503).end()],
  ])('its own stays: %s', async (_, handler) => {
    expect(await retryAfter(handler)).toBe('99');
  });

  test('other responses have none', async () => {
    expect(await retryAfter((_, response) => response.writeHead(500).end())).toBeUndefined();
  });
});

describe('RFC 9112 §3.2: a request has one Host header and a target that the listener can route', () => {
  const head = (rawHeaders: readonly string[], url = '/', httpVersion = '1.1') => {
    const host = rawHeaders[rawHeaders.findIndex((name) => name.toLowerCase() === 'host') + 1];
    return { rawHeaders: [...rawHeaders], url, httpVersion, headers: rawHeaders.length === 0 ? {} : { host } };
  };
  const codeOf = (request: ReturnType<typeof head>): unknown => {
    try {
      checkHead(request as unknown as Parameters<typeof checkHead>[0]);
      return 'accepted';
    } catch (error) {
      return error instanceof EstuaryError ? [error.status, error.code] : error;
    }
  };

  test.each<[string, ReturnType<typeof head>, unknown]>([
    ['one Host header', head(['Host', 'a.example', 'X-Host', 'b.example']), 'accepted'],
    ['two Host headers', head(['Host', 'a.example', 'Host', 'b.example']), [400, 'HOST_REPEATED']],
    ['two equal ones, in other case', head(['host', 'a.example', 'HOST', 'a.example']), [400, 'HOST_REPEATED']],
    ['another header with the value "Host"', head(['Host', 'a.example', 'X-Name', 'Host']), 'accepted'],
    ['no Host header', head([]), [400, 'HOST_MISSING']],
    ['no Host header in HTTP/1.0', head([], '/', '1.0'), 'accepted'],
    ['two in HTTP/1.0', head(['Host', 'a', 'Host', 'b'], '/', '1.0'), [400, 'HOST_REPEATED']],
    ['a target that is not a path', head(['Host', 'a.example'], 'nowhere'), [400, 'BAD_PATH']],
    ['the asterisk', head(['Host', 'a.example'], '*'), 'accepted'],
  ])('%s', (_, request, expected) => {
    expect(codeOf(request)).toEqual(expected);
  });
});
