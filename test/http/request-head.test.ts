import { createServer, get, type RequestListener } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { applyHttpRules } from '../../src/http/request-head.ts';

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
