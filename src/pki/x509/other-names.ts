/** otherNames of a subjectAltName (RFC 5280 §4.2.1.6) as text: a user principal name, RFC 4043, RFC 4108, RFC 4985. */
import {
  contextConstructed,
  type DerElement,
  DerError,
  DerReader,
  ia5String,
  octetString,
  oid,
  parseDer,
  readOid,
  readString,
  sequence,
  Tag,
  tlv,
  unlessMalformed,
  utf8String,
} from '../der/der.ts';
import { requireDer } from '../der/element.ts';
import { OID } from '../der/oids.ts';
import { InputError } from '../input-error.ts';

export type OtherNameKind = 'upn' | 'hardware_module' | 'permanent_identifier' | 'srv';

interface OtherNameType {
  readonly type: string;
  /** @throws DerError for a value of another type */
  readonly read: (value: DerElement) => string;
  /** @throws InputError */
  readonly encode: (text: string) => Buffer;
}

function stringOf(value: DerElement, ...tags: readonly number[]): string {
  if (!tags.includes(value.tag)) throw new DerError('OtherName.value: unexpected tag');
  return readString(value);
}

/** The parts before and after the first colon. */
export function splitAtColon(text: string): readonly [string, string] {
  const colon = text.indexOf(':');
  if (colon < 0) throw new InputError(`"${text.slice(0, 64)}" is not an OID, a colon and a value`);
  return [text.slice(0, colon), text.slice(colon + 1)];
}

function octetsOf(hex: string): Buffer {
  if (!/^([0-9a-f]{2})*$/.test(hex)) throw new InputError(`"${hex.slice(0, 64)}" is not hex`);
  return Buffer.from(hex, 'hex');
}

const OTHER_NAMES: Readonly<Record<OtherNameKind, OtherNameType>> = {
  upn: {
    type: OID.userPrincipalName,
    read: (value) => stringOf(value, Tag.UTF8_STRING, Tag.IA5_STRING, Tag.PRINTABLE_STRING),
    encode: utf8String,
  },
  /** `OID:HEX`: hwType and hwSerialNum. */
  hardware_module: {
    type: OID.hardwareModuleName,
    read: ({ raw }) => {
      const fields = DerReader.of(raw, 'HardwareModuleName');
      const text = `${fields.oid('hwType')}:${fields.octets('hwSerialNum').toString('hex')}`;
      fields.end();
      return text;
    },
    encode: (text) => {
      const [type, serial] = splitAtColon(text);
      return sequence(oid(type), octetString(octetsOf(serial)));
    },
  },
  /** `OID:VALUE`: assigner and identifierValue, each empty if absent. */
  permanent_identifier: {
    type: OID.permanentIdentifier,
    read: ({ raw }) => {
      const fields = DerReader.of(raw, 'PermanentIdentifier');
      const value = fields.optional(Tag.UTF8_STRING, 'identifierValue');
      const assigner = fields.optional(Tag.OID, 'assigner');
      fields.end();
      return `${assigner === undefined ? '' : readOid(assigner)}:${value === undefined ? '' : readString(value)}`;
    },
    encode: (text) => {
      const [assigner, value] = splitAtColon(text);
      return sequence(...(value === '' ? [] : [utf8String(value)]), ...(assigner === '' ? [] : [oid(assigner)]));
    },
  },
  srv: {
    type: OID.dnsSrv,
    read: (value) => stringOf(value, Tag.IA5_STRING),
    encode: ia5String,
  },
};

const KINDS = Object.keys(OTHER_NAMES) as readonly OtherNameKind[];

/** The kind with this OID, if it has one. */
export const otherNameKind = (type: string): OtherNameKind | undefined =>
  KINDS.find((kind) => OTHER_NAMES[kind].type === type);

/**
 * @param element `[0]` OtherName
 * @returns `OID:HEX` for an unknown type, and for a known one whose value has another type
 * @throws DerError
 */
export function readOtherName(element: DerElement): {
  readonly kind: OtherNameKind | 'other_name';
  readonly value: string;
} {
  const fields = new DerReader(element.value, 'OtherName');
  const type = fields.oid('type-id');
  const value = parseDer(fields.next(contextConstructed(0), 'value').value, undefined, 'OtherName.value');
  fields.end();
  const kind = otherNameKind(type);
  const text = kind && unlessMalformed(() => OTHER_NAMES[kind].read(value), undefined);
  if (kind !== undefined && text !== undefined) return { kind, value: text };
  return { kind: 'other_name', value: `${type}:${value.raw.toString('hex')}` };
}

/** `[0]` OtherName. @throws InputError for a text that is not of the kind */
export function encodeOtherName(kind: OtherNameKind | 'other_name', text: string): Buffer {
  const [type, value] = kind === 'other_name' ? splitAtColon(text) : [OTHER_NAMES[kind].type, ''];
  const der = kind === 'other_name' ? octetsOf(value) : OTHER_NAMES[kind].encode(text);
  if (kind === 'other_name') requireDer(der, 'the value');
  return tlv(contextConstructed(0), oid(type), tlv(contextConstructed(0), der));
}
