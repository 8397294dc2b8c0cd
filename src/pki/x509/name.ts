/** Distinguished names: DER (RFC 5280 §4.1.2.4) and the text form of RFC 4514. */
import {
  CHARACTER_STRINGS,
  DerError,
  Tag,
  characterOutside,
  children,
  oid,
  parseDer,
  readFields,
  readString,
  sequence,
  setOf,
  tlv,
  unlessMalformed,
  type DerElement,
} from '../der/der.ts';
import { InputError } from '../input-error.ts';
import { attributeName, attributeType, knownAttributeType } from './attribute-types.ts';

export interface AttributeTypeAndValue {
  readonly type: string;
  /** Identifier octet of the value, such as {@link Tag.UTF8_STRING}; 0 for a string that cannot be decoded. */
  readonly tag: number;
  /** The decoded string; `#` and hex of the DER for other values. */
  readonly text: string;
  /** DER of the value, including the header. */
  readonly value: Buffer;
}

/** A distinguished name in the encoded order (most general RDN first). */
export interface Name {
  readonly der: Buffer;
  readonly rdns: readonly (readonly AttributeTypeAndValue[])[];
}

export interface AttributeInput {
  readonly type: string;
  readonly text: string;
  readonly tag?: number;
  /** DER of a value that is not a character string. */
  readonly value?: Buffer;
}

export const isCharacterString = (tag: number): boolean => CHARACTER_STRINGS.has(tag);

/**
 * Names by their DER as Latin-1. An enrollment reads the same few names many times: in the request, the client's
 * certificate, its CA's, and the new certificate.
 */
const read = new Map<string, Name>();
const REMEMBERED = 1000;
const REMEMBERED_OCTETS = 500;

/** The name in `der`, which may be an earlier object. */
export function parseName(der: Buffer): Name {
  if (der.length > REMEMBERED_OCTETS) return readName(der);
  const key = der.toString('latin1');
  const known = read.get(key);
  if (known !== undefined) return known;
  // A copy, because `der` is a part of a whole message.
  const name = readName(Buffer.from(der));
  const [oldest] = read.size < REMEMBERED ? [] : read.keys();
  if (oldest !== undefined) read.delete(oldest);
  read.set(key, name);
  return name;
}

function readName(der: Buffer): Name {
  const rdns = children(parseDer(der, Tag.SEQUENCE, 'Name').value, 'RelativeDistinguishedName').map((rdn) => {
    if (rdn.tag !== Tag.SET) throw new DerError('RelativeDistinguishedName: unexpected tag');
    const attributes = children(rdn.value, 'AttributeTypeAndValue').map(parseAttribute);
    if (attributes.length === 0) throw new DerError('RelativeDistinguishedName: empty');
    return attributes;
  });
  return { der, rdns };
}

function parseAttribute(element: DerElement): AttributeTypeAndValue {
  return readFields(element, 'AttributeTypeAndValue', (fields) => {
    const type = fields.oid('type');
    const value = fields.next(undefined, 'value');
    const isString = isCharacterString(value.tag);
    const text = isString ? unlessMalformed(() => readString(value), undefined) : undefined;
    const tag = isString && text === undefined ? 0 : value.tag;
    return { type, tag, text: text ?? `#${value.raw.toString('hex')}`, value: value.raw };
  });
}

const encodeAttribute = (attribute: { type: string; value: Buffer }): Buffer =>
  sequence(oid(attribute.type), attribute.value);

/**
 * Encodes a name, most general RDN first. An attribute without `tag` gets its usual string type.
 * @throws InputError for a text that does not fit its string type, or an invalid type
 */
export function buildName(rdns: readonly (readonly AttributeInput[])[]): Name {
  return fromRdns(
    rdns.map((rdn) =>
      rdn.map(({ type, text, tag = usualTag(type), value }) => ({
        ...{ type, tag, text },
        value: isCharacterString(tag) || value === undefined ? encodeText(type, text, tag) : value,
      })),
    ),
  );
}

