/**
 * CMC controls (RFC 5272 §6, RFC 6402 §2): their ASN.1 types, and conversion between tagged attributes and typed values.
 */
import { DerError, parseDer, Tag, integerBytes } from '../der/der.ts';
import { OID } from '../der/oids.ts';
import {
  BIG_INTEGER,
  OCTETS,
  UTF8,
  ALGORITHM,
  named,
  optional,
  raw,
  record,
  syntax,
  TIME,
  type ValueOf,
} from '../der/syntax.ts';
import { BODY_PART_ID, BODY_PART_LIST, type BodyPartID, BODY_PART_REFERENCES } from './body-part.ts';
import { CmcError } from './cmc-error.ts';
import type { TaggedAttribute } from './pki-data.ts';
import { STATUS_INFO } from './status-info.ts';
import { serialHex, serialInteger } from '../x509/certificate.ts';
import { CRL_REASONS } from '../x509/crl.ts';
import { encodeGeneralName, parseGeneralName } from '../x509/general-name.ts';
import { parseName } from '../x509/name.ts';

const SERIAL_NUMBER = syntax(Tag.INTEGER, (element, what) => serialHex(integerBytes(element, what)), serialInteger);
const NAME = syntax(
  Tag.SEQUENCE,
  (element) => parseName(element.raw),
  ({ der }) => der,
);
const GENERAL_NAME = syntax(undefined, (element) => parseGeneralName(element), encodeGeneralName);
const isContextTag = (tag: number): boolean => (tag & 0xc0) === 0x80;

/** IdentityProofV2 and PopLinkWitnessV2 (same syntax). */
export const KEYED_WITNESS = record('witness', {
  /** hashAlgID or keyGenAlgorithm: derives the MAC key from the shared secret. */
  keyAlgorithm: ALGORITHM,
  macAlgorithm: ALGORITHM,
  witness: OCTETS,
});
export type KeyedWitness = ValueOf<typeof KEYED_WITNESS>;

/** CMCCertId (§6.14). Dogtag's CMCRequest wraps the issuer in an additional SEQUENCE, which is removed. */
const CERTIFICATE_ID = record('CMCCertId', {
  issuer: { ...NAME, read: ({ value, raw: der }) => parseName(value[0] === Tag.SEQUENCE ? value : der) },
  serialNumber: SERIAL_NUMBER,
} satisfies { issuer: typeof NAME; serialNumber: typeof SERIAL_NUMBER });
export type CertificateId = ValueOf<typeof CERTIFICATE_ID>;

const REVOKE_REQUEST = record('RevokeRequest', {
  issuer: NAME,
  serialNumber: SERIAL_NUMBER,
  reason: named(Tag.ENUMERATED, CRL_REASONS),
  invalidityDate: optional(TIME),
  sharedSecret: optional(OCTETS),
  comment: optional(UTF8),
});
export type RevokeRequest = ValueOf<typeof REVOKE_REQUEST>;

const GET_CERT = record('GetCert', { issuerName: GENERAL_NAME, serialNumber: SERIAL_NUMBER });
export type GetCert = ValueOf<typeof GET_CERT>;

const GET_CRL = record('GetCRL', {
  issuerName: NAME,
  crlName: optional(GENERAL_NAME, isContextTag),
  time: optional(TIME),
  reasons: optional(raw(Tag.BIT_STRING)),
});
export type GetCrl = ValueOf<typeof GET_CRL>;

/** ControlsProcessed (§6.19) wraps the references in a SEQUENCE. */
const PROCESSED = record('ControlsProcessed', { bodyList: BODY_PART_REFERENCES });
const CONTROLS_PROCESSED = syntax(
  Tag.SEQUENCE,
  (element) => PROCESSED.read(element).bodyList,
  (bodyList) => PROCESSED.encode({ bodyList }),
);

// --- between RAs and CAs -----------------------------------------------------------------------------------------

const LRA_POP_WITNESS = record('LraPopWitness', {
  /** 0: the requests are in this message. */
  pkiDataBodyid: BODY_PART_ID,
  bodyIds: BODY_PART_LIST,
});

