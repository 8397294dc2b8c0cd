import { randomBytes, randomInt } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { monotonic } from '../../../src/store/calls/clock.ts';
import { FrameReader, toFrame } from '../../../src/store/calls/frames.ts';

const MESSAGES: readonly unknown[] = [
  { calls: [{ id: 1, operation: 'getOtp', args: ['x', undefined, null], time: 1.7e12 }] },
  { replies: [{ id: 1, value: undefined }] },
  { text: 'ü €\u0000', list: [], none: null, numbers: [0, -1, 2 ** 53, 1.5] },
  { der: Buffer.from('--bytes--').subarray(2, 7) },
  { large: Buffer.alloc(200_000, 7) },
];

const read = (reader: FrameReader, chunk: Buffer): unknown[] => [...reader.push(chunk)].map(({ message }) => message);

describe('issue 14.3: messages between the processes of a service', () => {
  test('come as they were sent, however the stream is cut, with the time of their sending', () => {
    const before = monotonic();
    const stream = Buffer.concat(MESSAGES.map(toFrame));
    for (const cut of [1, 2, 3, 11, 12, 13, 4096, stream.length]) {
      const reader = new FrameReader();
      const received: unknown[] = [];
      for (let at = 0; at < stream.length; at += cut) received.push(...read(reader, stream.subarray(at, at + cut)));
      expect(received).toStrictEqual(MESSAGES);
    }
    const [first] = new FrameReader().push(stream);
    expect(first?.at).toBeGreaterThanOrEqual(before);
    expect(first?.at).toBeLessThanOrEqual(monotonic());
  });

  test.each([
    ['a length that no message has', Buffer.from('ffffffff00000000', 'hex')],
    ['a length too short for its head', Buffer.from('070000000000000000000000', 'hex')],
    ['octets that are no message', Buffer.concat([Buffer.from([12, 0, 0, 0]), Buffer.alloc(12, 0xa5)])],
    ['an HTTP request', Buffer.from('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')],
  ])('are refused: %s', (_, octets) => {
    expect(() => read(new FrameReader(), Buffer.concat([octets, Buffer.alloc(64)]))).toThrow(Error);
  });

  test('damaged ones are refused or are another value, and never more than an error', () => {
    const frame = toFrame(MESSAGES[0]);
    for (let round = 0; round < 3000; round++) {
      const damaged = Buffer.from(frame);
      for (let times = randomInt(1, 4); times > 0; times--) damaged[randomInt(damaged.length)] = randomInt(256);
      const octets = randomInt(4) === 0 ? randomBytes(randomInt(1, 100)) : damaged;
      try {
        read(new FrameReader(), octets);
      } catch (error) {
        expect(error).toBeInstanceOf(Error);
      }
    }
  });
});