function fromRdns(rdns: readonly (readonly AttributeTypeAndValue[])[]): Name {
  if (rdns.some((rdn) => rdn.length === 0)) throw new InputError('a relative distinguished name is empty');
  return { der: sequence(...rdns.map((rdn) => setOf(...rdn.map(encodeAttribute)))), rdns };
}

/** UTF8String, except for types with a fixed string type (RFC 5280 appendix A). */
const usualTag = (type: string): number => knownAttributeType(type)?.string ?? Tag.UTF8_STRING;

function encodeText(type: string, text: string, tag: number): Buffer {
  const outside = text.isWellFormed() ? characterOutside(tag, text) : 'text that is not Unicode';
  if (outside !== undefined) throw new InputError(`${attributeName(type)} cannot hold ${outside}`);
  return tlv(tag, tag === Tag.BMP_STRING ? Buffer.from(text, 'utf16le').swap16() : Buffer.from(text, 'utf8'));
}

export const EMPTY_NAME: Name = { der: sequence(), rdns: [] };

const ISSUED: ReadonlySet<number> = new Set([Tag.UTF8_STRING, Tag.PRINTABLE_STRING]);
/** OpenSSL cannot read a name with a VisibleString. */
const REPLACED: ReadonlySet<number> = new Set([
  ...[Tag.TELETEX_STRING, Tag.BMP_STRING, Tag.UNIVERSAL_STRING, Tag.VISIBLE_STRING],
]);

/** The string type of an attribute in a new certificate (RFC 5280 §4.1.2.4, appendix A). */
function issuedTag({ type, tag, text }: AttributeTypeAndValue): number {
  const known = knownAttributeType(type);
  if (!isCharacterString(tag)) return tag;
  if (known?.string !== undefined) return known.string;
  const isKept = known === undefined ? !REPLACED.has(tag) : ISSUED.has(tag);
  return isKept && characterOutside(tag, text) === undefined ? tag : Tag.UTF8_STRING;
}

/**
 * A name for a new certificate: the string types that RFC 5280 and X.520 demand, and sorted multi-valued RDNs. Returns the
 * same object if the name is one already.
 * @throws InputError for a text that its type cannot hold
 */
export function issuedName(name: Name): Name {
  const isIssued = ([attribute, ...more]: Name['rdns'][number]): boolean =>
    attribute !== undefined && more.length === 0 && issuedTag(attribute) === attribute.tag;
  if (name.rdns.every(isIssued)) return name;
  const built = buildName(
    name.rdns.map((rdn) => rdn.map((attribute) => ({ ...attribute, tag: issuedTag(attribute) }))),
  );
  return built.der.equals(name.der) ? name : parseName(built.der);
}

const isEmpty = ({ text }: AttributeTypeAndValue): boolean => text === '';

/** The type of the first attribute without a value, which RFC 5280 appendix A forbids. */
export const emptyAttribute = (name: Name): string | undefined => name.rdns.flat().find(isEmpty)?.type;

/** The name without its empty attributes, which say nothing. */
export function withoutEmpty(name: Name): Name {
  return emptyAttribute(name) === undefined
    ? name
    : fromRdns(
        name.rdns.map((rdn) => rdn.filter((attribute) => !isEmpty(attribute))).filter(({ length }) => length > 0),
      );
}

/** The texts of all attributes of one type, in encoded order. */
export function attributeValues(name: Name, type: string): string[] {
  return name.rdns.flatMap((rdn) =>
    rdn.filter((attribute) => attribute.type === type).map((attribute) => attribute.text),
  );
}

/**
 * Whether two names are identical, for comparing a request with a certificate. RDNs are ordered, the attributes of an
 * RDN are a set, values compare by decoded text, empty ones do not count. Unlike `namesMatch`, it does not fold case (RFC
 * 5280 §7.1).
 */
