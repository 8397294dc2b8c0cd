/** Seeded mutations of DER, by octet and by element. */
import { DerError, children, tlv } from '../../src/pki/der/der.ts';

/** A number from 0 to below - 1. */
export type Random = (below: number) => number;

/** mulberry32: a small generator, so that a failure can be repeated by its seed. */
export function random(seed: number): Random {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % below;
  };
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

const OCTET_STRING = 0x04;
const CONSTRUCTED = 0x20;
/** Identifier octets worth trying: every universal type that CMS and X.509 use, and the first context tags. */
const TAGS = [
  0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x0a, 0x0c, 0x13, 0x16, 0x17, 0x18, 0x30, 0x31, 0x80, 0x81, 0x82, 0xa0, 0xa1,
  0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa9,
];

/**
 * One edit to one element somewhere in the tree, the lengths around it made right again, so that readers get past the
 * headers: a field removed, repeated, swapped, taken from another message, given another tag or other octets; or an
 * indefinite length. OCTET STRINGs that hold DER are entered.
 *
 * @param donor where foreign fields come from
 */
export function mutateTree(bytes: Buffer, donor: Buffer, next: Random): Buffer {
  const parts = split(bytes);
  if (parts === undefined || parts.length === 0) return mutate(bytes, next);
  const at = next(parts.length);
  const chosen = parts[at];
  if (chosen === undefined) return bytes;
  switch (next(10)) {
    case 0:
      return Buffer.concat(parts.filter((_, i) => i !== at));
    case 1:
      return Buffer.concat([...parts.slice(0, at), chosen, ...parts.slice(at)]);
    case 2: {
      const other = next(parts.length);
      return Buffer.concat(parts.map((part, i) => (i === at ? (parts[other] ?? part) : i === other ? chosen : part)));
    }
    case 3:
      return Buffer.concat(parts.map((part, i) => (i === at ? pick(donor, next) : part)));
    default:
      return Buffer.concat(parts.map((part, i) => (i === at ? inside(part, donor, next) : part)));
  }
}

function inside(element: Buffer, donor: Buffer, next: Random): Buffer {
  const [parsed] = split(element) === undefined ? [] : children(element);
  if (parsed === undefined) return mutate(element, next);
  const { tag, value } = parsed;
  const nested = (tag & CONSTRUCTED) !== 0 || (tag === OCTET_STRING && split(value) !== undefined);
  if (nested && next(8) > 0) return tlv(tag, mutateTree(value, donor, next));
  switch (next(5)) {
    case 0:
      return tlv(TAGS[next(TAGS.length)] ?? tag, value);
    case 1:
      return tlv(tag, value.subarray(0, next(value.length + 1)));
    case 2:
      return nested ? Buffer.concat([Buffer.of(tag | CONSTRUCTED, 0x80), value, Buffer.alloc(2)]) : tlv(tag);
    case 3:
      return tlv(tag, Buffer.alloc(next(64), next(256)));
    default:
      return tlv(tag, mutate(value, next));
  }
}

/** A random element of a message. */
function pick(bytes: Buffer, next: Random): Buffer {
  let chosen = bytes;
  for (let depth = next(8); depth > 0; depth--) {
    const parts = split(chosen);
    const part = parts?.[next(parts.length)];
    if (part === undefined) return chosen;
    if (depth === 1) return part;
    const [parsed] = children(part);
    if (parsed === undefined || (parsed.tag & CONSTRUCTED) === 0) return part;
    chosen = parsed.value;
  }
  return chosen;
}

/** The elements of a value, each with its header, or undefined where it is not a series of them. */
function split(value: Buffer): Buffer[] | undefined {
  try {
    const parts = children(value).map(({ raw }) => raw);
    return parts.length === 0 ? undefined : parts;
  } catch (error) {
    if (error instanceof DerError) return undefined;
    throw error;
  }
}
