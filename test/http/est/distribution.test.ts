import { describe, expect, test, vi } from 'vitest';
import { ReadyBodies } from '../../../src/http/est/distribution.ts';

const der = Buffer.alloc(60, 1);

describe('what is the same for every request is encoded once', () => {
  test('for each length of its lines', () => {
    const ready = new ReadyBodies();
    const chain = [der];
    const make = vi.fn(() => der);
    for (let i = 0; i < 3; i++) {
      expect(ready.of(chain, undefined, make)).toBe(`${der.toString('base64')}\n`);
      expect(ready.of(chain, 64, make).split('\n')).toHaveLength(3);
    }
    expect(make).toHaveBeenCalledTimes(2);
  });

  test('and again where another takes its place, as after a reload', () => {
    const ready = new ReadyBodies();
    expect(ready.of([der], undefined, () => der)).toBe(`${der.toString('base64')}\n`);
    expect(ready.of([der], undefined, () => Buffer.from('other'))).toBe('b3RoZXI=\n');
  });

  test('what cannot be made now is made when it can', () => {
    const ready = new ReadyBodies();
    const chain = [der];
    const fails = (): never => {
      throw new Error('the CA is down');
    };
    expect(() => ready.of(chain, undefined, fails)).toThrow('the CA is down');
    expect(ready.of(chain, undefined, () => der)).toBe(`${der.toString('base64')}\n`);
  });
});
