/** ASN.1 types of the controls (RFC 5272 §6). All readers throw DerError. */
import { Tag, boolean, integerBytes, readBoolean } from '../der/der.ts';
import {
  ALGORITHM,
  INTEGER,
  listOf,
  named,
  OCTETS,
  optional,
  raw,
  record,
  syntax,
  TIME,
  UTF8,
  type ValueOf,
} from '../der/syntax.ts';
import { serialHex, serialInteger } from '../x509/certificate.ts';
import { CRL_REASONS } from '../x509/crl.ts';
import { encodeExtensions, parseExtensions, type Extension } from '../x509/extensions.ts';
import { encodeGeneralName, parseGeneralName } from '../x509/general-name.ts';
import { parseName } from '../x509/name.ts';
import { BODY_PART_ID, BODY_PART_LIST, BODY_PART_REFERENCES } from './body-part.ts';
import { TAGGED_REQUEST } from './pki-data.ts';

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
export const CERTIFICATE_ID = record('CMCCertId', {
  issuer: { ...NAME, read: ({ value, raw: der }) => parseName(value[0] === Tag.SEQUENCE ? value : der) },
  serialNumber: SERIAL_NUMBER,
} satisfies { issuer: typeof NAME; serialNumber: typeof SERIAL_NUMBER });
export type CertificateId = ValueOf<typeof CERTIFICATE_ID>;

export const REVOKE_REQUEST = record('RevokeRequest', {
  issuer: NAME,
  serialNumber: SERIAL_NUMBER,
  reason: named(Tag.ENUMERATED, CRL_REASONS),
  invalidityDate: optional(TIME),
  sharedSecret: optional(OCTETS),
  comment: optional(UTF8),
});
export type RevokeRequest = ValueOf<typeof REVOKE_REQUEST>;

export const GET_CERT = record('GetCert', { issuerName: GENERAL_NAME, serialNumber: SERIAL_NUMBER });
export type GetCert = ValueOf<typeof GET_CERT>;

export const GET_CRL = record('GetCRL', {
  issuerName: NAME,
  crlName: optional(GENERAL_NAME, isContextTag),
  time: optional(TIME),
  reasons: optional(raw(Tag.BIT_STRING)),
});
export type GetCrl = ValueOf<typeof GET_CRL>;

export const ENCRYPTED_POP = record('EncryptedPOP', {
  request: TAGGED_REQUEST,
  /** ContentInfo around EnvelopedData. */
  cms: raw(Tag.SEQUENCE),
  thePopAlgorithm: ALGORITHM,
  witnessAlgorithm: ALGORITHM,
  witness: OCTETS,
});

export const DECRYPTED_POP = record('DecryptedPOP', {
  bodyPartID: BODY_PART_ID,
  thePopAlgorithm: ALGORITHM,
  thePop: OCTETS,
});

/** ControlsProcessed (§6.19) wraps the references in a SEQUENCE. */
const PROCESSED = record('ControlsProcessed', { bodyList: BODY_PART_REFERENCES });
export const CONTROLS_PROCESSED = syntax(
  Tag.SEQUENCE,
  (element) => PROCESSED.read(element).bodyList,
  (bodyList) => PROCESSED.encode({ bodyList }),
);

// --- between RAs and CAs -----------------------------------------------------------------------------------------

export const LRA_POP_WITNESS = record('LraPopWitness', {
  /** 0: the requests are in this message. */
  pkiDataBodyid: BODY_PART_ID,
  bodyIds: BODY_PART_LIST,
});

export const ADD_EXTENSIONS = record('AddExtensions', {
  pkiDataReference: BODY_PART_ID,
  certReferences: BODY_PART_LIST,
  extensions: syntax<readonly Extension[]>(Tag.SEQUENCE, (element) => parseExtensions(element.raw), encodeExtensions),
});

/** `replace` false removes the template's fields from the request; its default is true. */
export const MOD_CERT_TEMPLATE = record('ModCertTemplate', {
  pkiDataReference: BODY_PART_LIST,
  certReferences: BODY_PART_LIST,
  replace: optional(syntax(Tag.BOOLEAN, readBoolean, boolean)),
  /** Decode it with `parseCertTemplate`. */
  certTemplate: raw(Tag.SEQUENCE),
});

export const PUBLISH_TRUST_ANCHORS = record('PublishTrustAnchors', {
  seqNumber: INTEGER,
  hashAlgorithm: ALGORITHM,
  anchorHashes: listOf(OCTETS),
});

export const PUBLICATION_INFO = record('CMCPublicationInfo', {
  hashAlgorithm: ALGORITHM,
  certHashes: listOf(OCTETS),
  /** PKIPublicationInfo. */
  pubInfo: raw(Tag.SEQUENCE),
});
