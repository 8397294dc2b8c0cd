/**
 * Messages on a stream between processes: a frame is the length of what follows (four octets, little-endian), when it was sent (eight
 * octets, clock.ts), and the message as V8 serialises it. Bytes come back as views of the frame.
 */
import { deserialize, serialize } from 'node:v8';
import { monotonic } from './clock.ts';

const LENGTH = 4;
const TIME = 8;
const HEAD = LENGTH + TIME;
/** No message is near it: the largest carries a few thousand calls. */
const MAX_FRAME = 1 << 28;

/** The frame of a message that is sent now. */
export function toFrame(message: unknown): Buffer {
  const packed = serialize(message);
  const frame = Buffer.allocUnsafe(HEAD + packed.length);
  frame.writeUInt32LE(TIME + packed.length, 0);
  frame.writeDoubleLE(monotonic(), LENGTH);
  frame.set(packed, HEAD);
  return frame;
}

export interface Received {
  /** Of any shape. */
  readonly message: unknown;
  /** When it was sent. */
  readonly at: number;
}

/** Cuts a stream into its frames. */
export class FrameReader {
  /** What has come of a frame that is not whole. */
  #parts: Buffer[] = [];
  #size = 0;
  /** Octets that are needed before anything can be done. */
  #needed = HEAD;

  /**
   * The messages that are whole with this chunk.
   *
   * @throws {Error} for what is no frame; the stream cannot be read on then
   */
  *push(chunk: Buffer): Generator<Received> {
    this.#parts.push(chunk);
    this.#size += chunk.length;
    if (this.#size < this.#needed) return;
    let rest = this.#parts.length === 1 ? chunk : Buffer.concat(this.#parts);
    this.#needed = HEAD;
    while (rest.length >= HEAD) {
      const length = rest.readUInt32LE(0);
      if (length < TIME || length > MAX_FRAME) throw new RangeError(`a frame of ${length} octets`);
      if (rest.length < LENGTH + length) {
        this.#needed = LENGTH + length;
        break;
      }
      const at = rest.readDoubleLE(LENGTH);
      yield { message: deserialize(rest.subarray(HEAD, LENGTH + length)), at };
      rest = rest.subarray(LENGTH + length);
    }
    this.#parts = rest.length === 0 ? [] : [rest];
    this.#size = rest.length;
  }
}
