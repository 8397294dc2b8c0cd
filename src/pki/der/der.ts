/**
 * DER in and out (X.690): a strict reader and a small writer, for the hot path. Values are subarrays of the input,
 * never copies. Every malformed input throws {@link DerError}; nothing else is thrown on outside data.
 */
import { InputError } from '../input-error.ts';

/** Universal and context tags as their identifier octet. */
export const Tag = {
  BOOLEAN: 0x01,
  INTEGER: 0x02,
  BIT_STRING: 0x03,
  OCTET_STRING: 0x04,
  NULL: 0x05,
  OID: 0x06,
  ENUMERATED: 0x0a,
  UTF8_STRING: 0x0c,
  NUMERIC_STRING: 0x12,
  PRINTABLE_STRING: 0x13,
  TELETEX_STRING: 0x14,
  IA5_STRING: 0x16,
  UTC_TIME: 0x17,
  GENERALIZED_TIME: 0x18,
  VISIBLE_STRING: 0x1a,
  UNIVERSAL_STRING: 0x1c,
  BMP_STRING: 0x1e,
  SEQUENCE: 0x30,
  SET: 0x31,
} as const;

/** Identifier octet of a primitive context-specific tag [n]. */
export const contextPrimitive = (n: number): number => 0x80 | n;
/** Identifier octet of a constructed context-specific tag [n]. */
export const contextConstructed = (n: number): number => 0xa0 | n;

/** Input that is not the DER expected. The message names what was being read; it holds no input bytes. */
export class DerError extends InputError {
  constructor(message: string) {
    super(message);
    this.name = 'DerError';
  }
}

/** What `read` makes of octets from outside, or `otherwise` where it throws a {@link DerError}; other errors go on. */
export function unlessMalformed<T, U>(read: () => T, otherwise: U): T | U {
  try {
    return read();
  } catch (error) {
    if (error instanceof DerError) return otherwise;
    throw error;
  }
}

/** One tag-length-value. `raw` includes the header, `value` does not. */
export interface DerElement {
  readonly tag: number;
  readonly raw: Buffer;
  readonly value: Buffer;
}

/** Reads the element at `offset`; it must end at or before `end`. Lengths must be definite and minimal (DER). */
export function readElement(bytes: Buffer, offset: number, end: number, what = 'element'): DerElement {
  if (offset + 2 > end) throw new DerError(`${what}: truncated header`);
  const tag = bytes.readUInt8(offset);
  if ((tag & 0x1f) === 0x1f) throw new DerError(`${what}: multi-byte tag`);
  let length = bytes.readUInt8(offset + 1);
  let start = offset + 2;
  if (length >= 0x80) {
    const count = length & 0x7f;
    if (count === 0) throw new DerError(`${what}: indefinite length`);
    if (count > 4) throw new DerError(`${what}: length of more than four octets`);
    if (start + count > end) throw new DerError(`${what}: truncated length`);
    length = bytes.readUIntBE(start, count);
    if (length < 0x80 || (count > 1 && length < 2 ** (8 * (count - 1))))
      throw new DerError(`${what}: length not minimal`);
    start += count;
  }
  if (start + length > end) throw new DerError(`${what}: truncated value`);
  return { tag, raw: bytes.subarray(offset, start + length), value: bytes.subarray(start, start + length) };
}

/** Reads exactly one element; trailing bytes are an error. */
export function parseDer(bytes: Buffer, tag?: number, what = 'element'): DerElement {
  const element = readElement(bytes, 0, bytes.length, what);
  if (element.raw.length !== bytes.length) throw new DerError(`${what}: trailing bytes`);
  if (tag !== undefined && element.tag !== tag) throw new DerError(`${what}: unexpected tag`);
  return element;
}

/** All elements inside a constructed value, in order. */
export function children(value: Buffer, what = 'element'): DerElement[] {
  const elements: DerElement[] = [];
  for (let offset = 0; offset < value.length;) {
    const element = readElement(value, offset, value.length, what);
    elements.push(element);
    offset += element.raw.length;
  }
  return elements;
}

/** A cursor over the elements of a constructed value. */
export class DerReader {
  readonly #bytes: Buffer;
  readonly #what: string;
  #offset = 0;

  constructor(value: Buffer, what: string) {
    this.#bytes = value;
    this.#what = what;
  }

