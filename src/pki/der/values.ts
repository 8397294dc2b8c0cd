/** Readers for the values of DER elements. */
import { DerError, Tag, type DerElement } from './element.ts';

/** Content octets of an INTEGER, checked to be minimal (two's complement, big-endian). */
export function integerBytes(element: DerElement, what = 'INTEGER'): Buffer {
  const { value } = element;
  const [first, second] = value;
  if (first === undefined) throw new DerError(`${what}: empty`);
  if (second !== undefined && ((first === 0 && second < 0x80) || (first === 0xff && second >= 0x80)))
    throw new DerError(`${what}: not minimal`);
  return value;
}

export function readBigInt(element: DerElement, what = 'INTEGER'): bigint {
  const value = integerBytes(element, what);
  return BigInt.asIntN(value.length * 8, BigInt(`0x${value.toString('hex')}`));
}

/** INTEGER or ENUMERATED within JavaScript's safe integers. */
export function readInteger(element: DerElement, what = 'INTEGER'): number {
  const value = integerBytes(element, what);
  if (value.length > 6) throw new DerError(`${what}: too large`);
  return value.readIntBE(0, value.length);
}

/** BOOLEAN; DER allows 0x00 and 0xff only, but BER's other octets for true are common. */
export function readBoolean({ value }: DerElement, what = 'BOOLEAN'): boolean {
  if (value.length !== 1) throw new DerError(`${what}: not one octet`);
  return value[0] !== 0;
}

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

/** Content octets (latin1) → dotted form. Every request contains the same two dozen OIDs. */
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

/** BIT STRING: the bytes, and the number of unused bits in the last one (which must be zero). */
export function readBitString(element: DerElement, what = 'BIT STRING'): { bytes: Buffer; unused: number } {
  const [unused] = element.value;
  const bytes = element.value.subarray(1);
  if (unused === undefined || unused > 7 || (bytes.length === 0 && unused !== 0))
    throw new DerError(`${what}: malformed`);
  const last = bytes.at(-1);
  if (last !== undefined && (last & ((1 << unused) - 1)) !== 0) throw new DerError(`${what}: unused bits set`);
  return { bytes, unused };
}

/** BIT STRING of whole octets (a key, a signature). */
export function readBitStringOctets(element: DerElement, what = 'BIT STRING'): Buffer {
  const { bytes, unused } = readBitString(element, what);
  if (unused !== 0) throw new DerError(`${what}: not whole octets`);
  return bytes;
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * The text of any ASN.1 character string. Characters outside the alphabet of its type are read, and octets above 0x7F in a
 * type of single octets are Latin-1: many CAs and devices write both.
 */
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
    case Tag.NUMERIC_STRING:
    case Tag.IA5_STRING:
    case Tag.VISIBLE_STRING:
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

/** Characters that a string type cannot hold; the other types hold all of Unicode, or are only read. */
const OUTSIDE: ReadonlyMap<number, RegExp> = new Map([
  [Tag.PRINTABLE_STRING, /[^A-Za-z0-9 '()+,\-./:=?]/u],
  [Tag.NUMERIC_STRING, /[^0-9 ]/u],
  [Tag.IA5_STRING, /[^\x00-\x7f]/u],
  [Tag.VISIBLE_STRING, /[^\x20-\x7e]/u],
  [Tag.TELETEX_STRING, /[^\x00-\xff]/u],
  [Tag.BMP_STRING, /[\u{10000}-\u{10ffff}]/u],
]);

/** The first character that the string type cannot hold, in words; undefined if it holds the text. */
export const characterOutside = (tag: number, text: string): string | undefined => {
  const outside = OUTSIDE.get(tag);
  return outside && firstMatch(text, outside);
};

/** The first character that matches, and its place, counted from 1: `"_" at position 4`. */
export function firstMatch(text: string, pattern: RegExp, from = 0): string | undefined {
  const match = pattern.exec(text.slice(from));
  if (match === null) return undefined;
  const at = from + match.index;
  const character = String.fromCodePoint(text.codePointAt(at) ?? 0);
  const code = `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`;
  const shown = /[!-~]/.test(character)
    ? JSON.stringify(character)
    : character === ' '
      ? 'a space (" ")'
      : /[\p{L}\p{N}\p{P}\p{S}]/u.test(character)
        ? `"${character}" (${code})`
        : code;
  return `${shown} at position ${Array.from(text.slice(0, at)).length + 1}`;
}

/** RFC 5280 §4.1.2.5 demands seconds and Zulu time, and forbids fractions; other software writes all forms of BER. */
const TIME = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)?(?:[.,]\d+)?(?:Z|([+-]\d\d)(\d\d))$/;

/** UTCTime or GeneralizedTime, in whole seconds. */
export function readTime({ tag, value }: DerElement, what = 'Time'): Date {
  if (tag !== Tag.UTC_TIME && tag !== Tag.GENERALIZED_TIME) throw new DerError(`${what}: unexpected tag`);
  const text = value.toString('latin1');
  const match = TIME.exec(tag === Tag.GENERALIZED_TIME ? text : `${text < '50' ? 20 : 19}${text}`);
  if (match === null) throw new DerError(`${what}: malformed`);
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, zone = 0, rest = 0] = match
    .slice(1)
    .map((part: string | undefined) => Number(part ?? 0));
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  date.setUTCHours(hour, minute, second, 0);
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day || hour > 23 || minute > 59 || second > 59)
    throw new DerError(`${what}: no such time`);
  const offset = zone * 60 + (match[7]?.startsWith('-') === true ? -rest : rest);
  return new Date(date.getTime() - offset * 60_000);
}
