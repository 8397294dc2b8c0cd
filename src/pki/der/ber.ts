/**
 * Converts BER to DER: CMS producers such as Bouncy Castle send indefinite lengths and constructed strings. All other
 * code reads DER only.
 */
import { CHARACTER_STRINGS, DerError, Tag, tlv } from './der.ts';

/** Enough for any CMS message, and far below the stack limit. */
const MAX_DEPTH = 48;
/** Bounds memory, since each element allocates an object. */
const MAX_ELEMENTS = 20_000;

const CONSTRUCTED = 0x20;
/** Octets of the end-of-contents marker. */
const END_OF_CONTENTS = 2;
/** Universal types for which BER also allows the constructed form. */
const STRING_TAGS: ReadonlySet<number> = new Set([Tag.BIT_STRING, Tag.OCTET_STRING, ...CHARACTER_STRINGS]);

interface Cursor {
  readonly bytes: Buffer;
  offset: number;
  elements: number;
}

/**
 * Rewrites one BER element with definite, minimal lengths and primitive strings. Values stay as they are: the order of
 * SETs, INTEGERs and times. DER input is returned unchanged.
 * @throws DerError unless the input is one well-formed BER element within the limits of depth and size
 */
export function berToDer(bytes: Buffer): Buffer {
  const cursor: Cursor = { bytes, offset: 0, elements: 0 };
  const der = element(cursor, bytes.length, 0);
  if (cursor.offset !== bytes.length) throw new DerError('BER: trailing bytes');
  return der;
}

/**
 * The elements inside one constructed BER element, as received, with their headers.
 * @throws DerError as {@link berToDer}
 */
export function berElements(bytes: Buffer): Buffer[] {
  const cursor: Cursor = { bytes, offset: 0, elements: 0 };
  const { length } = header(cursor, bytes.length);
  const end = length === undefined ? bytes.length - END_OF_CONTENTS : cursor.offset + length;
  const found: Buffer[] = [];
  while (cursor.offset < end) {
    const start = cursor.offset;
    element(cursor, end, 1);
    found.push(bytes.subarray(start, cursor.offset));
  }
  return found;
}

function element(cursor: Cursor, end: number, depth: number): Buffer {
  if (depth > MAX_DEPTH) throw new DerError('BER: nested too deep');
  if (++cursor.elements > MAX_ELEMENTS) throw new DerError('BER: too many elements');
  const { tag, length } = header(cursor, end);
  if ((tag & CONSTRUCTED) === 0) {
    if (length === undefined) throw new DerError('BER: indefinite length of a primitive element');
    const value = cursor.bytes.subarray(cursor.offset, cursor.offset + length);
    cursor.offset += length;
    return tlv(tag, value);
  }
  const parts =
    length === undefined ? untilEnd(cursor, end, depth) : untilOffset(cursor, cursor.offset + length, depth);
  const primitive = tag & ~CONSTRUCTED;
  return STRING_TAGS.has(primitive) ? joined(primitive, parts) : tlv(tag, ...parts);
}

/** Reads the identifier and length octets and checks that the value fits. */
function header(cursor: Cursor, end: number): { tag: number; length: number | undefined } {
  const { bytes } = cursor;
  if (cursor.offset + 2 > end) throw new DerError('BER: truncated header');
  const tag = bytes.readUInt8(cursor.offset++);
  if ((tag & 0x1f) === 0x1f) throw new DerError('BER: multi-byte tag');
  const first = bytes.readUInt8(cursor.offset++);
  if (first === 0x80) return { tag, length: undefined };
  let length = first;
  if (first > 0x80) {
    const count = first & 0x7f;
    if (count > 4 || cursor.offset + count > end) throw new DerError('BER: bad length');
    length = bytes.readUIntBE(cursor.offset, count);
    cursor.offset += count;
  }
  if (cursor.offset + length > end) throw new DerError('BER: truncated value');
  return { tag, length };
}

function untilOffset(cursor: Cursor, end: number, depth: number): Buffer[] {
  const parts: Buffer[] = [];
  while (cursor.offset < end) parts.push(element(cursor, end, depth + 1));
  return parts;
}

function untilEnd(cursor: Cursor, end: number, depth: number): Buffer[] {
  const parts: Buffer[] = [];
  for (;;) {
    if (cursor.offset + 2 > end) throw new DerError('BER: no end of contents');
    if (cursor.bytes.readUInt16BE(cursor.offset) === 0) {
      cursor.offset += 2;
      return parts;
    }
    parts.push(element(cursor, end, depth + 1));
  }
}

/**
 * The segments of a constructed string, each converted to a primitive of the same type or OCTET STRING (X.690 §8.14).
 */
function joined(primitive: number, parts: readonly Buffer[]): Buffer {
  const values = parts.map((part) => {
    const [tag] = part;
    if (tag !== primitive && tag !== Tag.OCTET_STRING) throw new DerError('BER: segment of another type');
    return part.subarray(2 + lengthOctets(part));
  });
  if (primitive !== Tag.BIT_STRING) return tlv(primitive, ...values);
  const unused = values.at(-1)?.subarray(0, 1) ?? Buffer.of(0);
  return tlv(primitive, unused, ...values.map((value) => value.subarray(1)));
}

/** Number of octets after the first length octet of an element that this module wrote. */
function lengthOctets(part: Buffer): number {
  const first = part.readUInt8(1);
  return first < 0x80 ? 0 : first & 0x7f;
}
