/** CMC controls (RFC 5272 §6, RFC 6402 §2): conversion between tagged attributes and typed values. */
import { DerError, parseDer } from '../der/der.ts';
import { OID } from '../der/oids.ts';
import { BIG_INTEGER, OCTETS, UTF8 } from '../der/syntax.ts';
import { BODY_PART_ID, BODY_PART_LIST, type BodyPartID } from './body-part.ts';
import { CmcError } from './cmc-error.ts';
import {
  ADD_EXTENSIONS,
  CERTIFICATE_ID,
  CONTROLS_PROCESSED,
  DECRYPTED_POP,
  ENCRYPTED_POP,
  GET_CERT,
  GET_CRL,
  KEYED_WITNESS,
  LRA_POP_WITNESS,
  MOD_CERT_TEMPLATE,
  PUBLICATION_INFO,
  PUBLISH_TRUST_ANCHORS,
  REVOKE_REQUEST,
} from './control-syntax.ts';
import type { TaggedAttribute } from './pki-data.ts';
import { STATUS_INFO } from './status-info.ts';

/** Every control of RFC 5272 and RFC 6402, by its name without `id-cmc-`. */
const SYNTAX = {
  statusInfo: STATUS_INFO,
  identification: UTF8,
  identityProof: OCTETS,
  dataReturn: OCTETS,
  transactionId: BIG_INTEGER,
  senderNonce: OCTETS,
  recipientNonce: OCTETS,
  addExtensions: ADD_EXTENSIONS,
  encryptedPOP: ENCRYPTED_POP,
  decryptedPOP: DECRYPTED_POP,
  lraPOPWitness: LRA_POP_WITNESS,
  getCert: GET_CERT,
  getCRL: GET_CRL,
  revokeRequest: REVOKE_REQUEST,
  regInfo: OCTETS,
  responseInfo: OCTETS,
  queryPending: OCTETS,
  popLinkRandom: OCTETS,
  popLinkWitness: OCTETS,
  confirmCertAcceptance: CERTIFICATE_ID,
  statusInfoV2: STATUS_INFO,
  trustedAnchors: PUBLISH_TRUST_ANCHORS,
  authData: BODY_PART_ID,
  batchRequests: BODY_PART_LIST,
  batchResponses: BODY_PART_LIST,
  publishCert: PUBLICATION_INFO,
  modCertTemplate: MOD_CERT_TEMPLATE,
  controlProcessed: CONTROLS_PROCESSED,
  popLinkWitnessV2: KEYED_WITNESS,
  identityProofV2: KEYED_WITNESS,
  raIdentityWitness: BODY_PART_LIST,
  responseBody: BODY_PART_LIST,
} as const;

export type ControlName = keyof typeof SYNTAX;

export type ControlValue<N extends ControlName> = ReturnType<(typeof SYNTAX)[N]['read']>;

export type KnownControl = {
  [N in ControlName]: { readonly name: N; readonly bodyPartID: BodyPartID; readonly value: ControlValue<N> };
}[ControlName];

/** A control of a type that neither RFC defines. */
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
 * Reads a control's value. Every control of the two RFCs has exactly one.
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