// --- all controls --------------------------------------------------------------------------------------------------

/** The controls of RFC 5272 and RFC 6402 that Estuary reads or writes, by their names without `id-cmc-`. */
const SYNTAX = {
  statusInfo: STATUS_INFO,
  identification: UTF8,
  identityProof: OCTETS,
  dataReturn: OCTETS,
  transactionId: BIG_INTEGER,
  senderNonce: OCTETS,
  recipientNonce: OCTETS,
  lraPOPWitness: LRA_POP_WITNESS,
  getCert: GET_CERT,
  getCRL: GET_CRL,
  revokeRequest: REVOKE_REQUEST,
  regInfo: OCTETS,
  queryPending: OCTETS,
  popLinkRandom: OCTETS,
  confirmCertAcceptance: CERTIFICATE_ID,
  statusInfoV2: STATUS_INFO,
  batchRequests: BODY_PART_LIST,
  batchResponses: BODY_PART_LIST,
  controlProcessed: CONTROLS_PROCESSED,
  identityProofV2: KEYED_WITNESS,
  raIdentityWitness: BODY_PART_LIST,
} as const;

export type ControlName = keyof typeof SYNTAX;

export type ControlValue<N extends ControlName> = ReturnType<(typeof SYNTAX)[N]['read']>;

export type KnownControl = {
  [N in ControlName]: { readonly name: N; readonly bodyPartID: BodyPartID; readonly value: ControlValue<N> };
}[ControlName];

/** A control that Estuary does not support. */
interface UnknownControl {
  readonly name: 'unknown';
  readonly bodyPartID: BodyPartID;
  /** attrType (dotted OID). */
  readonly type: string;
  /** attrValues: DER of each. */
  readonly values: readonly Buffer[];
}

export type CmcControl = KnownControl | UnknownControl;

const NAMES: ReadonlyMap<string, ControlName> = new Map(
  Object.keys(SYNTAX)
    .filter(isControlName)
    .map((name) => [OID[name], name]),
);

export function isControlName(name: string): name is ControlName {
  return Object.hasOwn(SYNTAX, name);
}

/**
 * Reads a control's value. Every supported control has exactly one.
 * @throws CmcError `control-malformed`, naming the control's body part
 */
export function parseControl(attribute: TaggedAttribute): CmcControl {
  const { bodyPartID, type, values } = attribute;
  const name = NAMES.get(type);
  if (name === undefined) return { name: 'unknown', bodyPartID, type, values };
  const [value, ...more] = values;
  if (value === undefined || more.length > 0) throw malformed(bodyPartID, name, 'not exactly one value');
  try {
    const control: { name: ControlName; bodyPartID: BodyPartID; value: unknown } = {
      name,
      bodyPartID,
      value: SYNTAX[name].read(parseDer(value, undefined, name), name),
    };
    // SYNTAX pairs each name with its value's type; TypeScript cannot follow that through a lookup.
    return control as KnownControl;
  } catch (error) {
    throw error instanceof DerError ? malformed(bodyPartID, name, error.message, error) : error;
  }
}

function malformed(bodyPartID: BodyPartID, name: ControlName, reason: string, cause?: DerError): CmcError {
  return new CmcError(
    'control-malformed',
    [bodyPartID],
    `The control ${name} is not valid: ${reason}.`,
    'badRequest',
    cause,
  );
}

export function buildControl<N extends ControlName>(
  bodyPartID: BodyPartID,
  name: N,
  value: ControlValue<N>,
): TaggedAttribute {
  return { bodyPartID, type: OID[name], values: [encodeControlValue(name, value)] };
}

/** DER of a control's value. */
export function encodeControlValue<N extends ControlName>(name: N, value: ControlValue<N>): Buffer {
  const encode = SYNTAX[name].encode as (value: ControlValue<N>) => Buffer;
  return encode(value);
}

export function controlsNamed<N extends ControlName>(
  controls: readonly CmcControl[],
  name: N,
): Extract<KnownControl, { readonly name: N }>[] {
  return controls.filter((control): control is Extract<KnownControl, { readonly name: N }> => control.name === name);
}
