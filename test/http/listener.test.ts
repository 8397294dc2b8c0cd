/** A client that never reads its response is disconnected. */
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { boundAnswers, checkingInterval } from '../../src/http/listener.ts';
import { until } from '../support/until.ts';

test('a client that never reads its answer is cut', async () => {
  const server = createServer((_request, response) => response.end(Buffer.alloc(64 * 1024 * 1024)));
  boundAnswers(server, 100, 2 ** 30);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('not listening');
  const gone = new Promise((resolve) => server.on('connection', (socket) => socket.on('close', resolve)));
  const client = connect(address.port, '127.0.0.1').pause();
  client.on('error', () => undefined).write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  await gone;
  client.destroy();
  server.close();
});

test('a client that reads gets its answer and keeps its connection', async () => {
  const server = createServer((_request, response) => response.end('answer'));
  boundAnswers(server, 50, 2 ** 30);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('not listening');
  const client = connect(address.port, '127.0.0.1');
  let text = '';
  client.on('data', (data: Buffer) => (text += data.toString()));
  for (const count of [1, 2]) {
    client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    await until(`answer ${count}`, () => (text.match(/answer/g) ?? []).length >= count);
  }
  expect(client.destroyed).toBe(false);
  client.destroy();
  server.close();
});

test.each([
  [1000, 1000],
  [60_000, 5000],
])('with %i ms for the head, Node looks every %i ms', (timeout, interval) => {
  expect(checkingInterval(timeout)).toBe(interval);
});
