/** Seeded mutations of DER by element: the lengths around a change are made right again, so that readers get past them. */
import { DerError, Tag, children, oid, tlv } from '../../src/pki/der/der.ts';
import { OID } from '../../src/pki/der/oids.ts';
import { mutate, pickOf, type Random } from './mutation.ts';

const CONSTRUCTED = 0x20;
/** Identifier octets worth trying: every universal type that CMS and X.509 use, and the first context tags. */
const TAGS = [
  0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x0a, 0x0c, 0x13, 0x14, 0x16, 0x17, 0x18, 0x1b, 0x1c, 0x1e, 0x30, 0x31, 0x80,
  0x81, 0x82, 0x86, 0x87, 0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa9,
];
const OIDS = Object.values(OID).map((dotted) => oid(dotted));

const hex = (text: string): Buffer => Buffer.from(text, 'hex');
const text = (value: string): Buffer => Buffer.from(value, 'utf8');

/** Contents at the edges of what a type can hold, right and wrong. */
const EDGES: ReadonlyMap<number, readonly Buffer[]> = new Map([
  [Tag.BOOLEAN, ['', '00', 'ff', '01', 'ffff'].map(hex)],
  [
    Tag.INTEGER,
    ['', '00', '01', 'ff', '7f', '0080', '80', '00ff', '7fffffff', '0080000000', 'ffffffff80', '00', '0000']
      .concat(['00ffffffffffffffff', '7fffffffffff', `7f${'ff'.repeat(40)}`, `00${'80'.repeat(2048)}`])
      .map(hex),
  ],
  [Tag.BIT_STRING, ['', '00', '0700', '0780', '0800', '00ff', '0003', `00${'ff'.repeat(64)}`].map(hex)],
  [Tag.OID, ['', '80', '2a', '2a80', 'ff', `2a${'ff'.repeat(70)}7f`, `2a${'81'.repeat(60)}01`].map(hex)],
  [Tag.UTC_TIME, ['500101000000Z', '491231235959Z', '000230000000Z', '2601010000Z', '260101000000+0100'].map(text)],
  [
    Tag.GENERALIZED_TIME,
    ['99991231235959Z', '00000101000000Z', '20260230000000Z', '20260101000000.5Z', '20260101240000Z'].map(text),
  ],
]);

/** Texts that names and addresses are compared and checked by. */
const TEXTS = ['', '.', '..', '*', '*.', '*.example', 'a.example.', '.example', 'xn--', 'bad%2eexample', 'A.EXAMPLE']
  .concat(['a@b.example', '@', 'a@', '@b', 'urn:x', 'http://[::1', 'http://a:b@c.example:99/', '\0', 'a\0b', '\u00a0'])
  .concat(['e\u0301', 'ﬀ', 'ß', 'İ', '\u{1f600}', '\ufeff', '\u202e', '10.0.0.1', 'x'.repeat(300), '\\,+="<>#; '])
  .map(text);

/** How often an element is repeated, or how deep it is put into others of its kind; the caller cuts what gets too long. */
const MANY = [2, 3, 9, 33, 65, 129, 500, 2000];
const MAX_GROWTH = 60_000;

/**
 * One edit to one element somewhere in the tree: a field removed, repeated, swapped, taken from another input, wrapped,
 * given another tag or other contents; or an indefinite length. Strings of octets that hold DER are entered.
 *
 * @param donor where foreign fields come from
 */
export function mutateTree(bytes: Buffer, donor: Buffer, next: Random): Buffer {
  const parts = split(bytes);
  if (parts === undefined || parts.length === 0) return mutate(bytes, next);
  const at = next(parts.length);
  const chosen = parts[at];
  if (chosen === undefined) return bytes;
  const replace = (...by: readonly Buffer[]): Buffer =>
    Buffer.concat([...parts.slice(0, at), ...by, ...parts.slice(at + 1)]);
  switch (next(16)) {
    case 0:
      return replace();
    case 1:
      return replace(chosen, chosen);
    case 2: {
      const other = next(parts.length);
      return Buffer.concat(parts.map((part, i) => (i === at ? (parts[other] ?? part) : i === other ? chosen : part)));
    }
    case 3:
      return replace(pick(donor, next));
    case 4:
      return replace(chosen, pick(donor, next));
    case 5:
      return replace(repeated(chosen, next));
    default:
      return replace(inside(chosen, donor, next));
  }
}

function inside(element: Buffer, donor: Buffer, next: Random): Buffer {
  const [parsed] = split(element) === undefined ? [] : children(element);
  if (parsed === undefined) return mutate(element, next);
  const { tag, value } = parsed;
  const offset = tag === Tag.BIT_STRING ? 1 : 0;
  const holds = tag === Tag.OCTET_STRING || (tag === Tag.BIT_STRING && value[0] === 0);
  const nested = (tag & CONSTRUCTED) !== 0 || (holds && split(value.subarray(offset)) !== undefined);
  if (nested && next(10) > 0)
    return tlv(tag, value.subarray(0, offset), mutateTree(value.subarray(offset), donor, next));
  switch (next(8)) {
    case 0:
      return tlv(pickOf(TAGS, next) ?? tag, value);
    case 1:
      return tlv(tag, value.subarray(0, next(value.length + 1)));
    case 2:
      return nested ? Buffer.concat([Buffer.of(tag | CONSTRUCTED, 0x80), value, Buffer.alloc(2)]) : tlv(tag);
    case 3:
      return tlv(tag, Buffer.alloc(next(64), next(256)));
    case 4:
      return wrapped(element, tag, next);
    case 5:
    case 6:
      return edge(element, tag, next);
    default:
      return tlv(tag, mutate(value, next));
  }
}

/** Another content that is special for this type; an OBJECT IDENTIFIER becomes one that is known. */
function edge(element: Buffer, tag: number, next: Random): Buffer {
  if (tag === Tag.OID && next(8) > 0) return pickOf(OIDS, next) ?? element;
  return tlv(tag, pickOf(EDGES.get(tag) ?? TEXTS, next) ?? Buffer.alloc(0));
}

function repeated(element: Buffer, next: Random): Buffer {
  const times = Math.min(pickOf(MANY, next) ?? 2, Math.ceil(MAX_GROWTH / element.length));
  return Buffer.concat(Array.from({ length: times }, () => element));
}

/** In one other element, or in many. */
function wrapped(element: Buffer, tag: number, next: Random): Buffer {
  const around = next(2) === 0 ? (pickOf(TAGS, next) ?? tag) : tag | CONSTRUCTED;
  let out = element;
  for (let depth = next(4) === 0 ? (pickOf(MANY, next) ?? 1) : 1; depth > 0; depth--) out = tlv(around, out);
  return out.subarray(0, MAX_GROWTH);
}

/** A random element of an input. */
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
