/** DER elements (X.690): tag, length and value. */
import { InputError } from '../input-error.ts';

/** Universal tags as identifier octets. */
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

export const CHARACTER_STRINGS: ReadonlySet<number> = new Set([
  Tag.UTF8_STRING,
  Tag.NUMERIC_STRING,
  Tag.PRINTABLE_STRING,
  Tag.TELETEX_STRING,
  Tag.IA5_STRING,
  Tag.VISIBLE_STRING,
  Tag.UNIVERSAL_STRING,
  Tag.BMP_STRING,
]);

/** Identifier octet of a primitive context-specific tag [n]. */
export const contextPrimitive = (n: number): number => 0x80 | n;
/** Identifier octet of a constructed context-specific tag [n]. */
export const contextConstructed = (n: number): number => 0xa0 | n;

/** Input that is not the expected DER. The message names what was being read and contains no input bytes. */
export class DerError extends InputError {
  constructor(message: string) {
    super(message);
    this.name = 'DerError';
  }
}

/** Runs `read`; returns `otherwise` if it throws a {@link DerError}. Other errors propagate. */
export function unlessMalformed<T, U>(read: () => T, otherwise: U): T | U {
  try {
    return read();
  } catch (error) {
    if (error instanceof DerError) return otherwise;
    throw error;
  }
}

/** `raw` includes the header, `value` does not. */
export interface DerElement {
  readonly tag: number;
  readonly raw: Buffer;
  readonly value: Buffer;
}

/** An element inside `bytes`. A Buffer costs more than all that is read of a small element, so each is made when it is used. */
class ReadElement implements DerElement {
  readonly tag: number;
  readonly end: number;
  readonly #bytes: Buffer;
  readonly #offset: number;
  readonly #start: number;
  #raw: Buffer | undefined;
  #value: Buffer | undefined;

  constructor(tag: number, bytes: Buffer, offset: number, start: number, end: number) {
    this.tag = tag;
    this.end = end;
    this.#bytes = bytes;
    this.#offset = offset;
    this.#start = start;
  }

  get raw(): Buffer {
    return (this.#raw ??= this.#bytes.subarray(this.#offset, this.end));
  }

  get value(): Buffer {
    return (this.#value ??= this.#bytes.subarray(this.#start, this.end));
  }
}

/** The same element with another tag, as IMPLICIT tagging demands. */
export const retagged = ({ raw, value }: DerElement, tag: number): DerElement => ({ tag, raw, value });

const malformed = (problem: string, what: string, field: string | undefined): DerError =>
  new DerError(`${field === undefined ? what : `${what}.${field}`}: ${problem}`);

/**
 * Reads the element at `offset`, which must end at or before `end`. Lengths must be definite and minimal.
 * @param field of `what`; a text of both is made for an error only
 */
export function readElement(bytes: Buffer, offset: number, end: number, what = 'element', field?: string): ReadElement {
  if (offset + 2 > end) throw malformed('truncated header', what, field);
  const tag = bytes.readUInt8(offset);
  if ((tag & 0x1f) === 0x1f) throw malformed('multi-byte tag', what, field);
  let length = bytes.readUInt8(offset + 1);
  let start = offset + 2;
  if (length >= 0x80) {
    const count = length & 0x7f;
    if (count === 0) throw malformed('indefinite length', what, field);
    if (count > 4) throw malformed('length of more than four octets', what, field);
    if (start + count > end) throw malformed('truncated length', what, field);
    length = bytes.readUIntBE(start, count);
    if (length < 0x80 || (count > 1 && length < 2 ** (8 * (count - 1))))
      throw malformed('length not minimal', what, field);
    start += count;
  }
  if (start + length > end) throw malformed('truncated value', what, field);
  return new ReadElement(tag, bytes, offset, start, start + length);
}

/** Reads exactly one element; trailing bytes are an error. */
export function parseDer(bytes: Buffer, tag?: number, what = 'element'): DerElement {
  const element = readElement(bytes, 0, bytes.length, what);
  if (element.end !== bytes.length) throw new DerError(`${what}: trailing bytes`);
  if (tag !== undefined && element.tag !== tag) throw new DerError(`${what}: unexpected tag`);
  return element;
}

export function children(value: Buffer, what = 'element'): DerElement[] {
  const elements: DerElement[] = [];
  for (let offset = 0; offset < value.length;) {
    const element = readElement(value, offset, value.length, what);
    elements.push(element);
    offset = element.end;
  }
  return elements;
}

const CONSTRUCTED = 0x20;
const UNIVERSAL_CONSTRUCTED: ReadonlySet<number> = new Set([Tag.SEQUENCE, Tag.SET, 0x28, 0x2b]);
/** Enough for any extension in use. */
const MAX_DEPTH = 16;

/** Checks that the input is one value, with nested values, in DER (X.690 §10). @throws DerError */
export function requireDer(bytes: Buffer, what = 'element'): void {
  check(parseDer(bytes, undefined, what), what, 1);
}

function check({ tag, value }: DerElement, what: string, depth: number): void {
  if (depth > MAX_DEPTH) throw new DerError(`${what}: nested too deep`);
  const isUniversal = (tag & 0xc0) === 0;
  const isConstructed = (tag & CONSTRUCTED) !== 0;
  // Strings are always primitive (X.690 §10.2), sequences and sets always constructed.
  if (isUniversal && isConstructed !== UNIVERSAL_CONSTRUCTED.has(tag | CONSTRUCTED))
    throw new DerError(`${what}: unexpected tag`);
  if (tag === 0) throw new DerError(`${what}: unexpected tag`);
  if (isConstructed) for (const child of children(value, what)) check(child, what, depth + 1);
}
