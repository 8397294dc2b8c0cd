import { describe, expect, test } from 'vitest';
import { affordable, ConnectionTally, openFileLimit } from '../../src/http/connection-tally.ts';

const yes = (): boolean => true;

/** A listener with 640 connections at most, so an address has few below ten. */
function tally(counts: Readonly<Record<string, number>>, perAddress = 640): ConnectionTally<string> {
  const made = new ConnectionTally<string>({ total: 640, perAddress });
  for (const [address, count] of Object.entries(counts))
    for (let i = 0; i < count; i++) made.add(address, `${address} ${i}`);
  return made;
}

describe('the limits', () => {
  test('of all connections, and of one address', () => {
    const full = tally({ a: 320, b: 319 }, 320);
    expect([full.reached('a'), full.reached('b')]).toEqual(['max_connections_per_address', undefined]);
    full.add('b', 'last');
    expect([full.reached('b'), full.reached('c')]).toEqual(['max_connections_per_address', 'max_connections']);
    full.remove('b', 'last');
    full.remove('b', 'last');
    expect(full.reached('c')).toBeUndefined();
  });
});

describe('an address with few connections displaces', () => {
  test('the oldest of the address with the most', () => {
    const full = tally({ a: 200, b: 240, c: 200 });
    expect(full.displaced('new', yes)).toBe('b 0');
    full.remove('b', 'b 0');
    expect(full.displaced('new', yes)).toBe('b 1');
  });

  test('the next address when the first has none that may be closed', () => {
    const full = tally({ a: 200, b: 240, c: 199 });
    expect(full.displaced('new', (connection) => !connection.startsWith('b'))).toBe('a 0');
    expect(full.displaced('new', (connection) => connection === 'c 7')).toBe('c 7');
    expect(full.displaced('new', () => false)).toBeUndefined();
  });

  test('what the first condition allows goes before what the next allows', () => {
    expect(tally({ a: 640 }).displaced('new', (connection) => connection === 'a 9', yes)).toBe('a 9');
  });

  test('nothing once it has a 64th of all, or nearly as many as the others', () => {
    expect(tally({ a: 631, b: 9 }).displaced('b', yes)).toBe('a 0');
    expect(tally({ a: 630, b: 10 }).displaced('b', yes)).toBeUndefined();
    const even = tally(Object.fromEntries(Array.from({ length: 320 }, (_, i) => [`a${i}`, 2])));
    expect(even.displaced('a0', yes)).toBeUndefined();
    expect(even.displaced('new', yes)).toBe('a0 0');
  });

  test('nothing where fewer than 64 connections are allowed', () => {
    const small = new ConnectionTally<string>({ total: 63, perAddress: 63 });
    for (let i = 0; i < 63; i++) small.add('a', `a ${i}`);
    expect(small.displaced('new', yes)).toBeUndefined();
  });

  test('the largest address is known through any changes', () => {
    const changing = tally({ a: 5, b: 3 });
    for (let i = 0; i < 5; i++) changing.remove('a', `a ${i}`);
    expect(changing.displaced('new', yes)).toBe('b 0');
    for (let i = 0; i < 4; i++) changing.add('c', `c ${i}`);
    expect(changing.displaced('new', yes)).toBe('c 0');
    for (let i = 0; i < 3; i++) changing.remove('b', `b ${i}`);
    for (let i = 0; i < 4; i++) changing.remove('c', `c ${i}`);
    expect(changing.displaced('new', yes)).toBeUndefined();
  });
});

/** A process never runs out of files because of its connections. */
test.each([
  ['plenty of files', 3, 100_000, { total: 4096, perAddress: 1024 }],
  ['unlimited', 3, undefined, { total: 4096, perAddress: 1024 }],
  ['1,024 for two listeners', 2, 1024, { total: 448, perAddress: 448 }],
  ['1,024 for three listeners', 3, 1024, { total: 298, perAddress: 298 }],
  ['hardly any', 3, 100, { total: 1, perAddress: 1 }],
])('the limit of open files bounds the connections: %s', (_name, listeners, openFiles, limits) => {
  expect(affordable({ total: 4096, perAddress: 1024 }, listeners, openFiles)).toEqual(limits);
});

test('the limit of this process is known', () => {
  expect(openFileLimit()).toBeGreaterThan(100);
});
