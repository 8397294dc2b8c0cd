/** Elements of DER (X.690): one tag-length-value after the other, and a cursor over them. */
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

/** The tags of text. */
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

const CONSTRUCTED = 0x20;
const UNIVERSAL_CONSTRUCTED: ReadonlySet<number> = new Set([Tag.SEQUENCE, Tag.SET, 0x28, 0x2b]);
/** More than any extension in use needs. */
const MAX_DEPTH = 16;

/**
 * One whole value and nothing after it; every constructed value in it is read too (X.690 §10).
 * @throws DerError
 */
export function requireDer(bytes: Buffer, what = 'element'): void {
  check(parseDer(bytes, undefined, what), what, 1);
}

function check({ tag, value }: DerElement, what: string, depth: number): void {
  if (depth > MAX_DEPTH) throw new DerError(`${what}: nested too deep`);
  const isUniversal = (tag & 0xc0) === 0;
  const isConstructed = (tag & CONSTRUCTED) !== 0;
  // strings come in one piece (X.690 §10.2), sequences and sets never as primitives
  if (isUniversal && isConstructed !== UNIVERSAL_CONSTRUCTED.has(tag | CONSTRUCTED))
    throw new DerError(`${what}: unexpected tag`);
  if (tag === 0) throw new DerError(`${what}: unexpected tag`);
  if (isConstructed) for (const child of children(value, what)) check(child, what, depth + 1);
}
