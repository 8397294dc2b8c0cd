import { describe, expect, test } from 'vitest';
import { callsOf } from '../../../src/store/sqlite/thread-calls.ts';

interface Operations {
  store(row: object, others: readonly object[]): { value: string; events: [] };
  find(id: string): object;
}

/** A thread that keeps what it is called with and answers `result`. */
function thread(result: unknown) {
  const received: unknown[][] = [];
  return {
    operations: ['store', 'find'],
    received,
    call<Result>(name: string, args: readonly unknown[]): Promise<Result> {
      received.push([name, ...args]);
      return Promise.resolve(result as Result);
    },
  };
}

describe('issue 12.7: a call of the store is what its thread has an operation for', () => {
  test('by its name, with its arguments, and no other', async () => {
    const callee = thread('found');
    const calls = callsOf<Operations>(callee);
    expect(Object.keys(calls)).toEqual(['store', 'find']);
    expect(await calls.find('a')).toBe('found');
    expect(callee.received).toEqual([['find', 'a']]);
  });

  test('a slice of a buffer travels without the memory around it, wherever it lies; the rest as it is', async () => {
    const callee = thread(undefined);
    const slice = Buffer.from('--bytes--').subarray(2, 7);
    const plain = { text: 'x', none: null, list: [1, { two: 2 }] };
    await callsOf<Operations>(callee).store({ der: slice, plain }, [{ inner: { der: slice } }, plain]);
    const [[, first, second] = []] = callee.received;
    const exactly = (bytes: Buffer) => bytes.equals(slice) && bytes.buffer.byteLength === bytes.length;
    expect(first).toEqual({ der: expect.toSatisfy(exactly) as unknown, plain });
    expect(second).toEqual([{ inner: { der: expect.toSatisfy(exactly) as unknown } }, plain]);
    expect([(first as { plain: unknown }).plain, (second as unknown[])[1]]).toEqual([plain, plain]);
    expect(slice.toString(), 'the caller keeps its own').toBe('bytes');
  });

  test.each<[string, unknown, (buffer: Buffer) => unknown]>([
    ['a row', { der: new Uint8Array([1, 2]), id: 'a', none: null }, (der) => ({ der, id: 'a', none: null })],
    [
      'a page',
      { items: [{ csr: new Uint8Array([1, 2]) }], next_cursor: null },
      (csr) => ({ items: [{ csr }], next_cursor: null }),
    ],
    ['a list', [{ der: new Uint8Array([1, 2]) }, undefined, 7], (der) => [{ der }, undefined, 7]],
  ])('bytes come back as a Buffer: %s', async (_, answer, expected) => {
    expect(await callsOf<Operations>(thread(answer)).find('a')).toStrictEqual(expected(Buffer.from([1, 2])));
  });
});
