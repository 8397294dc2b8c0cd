import { describe, expect, test } from 'vitest';
import { callsOf } from '../../../src/store/calls/store-calls.ts';
import { ownBytes, withBuffers } from '../../../src/store/calls/thread-link.ts';

interface Operations {
  find(id: string): object;
  list(): object;
}

describe('a call of the store is what the other side has an operation for', () => {
  test('by its name, with its arguments, and no other', async () => {
    const received: unknown[][] = [];
    const calls = callsOf<Operations>({
      operations: ['find', 'list'],
      call<Result>(name: string, args: readonly unknown[]): Promise<Result> {
        received.push([name, ...args]);
        return Promise.resolve('found' as Result);
      },
    });
    expect(Object.keys(calls)).toEqual(['find', 'list']);
    expect(await calls.find('a')).toBe('found');
    expect(received).toEqual([['find', 'a']]);
  });

  test('a slice of a buffer travels to a thread without the memory around it, wherever it lies; the rest as it is', () => {
    const slice = Buffer.from('--bytes--').subarray(2, 7);
    const plain = { text: 'x', none: null, list: [1, { two: 2 }] };
    const [first, second] = ownBytes([{ der: slice, plain }, [{ inner: { der: slice } }, plain]]) as unknown[];
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
  ])('bytes come back from a thread as a Buffer: %s', (_, answer, expected) => {
    expect(withBuffers(answer)).toStrictEqual(expected(Buffer.from([1, 2])));
  });
});
