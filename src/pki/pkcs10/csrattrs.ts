/** CsrAttrs (RFC 7030 §4.5.2, RFC 8951 §4) and the CertificationRequestInfoTemplate of RFC 9908. */
import { readAttribute } from '../cms/cms.ts';
import {
  bitString,
  boolean,
  children,
  contextConstructed,
  DerError,
  DerReader,
  integer,
  NULL,
  octetString,
  oid,
  parseDer,
  readAlgorithm,
  readBitStringOctets,
  readFields,
  readInteger,
  readOid,
  readString,
  sequence,
  setOf,
  Tag,
  tlv,
} from '../der/der.ts';
import { ML_DSA } from '../x509/key-pair.ts';
import { buildName } from '../x509/name.ts';
import { OID } from '../der/oids.ts';
import { InputError } from '../input-error.ts';

/** AttrOrOID: an OID, or an attribute with its values (DER). */
export interface AttrOrOid {
  readonly oid: string;
  /** undefined: an OID alone. Empty: an attribute without further requirements (RFC 9908 §3.2, of a key type). */
  readonly values?: readonly Buffer[];
}

/** DER of CsrAttrs, in the order given. */
export function encodeCsrAttrs(items: readonly AttrOrOid[]): Buffer {
  return sequence(
    ...items.map((item) =>
      item.values === undefined ? oid(item.oid) : sequence(oid(item.oid), setOf(...item.values)),
    ),
  );
}

export function parseCsrAttrs(der: Buffer): AttrOrOid[] {
  return children(parseDer(der, Tag.SEQUENCE, 'CsrAttrs').value, 'AttrOrOID').map((element) => {
    if (element.tag === Tag.OID) return { oid: readOid(element) };
    return readAttribute(element);
  });
}

const CURVES: Readonly<Record<string, string>> = {
  'ec:P-256': OID.secp256r1,
  'ec:P-384': OID.secp384r1,
  'ec:P-521': OID.secp521r1,
};

/** Key types without parameters. */
const ALONE: Readonly<Record<string, string>> = {
  ed25519: OID.ed25519,
  ed448: OID.ed448,
  ...Object.fromEntries(ML_DSA.map(({ keyType, oid: dotted }) => [keyType, dotted])),
};

/** The attribute that requests a key type: the curve of an EC key, the size of an RSA key (RFC 9908 §3.2). */
export function keyTypeAttribute(keyType: string): AttrOrOid {
  const curve = CURVES[keyType];
  if (curve !== undefined) return { oid: OID.ecPublicKey, values: [oid(curve)] };
  const alone = ALONE[keyType];
  if (alone !== undefined) return { oid: alone, values: [] };
  return { oid: OID.rsaEncryption, values: [integer(rsaBits(keyType))] };
}

function rsaBits(keyType: string): number {
  const bits = /^rsa:(\d+)$/.exec(keyType)?.[1];
  if (bits === undefined) throw new InputError(`not a key type: ${keyType}`);
  return Number(bits);
}

/**
 * The key type that an attribute requests, inverse of {@link keyTypeAttribute}; undefined if it requests no known type.
 * @throws DerError
 */
export function keyTypeOf({ oid: type, values = [] }: AttrOrOid): string | undefined {
  const alone = keyTypeIn(ALONE, type);
  if (alone !== undefined) return alone;
  const [value] = values;
  if (value === undefined) return undefined;
  if (type === OID.ecPublicKey) return keyTypeIn(CURVES, readOid(parseDer(value, Tag.OID, 'namedCurve')));
  if (type !== OID.rsaEncryption) return undefined;
  return `rsa:${readInteger(parseDer(value, Tag.INTEGER, 'modulus length'))}`;
}

const keyTypeIn = (oids: Readonly<Record<string, string>>, wanted: string): string | undefined =>
  Object.entries(oids).find(([, dotted]) => dotted === wanted)?.[0];

/** An attribute of an RDN; the client supplies a missing text. */
export interface AttributeTemplate {
  readonly type: string;
  readonly text?: string;
}

/** ExtensionTemplate; the client supplies a missing value. */
export interface ExtensionTemplate {
  readonly oid: string;
  readonly critical: boolean;
  /** DER of the extension's value. */
  readonly value?: Buffer;
}

/** The content of a CertificationRequestInfoTemplate; an absent field makes no requirement. */
export interface RequestTemplate {
  readonly subject: readonly (readonly AttributeTemplate[])[];
  readonly keyType: string | undefined;
  readonly extensions: readonly ExtensionTemplate[];
}

