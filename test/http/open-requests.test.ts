/** What a reload replaces is closed when the requests that began before have ended, and waits for no later one. */
import { once } from 'node:events';
import { createServer, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { exchangeOf } from '../../src/http/exchange.ts';
import { OpenRequests } from '../../src/http/open-requests.ts';

test('OpenRequests', async () => {
  const open = new OpenRequests();
  const held: ServerResponse[] = [];
  const work = Promise.withResolvers<undefined>();
  const server = createServer((incoming, response) => {
    if (incoming.url === '/left') exchangeOf(incoming).atWork = work.promise;
    held.push(response);
    server.emit('held');
  });
  open.follow(server);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const send = async (path: string) => {
    const client = request({ port, path, agent: false }).on('error', () => undefined);
    client.end();
    await once(server, 'held');
    return client;
  };
  const ended: string[] = [];
  const note = (name: string): unknown => open.endOfThese().then(() => ended.push(name));

  await open.endOfThese();
  await send('/first');
  note('first');
  const left = await send('/left');
  note('left');
  await send('/later');
  left.destroy();
  await turn();
  expect(ended).toEqual([]);
  held[0]?.end();
  await expect.poll(() => ended).toEqual(['first']);
  work.resolve(undefined);
  await expect.poll(() => ended).toEqual(['first', 'left']);
  held[2]?.end();
});
