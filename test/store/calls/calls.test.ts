import { describe, expect, test } from 'vitest';
import { callsOf } from '../../../src/store/calls/calls.ts';

interface Operations {
  find(id: string): object;
  list(): object;
}

describe('a call of the store is what its table has an operation for', () => {
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
});
