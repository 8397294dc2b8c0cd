import { once } from 'node:events';
import { createServer, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { ActiveRequests, OpenRequests } from '../../src/http/admission.ts';
import { exchangeOf } from '../../src/http/exchange.ts';

/** Requests that are carried out until `end`. */
function requests() {
  const activeRequests = new ActiveRequests();
  const gate = Promise.withResolvers<undefined>();
  let refused = 0;
  const all: Promise<unknown>[] = [];
  const send = (address: string, count: number): void => {
    for (let i = 0; i < count; i++)
      all.push(activeRequests.run({}, address, () => gate.promise).catch(() => void (refused += 1)));
  };
  const end = (): Promise<unknown> => {
    gate.resolve(undefined);
    return Promise.all(all);
  };
  return { activeRequests, send, end, refused: () => Promise.resolve().then(() => refused) };
}

test('a few addresses leave room for the requests of others', async () => {
  const { send, end, refused } = requests();
  send('192.0.2.1', 120);
  send('192.0.2.2', 120);
  expect(await refused()).toBe(240 - 192);
  send('192.0.2.3', 16);
  expect(await refused()).toBe(48);
  // It no longer has few.
  send('192.0.2.3', 1);
  expect(await refused()).toBe(49);
  await end();
});

test('addresses with few requests share all places', async () => {
  const { send, end, refused } = requests();
  for (let i = 0; i < 256; i++) send(`192.0.2.${i}`, 1);
  expect(await refused()).toBe(0);
  send('198.51.100.1', 1);
  expect(await refused()).toBe(1);
  await end();
});

test('the addresses of one IPv6 /64 count as one', async () => {
  const { send, end, refused } = requests();
  for (let i = 0; i < 256; i++) send(`2001:db8::${i.toString(16)}`, 1);
  expect(await refused()).toBe(64);
  await end();
});

test('the places of one address are free again afterwards', async () => {
  const { activeRequests, send, end, refused } = requests();
  send('192.0.2.1', 192);
  expect(await refused()).toBe(0);
  await end();
  const again = Array.from({ length: 192 }, () => activeRequests.run({}, '192.0.2.1', () => Promise.resolve('served')));
  expect(new Set(await Promise.all(again))).toEqual(new Set(['served']));
});

/** What a reload replaces is closed when the requests that began before have ended, and waits for no later one. */
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
