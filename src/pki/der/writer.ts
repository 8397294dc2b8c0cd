/** DER encoding. */
import { InputError } from '../input-error.ts';
import { contextConstructed, contextPrimitive, Tag } from './element.ts';

/** One element around the concatenated parts. */
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
/** SET OF: sorts the parts into DER order. */
export const setOf = (...parts: readonly Uint8Array[]): Buffer =>
  tlv(Tag.SET, ...[...parts].sort((a, b) => Buffer.compare(a, b)));
export const octetString = (bytes: Uint8Array): Buffer => tlv(Tag.OCTET_STRING, bytes);
export const bitString = (bytes: Uint8Array, unused = 0): Buffer => tlv(Tag.BIT_STRING, Uint8Array.of(unused), bytes);
export const boolean = (value: boolean): Buffer => tlv(Tag.BOOLEAN, Uint8Array.of(value ? 0xff : 0));
export const utf8String = (text: string): Buffer => tlv(Tag.UTF8_STRING, Buffer.from(text, 'utf8'));
export const ia5String = (text: string): Buffer => tlv(Tag.IA5_STRING, Buffer.from(text, 'latin1'));
export const printableString = (text: string): Buffer => tlv(Tag.PRINTABLE_STRING, Buffer.from(text, 'latin1'));
export const explicit = (n: number, ...parts: readonly Uint8Array[]): Buffer => tlv(contextConstructed(n), ...parts);
/** IMPLICIT [n] of a primitive type; `content` has no header. */
export const implicitPrimitive = (n: number, content: Uint8Array): Buffer => tlv(contextPrimitive(n), content);
export const NULL: Buffer = Buffer.from([Tag.NULL, 0]);

/** INTEGER from a number, a bigint or unsigned big-endian octets. */
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

/**
 * OBJECT IDENTIFIER from its dotted form. @throws InputError for anything else (a programming or configuration error)
 */
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

/** Time per RFC 5280 §4.1.2.5: UTCTime through 2049, GeneralizedTime later. Drops fractions of a second. */
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