export function namesEqual(a: Name, b: Name): boolean {
  return a.der.equals(b.der) || comparableName(a) === comparableName(b);
}

/** A lookup key that is equal for names that are {@link namesEqual}. */
export function comparableName(name: Name): string {
  return JSON.stringify(withoutEmpty(name).rdns.map((rdn) => rdn.map(comparable).sort()));
}

const comparable = ({ type, tag, text }: AttributeTypeAndValue): string =>
  `${type}${isCharacterString(tag) ? '=' : '#'}${text}`;

/** Caches a text per name: those of CAs are compared in each request, and the same ones are recorded and logged. */
export function perName(make: (name: Name) => string): (name: Name) => string {
  const known = new WeakMap<Name, string>();
  return (name) => {
    let text = known.get(name);
    if (text === undefined) known.set(name, (text = make(name)));
    return text;
  };
}

// --- RFC 5280 §7.1, with case and white space folded, as in OpenSSL ------------------------------------------------

/**
 * One text per RDN, equal for RDNs that match. Ignores string types and ASCII case, collapses inner white space, trims
 * outer white space, and treats the attributes of an RDN as a set. Separators are unambiguous.
 */
export function foldedRdns(name: Name): string[] {
  return name.rdns.map((rdn) => JSON.stringify(rdn.map(foldedAttribute).sort()));
}

/** The folded form of a whole name, as a map key. */
export const foldedName = perName((name) => JSON.stringify(foldedRdns(name)));

/** Whether two names match per RFC 5280 §7.1, as in path validation. */
export function namesMatch(a: Name, b: Name): boolean {
  return a.der.equals(b.der) || foldedName(a) === foldedName(b);
}

/** Printable ASCII words with single spaces: nothing to collapse, and only ASCII letters to fold. */
const PLAIN = /^[!-~]+(?: [!-~]+)*$/;

function foldedAttribute({ type, tag, text }: AttributeTypeAndValue): string {
  if (!isCharacterString(tag)) return `${type}${text}`;
  if (PLAIN.test(text)) return `${type}=${text.toLowerCase()}`;
  const value = text
    .replace(/[A-Z]+/g, (letters) => letters.toLowerCase())
    .replace(/[\t\n\v\f\r ]+/g, ' ')
    .replace(/^ | $/g, '');
  return `${type}=${value}`;
}

// --- text ----------------------------------------------------------------------------------------------------------

