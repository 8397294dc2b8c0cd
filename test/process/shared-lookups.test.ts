/** Lookups of host names: equal ones share a thread of the pool. */
import dns from 'node:dns';
import { connect, createServer } from 'node:net';
import { expect, test } from 'vitest';
import { sharedLookup, shareLookups } from '../../src/process/shared-lookups.ts';

type Answer = (...values: readonly unknown[]) => void;

test('a name whose DNS does not answer holds one lookup, and other names do not wait', () => {
  const asked: (readonly [host: string, answer: Answer])[] = [];
  const lookup = sharedLookup((...all) => void asked.push([String(all[0]), all.at(-1) as Answer]));
  const answers: unknown[] = [];
  for (let n = 0; n < 10; n++) lookup('Dead.example', { all: true }, (...values: unknown[]) => answers.push(values));
  lookup('dead.example', { all: true }, (...values: unknown[]) => answers.push(values));
  lookup('dead.example', 4, () => undefined);
  lookup('alive.example', (...values: unknown[]) => answers.push(values));
  expect(asked.map(([host]) => host)).toEqual(['Dead.example', 'dead.example', 'alive.example']);
  asked[2]?.[1](null, '127.0.0.1', 4);
  expect(answers).toEqual([[null, '127.0.0.1', 4]]);
  asked[0]?.[1](new Error('timeout'));
  expect(answers).toHaveLength(12);
  lookup('dead.example', { all: true }, () => undefined);
  expect(asked).toHaveLength(4);
});

test('connections of every library use it, with the hosts file', async () => {
  const { lookup } = dns;
  let count = 0;
  Object.assign(dns, {
    lookup: (...args: Parameters<typeof lookup>) => {
      count++;
      Reflect.apply(lookup, dns, args);
    },
  });
  shareLookups();
  const server = createServer((socket) => socket.end()).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const address = server.address();
  const port = typeof address === 'object' ? (address?.port ?? 0) : 0;
  const connected = () =>
    new Promise((resolve, reject) => {
      connect({ host: 'localhost', port, family: 4 }, () => resolve(undefined)).once('error', reject);
    });
  // Listening looks up too.
  count = 0;
  await Promise.all([connected(), connected(), connected()]);
  expect(count).toBe(1);
  server.close();
  Object.assign(dns, { lookup });
});
