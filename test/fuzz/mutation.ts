/** Seeded mutations by octet, whatever the grammar. */
import { Random as Numbers } from '../support/random.ts';

/** A number from 0 to below - 1. */
export type Random = (below: number) => number;

/** A failure can be repeated by its seed. */
export function random(seed: number): Random {
  const numbers = new Numbers(seed);
  return (below) => numbers.uint32() % below;
}

/** One to four edits: a bit, an octet, a length-like octet, a piece removed, repeated or moved. */
export function mutate(bytes: Buffer, next: Random): Buffer {
  let out = Buffer.from(bytes);
  for (let edits = 1 + next(4); edits > 0; edits--) {
    const at = next(Math.max(out.length, 1));
    const end = Math.min(out.length, at + 1 + next(8));
    switch (next(6)) {
      case 0:
        out[at] = (out[at] ?? 0) ^ (1 << next(8));
        break;
      case 1:
        out[at] = next(256);
        break;
      case 2:
        out[at] = [0, 1, 0x7f, 0x80, 0x81, 0x82, 0x84, 0xff][next(8)] ?? 0;
        break;
      case 3:
        out = Buffer.concat([out.subarray(0, at), out.subarray(end)]);
        break;
      case 4:
        out = Buffer.concat([out.subarray(0, end), out.subarray(at)]);
        break;
      default:
        out = out.subarray(0, at);
    }
  }
  return out;
}

/** One of a list; undefined only where it is empty. */
export const pickOf = <T>(list: readonly T[], next: Random): T | undefined => list[next(list.length)];