/** RFC 4514 §2.4. Also escapes control characters as hex, so that the text is safe in a log line. */
export function escapeAttributeValue(text: string): string {
  const escaped = text
    .replace(/["+,;<>\\]/g, '\\$&')
    .replace(/[\x00-\x1f\x7f-\x9f\u2028\u2029]/g, hexEscape)
    .replace(/^[ #]/, '\\$&');
  return text.length > 1 && text.endsWith(' ') ? `${escaped.slice(0, -1)}\\ ` : escaped;
}

const hexEscape = (character: string): string =>
  Buffer.from(character, 'utf8')
    .toString('hex')
    .replace(/../g, (hex) => `\\${hex}`);

/** RFC 4514: most specific RDN first. Types without a short name are `dotted=#hex`. */
export const formatName = perName(({ rdns }) =>
  rdns
    .map((rdn) => rdn.map(formatAttribute).join('+'))
    .reverse()
    .join(','),
);

function formatAttribute({ type, tag, text, value }: AttributeTypeAndValue): string {
  const short = knownAttributeType(type)?.name;
  return short !== undefined && isCharacterString(tag)
    ? `${short}=${escapeAttributeValue(text)}`
    : `${short ?? type}=#${value.toString('hex')}`;
}

/** Parses RFC 4514 text; tolerates spaces around separators. @throws InputError */
export function parseDistinguishedName(text: string): Name {
  if (!text.isWellFormed()) throw new InputError('not Unicode text');
  if (trimmed(text) === '') return EMPTY_NAME;
  const rdns = split(text, ',').map((rdn) => split(rdn, '+').map(parseTextAttribute));
  return fromRdns(rdns.reverse());
}

/** Splits at unescaped separators. */
function split(text: string, separator: string): string[] {
  const parts: string[] = [];
  let start = 0;
  for (let i = 0; i < text.length; i++) {
    if (text[i] === '\\') i++;
    else if (text[i] === separator) {
      parts.push(text.slice(start, i));
      start = i + 1;
    }
  }
  return [...parts, text.slice(start)];
}

function parseTextAttribute(text: string): AttributeTypeAndValue {
  const equals = text.indexOf('=');
  if (equals < 0) throw new InputError(`"${trimmed(text)}" is not of the form type=value`);
  const typeName = trimmed(text.slice(0, equals));
  const type = attributeType(typeName);
  if (type === undefined) throw new InputError(`unknown attribute type "${typeName}"`);
  const raw = trimUnescaped(text.slice(equals + 1));
  if (raw.startsWith('#')) return parseHexValue(type, raw.slice(1));
  const value = unescapeValue(raw, typeName);
  if (value === '') throw new InputError(`${typeName} has an empty value`);
  const tag = usualTag(type);
  return { type, tag, text: value, value: encodeText(type, value, tag) };
}

function parseHexValue(type: string, hex: string): AttributeTypeAndValue {
  if (!/^([0-9a-f]{2})+$/i.test(hex)) throw new InputError(`"#${hex}" is not hex`);
  try {
    return parseAttribute(parseDer(sequence(oid(type), Buffer.from(hex, 'hex'))));
  } catch (error) {
    if (error instanceof DerError) throw new InputError(`"#${hex}" is not the DER of a value: ${error.message}`);
    throw error;
  }
}

/** White space around separators; other spaces, such as no-break spaces, belong to the value. */
const trimmedStart = (text: string): string => text.replace(/^[ \t\r\n]+/, '');
/** A regular expression would restart at each inner space (quadratic time). */
const trimmedEnd = (text: string): string => text.slice(0, lengthWithout(' \t\r\n', text));
const trimmed = (text: string): string => trimmedEnd(trimmedStart(text));

/** The length of a text without these trailing characters. */
function lengthWithout(characters: string, text: string): number {
  let { length } = text;
  while (length > 0 && characters.includes(text.charAt(length - 1))) length--;
  return length;
}

function trimUnescaped(text: string): string {
  const whole = trimmedStart(text);
  const end = trimmedEnd(whole);
  // "\ " at the end is an escaped space and belongs to the value.
  const backslashes = end.length - lengthWithout('\\', end);
  return backslashes % 2 === 1 && end.length < whole.length ? `${end} ` : end;
}

function unescapeValue(raw: string, typeName: string): string {
  const bytes: Buffer[] = [];
  for (let i = 0; i < raw.length; i++) {
    const character = raw.charAt(i);
    if (character !== '\\') {
      if ('"+,;<>\0'.includes(character))
        throw new InputError(`${typeName}: "${character}" must be escaped with a backslash`);
      const whole = String.fromCodePoint(raw.codePointAt(i) ?? 0);
      i += whole.length - 1;
      bytes.push(Buffer.from(whole, 'utf8'));
      continue;
    }
    const hex = /^[0-9a-f]{2}/i.exec(raw.slice(i + 1))?.[0];
    const special = raw.charAt(i + 1);
    if (hex !== undefined) bytes.push(Buffer.from(hex, 'hex'));
    else if (special !== '' && ' "#+,;<=>\\'.includes(special)) bytes.push(Buffer.from(special));
    else throw new InputError(`${typeName}: a backslash must be followed by two hex digits or a special character`);
    i += hex === undefined ? 1 : 2;
  }
  try {
    return readString(parseDer(tlv(Tag.UTF8_STRING, ...bytes)));
  } catch {
    throw new InputError(`${typeName}: not UTF-8`);
  }
}