  /** A reader over the content of the one SEQUENCE (or other `tag`) that `bytes` must be. */
  static of(bytes: Buffer, what: string, tag: number = Tag.SEQUENCE): DerReader {
    return new DerReader(parseDer(bytes, tag, what).value, what);
  }

  get done(): boolean {
    return this.#offset >= this.#bytes.length;
  }

  /** The next element's tag, or undefined at the end. */
  get nextTag(): number | undefined {
    return this.#bytes[this.#offset];
  }

  /** The next element, which must exist and have this tag (any, if omitted). */
  next(tag?: number, field = 'field'): DerElement {
    const element = readElement(this.#bytes, this.#offset, this.#bytes.length, `${this.#what}.${field}`);
    if (tag !== undefined && element.tag !== tag) throw new DerError(`${this.#what}.${field}: unexpected tag`);
    this.#offset += element.raw.length;
    return element;
  }

  /** The next element if it has this tag. */
  optional(tag: number, field = 'field'): DerElement | undefined {
    return this.nextTag === tag ? this.next(tag, field) : undefined;
  }

  /** A reader over the next element's content. */
  enter(tag: number = Tag.SEQUENCE, field = 'field'): DerReader {
    return new DerReader(this.next(tag, field).value, `${this.#what}.${field}`);
  }

  /** Throws unless everything has been read. */
  end(): void {
    if (!this.done) throw new DerError(`${this.#what}: trailing fields`);
  }
}

// --- values in -------------------------------------------------------------------------------------------------

/** INTEGER content octets, checked minimal; two's complement, big-endian. */
export function integerBytes(element: DerElement, what = 'INTEGER'): Buffer {
  const { value } = element;
  const [first, second] = value;
  if (first === undefined) throw new DerError(`${what}: empty`);
  if (second !== undefined && ((first === 0 && second < 0x80) || (first === 0xff && second >= 0x80)))
    throw new DerError(`${what}: not minimal`);
  return value;
}

/** INTEGER as a bigint. */
export function readBigInt(element: DerElement, what = 'INTEGER'): bigint {
  const value = integerBytes(element, what);
  return BigInt.asIntN(value.length * 8, BigInt(`0x${value.toString('hex')}`));
}

/** INTEGER or ENUMERATED that must fit a safe JavaScript integer. */
export function readInteger(element: DerElement, what = 'INTEGER'): number {
  const value = integerBytes(element, what);
  if (value.length > 6) throw new DerError(`${what}: too large`);
  return value.readIntBE(0, value.length);
}

/** BOOLEAN; DER allows 0x00 and 0xff only. */
export function readBoolean(element: DerElement, what = 'BOOLEAN'): boolean {
  const [octet] = element.value;
  if (element.value.length !== 1 || (octet !== 0 && octet !== 0xff)) throw new DerError(`${what}: not DER`);
  return octet === 0xff;
}

/** OBJECT IDENTIFIER in dotted form. */
export function readOid(element: DerElement, what = 'OBJECT IDENTIFIER'): string {
  const { value } = element;
  if (element.tag !== Tag.OID) throw new DerError(`${what}: unexpected tag`);
  if (value.length === 0 || value.length > 64 || (value.readUInt8(value.length - 1) & 0x80) !== 0)
    throw new DerError(`${what}: malformed`);
  const key = value.toString('latin1');
  const known = dottedCache.get(key);
  if (known !== undefined) return known;
  const dotted = decodeOid(value, what);
  if (dottedCache.size < 1000) dottedCache.set(key, dotted);
  return dotted;
}

/** Content octets (latin1) → dotted form: the same two dozen OIDs come with every request. */
const dottedCache = new Map<string, string>();

function decodeOid(value: Buffer, what: string): string {
  let text = '';
  let arc = 0n;
  let fresh = true;
  for (const octet of value) {
    if (fresh && octet === 0x80) throw new DerError(`${what}: not minimal`);
    arc = (arc << 7n) | BigInt(octet & 0x7f);
    fresh = (octet & 0x80) === 0;
    if (!fresh) continue;
    if (text === '') {
      const root = arc < 40n ? 0n : arc < 80n ? 1n : 2n;
      text = `${root}.${arc - root * 40n}`;
    } else text += `.${arc}`;
    arc = 0n;
  }
  return text;
}

/** BIT STRING content: the bytes and the number of unused bits in the last one (which must be zero). */
export function readBitString(element: DerElement, what = 'BIT STRING'): { bytes: Buffer; unused: number } {
  const [unused] = element.value;
  const bytes = element.value.subarray(1);
  if (unused === undefined || unused > 7 || (bytes.length === 0 && unused !== 0))
    throw new DerError(`${what}: malformed`);
  const last = bytes.at(-1);
  if (last !== undefined && (last & ((1 << unused) - 1)) !== 0) throw new DerError(`${what}: unused bits set`);
  return { bytes, unused };
}

/** BIT STRING that holds whole octets (a key, a signature). */
export function readBitStringOctets(element: DerElement, what = 'BIT STRING'): Buffer {
  const { bytes, unused } = readBitString(element, what);
  if (unused !== 0) throw new DerError(`${what}: not whole octets`);
  return bytes;
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** The text of any ASN.1 character string, by its tag. Throws on characters the type does not allow. */
export function readString(element: DerElement, what = 'string'): string {
  const { tag, value } = element;
  switch (tag) {
    case Tag.UTF8_STRING:
      try {
        return utf8.decode(value);
      } catch {
        throw new DerError(`${what}: not UTF-8`);
      }
    case Tag.PRINTABLE_STRING:
      return checked(value.toString('latin1'), /^[A-Za-z0-9 '()+,\-./:=?]*$/, `${what}: not a PrintableString`);
    case Tag.NUMERIC_STRING:
      return checked(value.toString('latin1'), /^[0-9 ]*$/, `${what}: not a NumericString`);
    case Tag.IA5_STRING:
    case Tag.VISIBLE_STRING:
      return checked(value.toString('latin1'), /^[\x00-\x7f]*$/, `${what}: not ASCII`);
    case Tag.TELETEX_STRING:
      return value.toString('latin1');
    case Tag.BMP_STRING:
      if (value.length % 2 !== 0) throw new DerError(`${what}: odd BMPString`);
      return Buffer.from(value).swap16().toString('utf16le');
    case Tag.UNIVERSAL_STRING: {
      if (value.length % 4 !== 0) throw new DerError(`${what}: odd UniversalString`);
      let text = '';
      for (let i = 0; i < value.length; i += 4) {
        const point = value.readUInt32BE(i);
        if (point > 0x10ffff) throw new DerError(`${what}: not a UniversalString`);
        text += String.fromCodePoint(point);
      }
      return text;
    }
    default:
      throw new DerError(`${what}: not a character string`);
  }
}

function checked(text: string, allowed: RegExp, message: string): string {
  if (!allowed.test(text)) throw new DerError(message);
  return text;
}

/** UTCTime or GeneralizedTime in the forms RFC 5280 §4.1.2.5 allows (seconds present, Zulu, no fraction). */
export function readTime(element: DerElement, what = 'Time'): Date {
  const text = element.value.toString('latin1');
  const form =
    element.tag === Tag.UTC_TIME
      ? /^(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/
      : /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/;
  if (element.tag !== Tag.UTC_TIME && element.tag !== Tag.GENERALIZED_TIME)
    throw new DerError(`${what}: unexpected tag`);
  const match = form.exec(text);
  if (match === null) throw new DerError(`${what}: malformed`);
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match.slice(1).map(Number);
  const fullYear = element.tag === Tag.UTC_TIME ? (year < 50 ? 2000 + year : 1900 + year) : year;
  const date = new Date(0);
  date.setUTCFullYear(fullYear, month - 1, day);
  date.setUTCHours(hour, minute, second, 0);
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day || hour > 23 || minute > 59 || second > 59)
    throw new DerError(`${what}: no such time`);
  return date;
}

// --- values out ------------------------------------------------------------------------------------------------

/** One element of this tag around the concatenated parts. */
export function tlv(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  let length = 0;
  for (const part of parts) length += part.length;
  const lengthOctets = length < 0x80 ? 0 : length < 0x100 ? 1 : length < 0x10000 ? 2 : length < 0x1000000 ? 3 : 4;
  const out = Buffer.allocUnsafe(2 + lengthOctets + length);
  out[0] = tag;
  if (lengthOctets === 0) out[1] = length;
  else {
    out[1] = 0x80 | lengthOctets;
    out.writeUIntBE(length, 2, lengthOctets);
  }
  let offset = 2 + lengthOctets;
  for (const part of parts) {
    out.set(part, offset);
    offset += part.length;
  }
  return out;
}

export const sequence = (...parts: readonly Uint8Array[]): Buffer => tlv(Tag.SEQUENCE, ...parts);
/** SET OF: the parts are put into DER order. */
export const setOf = (...parts: readonly Uint8Array[]): Buffer =>
  tlv(Tag.SET, ...[...parts].sort((a, b) => Buffer.compare(a, b)));
export const octetString = (bytes: Uint8Array): Buffer => tlv(Tag.OCTET_STRING, bytes);
export const bitString = (bytes: Uint8Array, unused = 0): Buffer => tlv(Tag.BIT_STRING, Uint8Array.of(unused), bytes);
export const boolean = (value: boolean): Buffer => tlv(Tag.BOOLEAN, Uint8Array.of(value ? 0xff : 0));
export const utf8String = (text: string): Buffer => tlv(Tag.UTF8_STRING, Buffer.from(text, 'utf8'));
export const ia5String = (text: string): Buffer => tlv(Tag.IA5_STRING, Buffer.from(text, 'latin1'));
export const printableString = (text: string): Buffer => tlv(Tag.PRINTABLE_STRING, Buffer.from(text, 'latin1'));
/** EXPLICIT [n]. */
export const explicit = (n: number, ...parts: readonly Uint8Array[]): Buffer => tlv(contextConstructed(n), ...parts);
/** IMPLICIT [n] of a primitive type: the content only, without its own header. */
export const implicitPrimitive = (n: number, content: Uint8Array): Buffer => tlv(contextPrimitive(n), content);
/** DER NULL. */
export const NULL: Buffer = Buffer.from([Tag.NULL, 0]);

/** INTEGER from a number, a bigint, or unsigned big-endian magnitude octets. */
export function integer(value: number | bigint | Uint8Array): Buffer {
  if (value instanceof Uint8Array) {
    let start = 0;
    while (start < value.length - 1 && value[start] === 0) start++;
    const magnitude = value.subarray(start);
    return (magnitude[0] ?? 0x80) >= 0x80 ? tlv(Tag.INTEGER, Uint8Array.of(0), magnitude) : tlv(Tag.INTEGER, magnitude);
  }
  let rest = BigInt(value);
  const octets: number[] = [];
  do {
    octets.unshift(Number(rest & 0xffn));
    rest >>= 8n;
  } while (!(rest === 0n && (octets[0] ?? 0) < 0x80) && !(rest === -1n && (octets[0] ?? 0) >= 0x80));
  return tlv(Tag.INTEGER, Uint8Array.from(octets));
}

const oidCache = new Map<string, Buffer>();

/** OBJECT IDENTIFIER from its dotted form. Throws InputError on a form that is none (a programming or configuration error). */
export function oid(dotted: string): Buffer {
  const cached = oidCache.get(dotted);
  if (cached !== undefined) return cached;
  if (!/^[0-2](\.(0|[1-9]\d*))+$/.test(dotted)) throw new InputError(`not an object identifier: ${dotted}`);
  const [root = 0n, second = 0n, ...rest] = dotted.split('.').map(BigInt);
  if (root < 2n && second > 39n) throw new InputError(`not an object identifier: ${dotted}`);
  const octets: number[] = [];
  for (const arc of [root * 40n + second, ...rest]) {
    const group = [Number(arc & 0x7fn)];
    for (let high = arc >> 7n; high > 0n; high >>= 7n) group.unshift(Number(high & 0x7fn) | 0x80);
    octets.push(...group);
  }
  const encoded = tlv(Tag.OID, Uint8Array.from(octets));
  if (oidCache.size < 1000) oidCache.set(dotted, encoded);
  return encoded;
}

const two = (n: number): string => String(n).padStart(2, '0');

/** Time as RFC 5280 §4.1.2.5 wants it: UTCTime through 2049, GeneralizedTime after. Fractions of a second are dropped. */
export function time(date: Date): Buffer {
  return date.getUTCFullYear() < 2050
    ? tlv(Tag.UTC_TIME, Buffer.from(timeDigits(date).slice(2), 'latin1'))
    : generalizedTime(date);
}

/** GeneralizedTime, Zulu, whole seconds. */
export function generalizedTime(date: Date): Buffer {
  return tlv(Tag.GENERALIZED_TIME, Buffer.from(timeDigits(date), 'latin1'));
}

function timeDigits(date: Date): string {
  return (
    String(date.getUTCFullYear()).padStart(4, '0') +
    two(date.getUTCMonth() + 1) +
    two(date.getUTCDate()) +
    two(date.getUTCHours()) +
    two(date.getUTCMinutes()) +
    two(date.getUTCSeconds()) +
    'Z'
  );
}