/** DER of CertificationRequestInfoTemplate (RFC 9908 §3.4): a request without the parts that the client supplies. */
export function encodeRequestTemplate({ subject, keyType, extensions }: RequestTemplate): Buffer {
  const attributes =
    extensions.length === 0
      ? []
      : [sequence(oid(OID.extensionReqTemplate), setOf(sequence(...extensions.map(encodeExtensionTemplate))))];
  return sequence(
    integer(0),
    ...(subject.length === 0 ? [] : [sequence(...subject.map((rdn) => setOf(...rdn.map(encodeAttributeTemplate))))]),
    ...(keyType === undefined ? [] : [tlv(contextConstructed(0), ...keyTemplate(keyType))]),
    tlv(contextConstructed(1), ...attributes),
  );
}

function encodeAttributeTemplate({ type, text }: AttributeTemplate): Buffer {
  if (text === undefined) return sequence(oid(type));
  // buildName chooses the string type of each attribute.
  const [rdn] = children(parseDer(buildName([[{ type, text }]]).der).value);
  const [attribute] = rdn === undefined ? [] : children(rdn.value);
  if (attribute === undefined) throw new InputError(`no attribute for ${type}`);
  return attribute.raw;
}

/** The fields of SubjectPublicKeyInfoTemplate; RSA specifies its size by a placeholder key of that length. */
function keyTemplate(keyType: string): Buffer[] {
  const { oid: type, values = [] } = keyTypeAttribute(keyType);
  if (type !== OID.rsaEncryption) return [sequence(oid(type), ...values)];
  const modulus = Buffer.alloc(rsaBits(keyType) / 8);
  modulus[0] = 0x80;
  modulus[modulus.length - 1] = 1;
  return [sequence(oid(OID.rsaEncryption), NULL), bitString(sequence(integer(modulus), integer(65537)))];
}

function encodeExtensionTemplate({ oid: type, critical, value }: ExtensionTemplate): Buffer {
  return sequence(
    oid(type),
    ...(critical ? [boolean(true)] : []),
    ...(value === undefined ? [] : [octetString(value)]),
  );
}

/** Parses a template for a client. @param der CertificationRequestInfoTemplate @throws DerError */
export function parseRequestTemplate(der: Buffer): RequestTemplate {
  const reader = DerReader.of(der, 'CertificationRequestInfoTemplate');
  if (reader.integer('version') !== 0) throw new DerError('CertificationRequestInfoTemplate.version: not v1');
  const subject = reader.optional(Tag.SEQUENCE, 'subject');
  const key = reader.optional(contextConstructed(0), 'subjectPKInfo');
  const attributes = reader.next(contextConstructed(1), 'attributes');
  reader.end();
  return {
    subject:
      subject === undefined ? [] : children(subject.value).map((rdn) => children(rdn.value).map(readAttributeTemplate)),
    keyType: key === undefined ? undefined : readKeyTemplate(new DerReader(key.value, 'subjectPKInfo')),
    extensions: children(attributes.value).flatMap(({ raw }) => readExtensionTemplates(raw)),
  };
}

function readAttributeTemplate({ raw }: { readonly raw: Buffer }): AttributeTemplate {
  const reader = DerReader.of(raw, 'SingleAttributeTemplate');
  const type = reader.oid('type');
  if (reader.done) return { type };
  const text = readString(reader.next(undefined, 'value'));
  reader.end();
  return { type, text };
}

/** undefined for an unknown key type. */
function readKeyTemplate(reader: DerReader): string | undefined {
  const { oid: type, parameters } = readAlgorithm(reader.next(Tag.SEQUENCE, 'algorithm'));
  const placeholder = reader.optional(Tag.BIT_STRING, 'subjectPublicKey');
  if (type !== OID.rsaEncryption || placeholder === undefined)
    return keyTypeOf({ oid: type, values: parameters === undefined ? [] : [parameters.raw] });
  const modulus = DerReader.of(readBitStringOctets(placeholder), 'RSAPublicKey').next(Tag.INTEGER, 'modulus').value;
  return `rsa:${(modulus[0] === 0 ? modulus.length - 1 : modulus.length) * 8}`;
}

/** Reads an extensionReqTemplate, whose extensions may lack a value, or an extensionReq, whose extensions have one. */
function readExtensionTemplates(der: Buffer): ExtensionTemplate[] {
  const { oid: type, values } = readAttribute(parseDer(der));
  if (type !== OID.extensionReqTemplate && type !== OID.extensionRequest) return [];
  return values.flatMap((value) => children(parseDer(value).value)).map(({ raw }) => readExtensionTemplate(raw));
}

function readExtensionTemplate(der: Buffer): ExtensionTemplate {
  return readFields(parseDer(der), 'ExtensionTemplate', (fields) => ({
    oid: fields.oid('extnID'),
    critical: fields.flag(Tag.BOOLEAN, 'critical'),
    ...(!fields.done && { value: fields.octets('extnValue') }),
  }));
}
