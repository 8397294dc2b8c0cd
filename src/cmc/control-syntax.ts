/** The structures that CMC controls carry (RFC 5272 §6, RFC 6402 §2), in and out. All readers throw DerError. */
import { issuerAndSerialNumber, encodeSignerIdentifier, parseSignerIdentifier } from '../pki/cms.ts';
import { serialHex } from '../pki/certificate.ts';
import { CRL_REASONS, isCrlReason, type CrlReason } from '../pki/crl-reasons.ts';
import {
  DerError,
  DerReader,
  Tag,
  boolean,
  children,
  generalizedTime,
  integer,
  integerBytes,
  octetString,
  oid,
  readBoolean,
  readInteger,
  readOid,
  readString,
  readTime,
  sequence,
  tlv,
  utf8String,
  type DerElement,
} from '../pki/der.ts';
import { encodeExtensions, parseExtensions, type Extension } from '../pki/extensions.ts';
import { encodeGeneralName, parseGeneralName, type GeneralName } from '../pki/general-name.ts';
import { parseName, type Name } from '../pki/name.ts';
import {
  encodeBodyPartID,
  encodeBodyPartList,
  encodeBodyPartReferences,
  readBodyPartID,
  readBodyPartList,
  readBodyPartReferences,
  type BodyPartID,
  type BodyPartPath,
  type BodyPartReference,
} from './body-part.ts';
import { encodeTaggedRequest, readTaggedRequest, type TaggedRequest } from './pki-data.ts';

/** AlgorithmIdentifier. */
export interface AlgorithmIdentifier {
  /** Dotted. */
  readonly oid: string;
  /** DER of the parameters, where there are any. */
  readonly parameters?: Buffer;
}

/** IdentityProofV2 and PopLinkWitnessV2, which have the same syntax. */
export interface KeyedWitness {
  /** hashAlgID or keyGenAlgorithm: makes the MAC's key of the shared secret. */
  readonly keyAlgorithm: AlgorithmIdentifier;
  readonly macAlgorithm: AlgorithmIdentifier;
  readonly witness: Buffer;
}

/** A certificate by its issuer and serial number. */
export interface CertificateId {
  readonly issuer: Name;
  /** Lower-case hex, as in the store. */
  readonly serialNumber: string;
}

export interface RevokeRequest extends CertificateId {
  readonly reason: CrlReason;
  readonly invalidityDate?: Date;
  readonly sharedSecret?: Buffer;
  readonly comment?: string;
}

export interface GetCert {
  readonly issuerName: GeneralName;
  /** Lower-case hex. */
  readonly serialNumber: string;
}

export interface GetCrl {
  readonly issuerName: Name;
  readonly crlName?: GeneralName;
  readonly time?: Date;
  /** DER of ReasonFlags, a BIT STRING. */
  readonly reasons?: Buffer;
}

export interface LraPopWitness {
  /** 0: the requests are in this message. */
  readonly pkiDataBodyid: BodyPartID;
  readonly bodyIds: readonly BodyPartID[];
}

export interface EncryptedPop {
  readonly request: TaggedRequest;
  /** DER ContentInfo around EnvelopedData. */
  readonly cms: Buffer;
  readonly thePopAlgorithm: AlgorithmIdentifier;
  readonly witnessAlgorithm: AlgorithmIdentifier;
  readonly witness: Buffer;
}

export interface DecryptedPop {
  readonly bodyPartID: BodyPartID;
  readonly thePopAlgorithm: AlgorithmIdentifier;
  readonly thePop: Buffer;
}

export interface AddExtensions {
  readonly pkiDataReference: BodyPartID;
  readonly certReferences: readonly BodyPartID[];
  readonly extensions: readonly Extension[];
}

export interface ModCertTemplate {
  readonly pkiDataReference: BodyPartPath;
  readonly certReferences: readonly BodyPartID[];
  /** false: the fields of the template are removed from the request. */
  readonly replace: boolean;
  /** DER CertTemplate; read it with `parseCertTemplate`. */
  readonly certTemplate: Buffer;
}

export interface PublishTrustAnchors {
  readonly seqNumber: number;
  readonly hashAlgorithm: AlgorithmIdentifier;
  readonly anchorHashes: readonly Buffer[];
}

export interface CmcPublicationInfo {
  readonly hashAlgorithm: AlgorithmIdentifier;
  readonly certHashes: readonly Buffer[];
  /** DER PKIPublicationInfo. */
  readonly pubInfo: Buffer;
}

/** A reader and a writer of one ASN.1 type. */
export interface Syntax<T> {
  readonly read: (element: DerElement) => T;
  readonly encode: (value: T) => Buffer;
}

function fields(element: DerElement, what: string): DerReader {
  if (element.tag !== Tag.SEQUENCE) throw new DerError(`${what}: unexpected tag`);
  return new DerReader(element.value, what);
}

function expect(element: DerElement, tag: number, what: string): DerElement {
  if (element.tag !== tag) throw new DerError(`${what}: unexpected tag`);
  return element;
}

const present = (bytes: Buffer | undefined): Buffer[] => (bytes === undefined ? [] : [bytes]);

// --- simple types ----------------------------------------------------------------------------------------------

export const OCTETS: Syntax<Buffer> = {
  read: (element) => expect(element, Tag.OCTET_STRING, 'OCTET STRING').value,
  encode: octetString,
};

export const UTF8: Syntax<string> = {
  read: (element) => readString(expect(element, Tag.UTF8_STRING, 'UTF8String'), 'UTF8String'),
  encode: utf8String,
};

/** INTEGER of any size as lower-case hex of its content octets: transactionIds are compared, never computed with. */
export const BIG_INTEGER: Syntax<string> = {
  read: (element) => integerBytes(expect(element, Tag.INTEGER, 'INTEGER')).toString('hex'),
  encode: (hex) => tlv(Tag.INTEGER, Buffer.from(hex, 'hex')),
};

export const BODY_PART_ID: Syntax<BodyPartID> = {
  read: (element) => readBodyPartID(element),
  encode: encodeBodyPartID,
};

export const BODY_PART_LIST: Syntax<readonly BodyPartID[]> = {
  read: (element) => readBodyPartList(element),
  encode: encodeBodyPartList,
};

/** ControlsProcessed (§6.19): the references stand in a SEQUENCE of their own. */
export const CONTROLS_PROCESSED: Syntax<readonly BodyPartReference[]> = {
  read: (element) => {
    const reader = fields(element, 'ControlsProcessed');
    const references = readBodyPartReferences(reader.next(Tag.SEQUENCE, 'bodyList'));
    reader.end();
    return references;
  },
  encode: (references) => sequence(encodeBodyPartReferences(references)),
};

/** @throws DerError */
export function readAlgorithmIdentifier(element: DerElement): AlgorithmIdentifier {
  const reader = fields(element, 'AlgorithmIdentifier');
  const dotted = readOid(reader.next(Tag.OID, 'algorithm'));
  if (reader.done) return { oid: dotted };
  const parameters = reader.next(undefined, 'parameters').raw;
  reader.end();
  return { oid: dotted, parameters };
}

export function encodeAlgorithmIdentifier({ oid: dotted, parameters }: AlgorithmIdentifier): Buffer {
  return sequence(oid(dotted), ...present(parameters));
}

function readOctetStrings(element: DerElement, what: string): Buffer[] {
  return children(element.value, what).map((one) => expect(one, Tag.OCTET_STRING, what).value);
}

// --- structures ------------------------------------------------------------------------------------------------

export const KEYED_WITNESS: Syntax<KeyedWitness> = {
  read: (element) => {
    const reader = fields(element, 'witness');
    const keyAlgorithm = readAlgorithmIdentifier(reader.next(Tag.SEQUENCE, 'keyAlgorithm'));
    const macAlgorithm = readAlgorithmIdentifier(reader.next(Tag.SEQUENCE, 'macAlgorithm'));
    const witness = reader.next(Tag.OCTET_STRING, 'witness').value;
    reader.end();
    return { keyAlgorithm, macAlgorithm, witness };
  },
  encode: ({ keyAlgorithm, macAlgorithm, witness }) =>
    sequence(encodeAlgorithmIdentifier(keyAlgorithm), encodeAlgorithmIdentifier(macAlgorithm), octetString(witness)),
};

export const CERTIFICATE_ID: Syntax<CertificateId> = {
  read: (element) => {
    const sid = parseSignerIdentifier(expect(element, Tag.SEQUENCE, 'CMCCertId'));
    if (sid.kind !== 'issuerAndSerialNumber') throw new DerError('CMCCertId: unexpected tag');
    return { issuer: sid.issuer, serialNumber: sid.serialNumber };
  },
  encode: (id) => encodeSignerIdentifier(issuerAndSerialNumber(id)),
};

const reasonNames = new Map<number, CrlReason>();
for (const name in CRL_REASONS) if (isCrlReason(name)) reasonNames.set(CRL_REASONS[name], name);

export const REVOKE_REQUEST: Syntax<RevokeRequest> = {
  read: (element) => {
    const reader = fields(element, 'RevokeRequest');
    const issuer = parseName(reader.next(Tag.SEQUENCE, 'issuerName').raw);
    const serialNumber = serialHex(integerBytes(reader.next(Tag.INTEGER, 'serialNumber'), 'serialNumber'));
    const reason = reasonNames.get(readInteger(reader.next(Tag.ENUMERATED, 'reason'), 'RevokeRequest.reason'));
    if (reason === undefined) throw new DerError('RevokeRequest.reason: unknown');
    const invalidityDate = reader.optional(Tag.GENERALIZED_TIME, 'invalidityDate');
    const sharedSecret = reader.optional(Tag.OCTET_STRING, 'sharedSecret');
    const comment = reader.optional(Tag.UTF8_STRING, 'comment');
    reader.end();
    return {
      issuer,
      serialNumber,
      reason,
      ...(invalidityDate === undefined ? {} : { invalidityDate: readTime(invalidityDate, 'invalidityDate') }),
      ...(sharedSecret === undefined ? {} : { sharedSecret: sharedSecret.value }),
      ...(comment === undefined ? {} : { comment: readString(comment, 'comment') }),
    };
  },
  encode: ({ issuer, serialNumber, reason, invalidityDate, sharedSecret, comment }) =>
    sequence(
      issuer.der,
      integer(Buffer.from(serialNumber, 'hex')),
      tlv(Tag.ENUMERATED, Buffer.of(CRL_REASONS[reason])),
      ...present(invalidityDate && generalizedTime(invalidityDate)),
      ...present(sharedSecret && octetString(sharedSecret)),
      ...(comment === undefined ? [] : [utf8String(comment)]),
    ),
};

export const GET_CERT: Syntax<GetCert> = {
  read: (element) => {
    const reader = fields(element, 'GetCert');
    const issuerName = readGeneralName(reader.next(undefined, 'issuerName'));
    const serialNumber = serialHex(integerBytes(reader.next(Tag.INTEGER, 'serialNumber'), 'serialNumber'));
    reader.end();
    return { issuerName, serialNumber };
  },
  encode: ({ issuerName, serialNumber }) =>
    sequence(encodeGeneralName(issuerName), integer(Buffer.from(serialNumber, 'hex'))),
};

const readGeneralName = parseGeneralName;

export const GET_CRL: Syntax<GetCrl> = {
  read: (element) => {
    const reader = fields(element, 'GetCRL');
    const issuerName = parseName(reader.next(Tag.SEQUENCE, 'issuerName').raw);
    const isName = reader.nextTag !== undefined && (reader.nextTag & 0xc0) === 0x80;
    const crlName = isName ? readGeneralName(reader.next(undefined, 'cRLName')) : undefined;
    const time = reader.optional(Tag.GENERALIZED_TIME, 'time');
    const reasons = reader.optional(Tag.BIT_STRING, 'reasons')?.raw;
    reader.end();
    return {
      issuerName,
      ...(crlName === undefined ? {} : { crlName }),
      ...(time === undefined ? {} : { time: readTime(time, 'time') }),
      ...(reasons === undefined ? {} : { reasons }),
    };
  },
  encode: ({ issuerName, crlName, time, reasons }) =>
    sequence(
      issuerName.der,
      ...present(crlName && encodeGeneralName(crlName)),
      ...present(time && generalizedTime(time)),
      ...present(reasons),
    ),
};

export const LRA_POP_WITNESS: Syntax<LraPopWitness> = {
  read: (element) => {
    const reader = fields(element, 'LraPopWitness');
    const pkiDataBodyid = readBodyPartID(reader.next(Tag.INTEGER, 'pkiDataBodyid'));
    const bodyIds = readBodyPartList(reader.next(Tag.SEQUENCE, 'bodyIds'), 'bodyIds');
    reader.end();
    return { pkiDataBodyid, bodyIds };
  },
  encode: ({ pkiDataBodyid, bodyIds }) => sequence(encodeBodyPartID(pkiDataBodyid), encodeBodyPartList(bodyIds)),
};

export const ENCRYPTED_POP: Syntax<EncryptedPop> = {
  read: (element) => {
    const reader = fields(element, 'EncryptedPOP');
    const request = readTaggedRequest(reader.next(undefined, 'request'));
    const cms = reader.next(Tag.SEQUENCE, 'cms').raw;
    const thePopAlgorithm = readAlgorithmIdentifier(reader.next(Tag.SEQUENCE, 'thePOPAlgID'));
    const witnessAlgorithm = readAlgorithmIdentifier(reader.next(Tag.SEQUENCE, 'witnessAlgID'));
    const witness = reader.next(Tag.OCTET_STRING, 'witness').value;
    reader.end();
    return { request, cms, thePopAlgorithm, witnessAlgorithm, witness };
  },
  encode: ({ request, cms, thePopAlgorithm, witnessAlgorithm, witness }) =>
    sequence(
      encodeTaggedRequest(request),
      cms,
      encodeAlgorithmIdentifier(thePopAlgorithm),
      encodeAlgorithmIdentifier(witnessAlgorithm),
      octetString(witness),
    ),
};

export const DECRYPTED_POP: Syntax<DecryptedPop> = {
  read: (element) => {
    const reader = fields(element, 'DecryptedPOP');
    const bodyPartID = readBodyPartID(reader.next(Tag.INTEGER, 'bodyPartID'));
    const thePopAlgorithm = readAlgorithmIdentifier(reader.next(Tag.SEQUENCE, 'thePOPAlgID'));
    const thePop = reader.next(Tag.OCTET_STRING, 'thePOP').value;
    reader.end();
    return { bodyPartID, thePopAlgorithm, thePop };
  },
  encode: ({ bodyPartID, thePopAlgorithm, thePop }) =>
    sequence(encodeBodyPartID(bodyPartID), encodeAlgorithmIdentifier(thePopAlgorithm), octetString(thePop)),
};

export const ADD_EXTENSIONS: Syntax<AddExtensions> = {
  read: (element) => {
    const reader = fields(element, 'AddExtensions');
    const pkiDataReference = readBodyPartID(reader.next(Tag.INTEGER, 'pkiDataReference'));
    const certReferences = readBodyPartList(reader.next(Tag.SEQUENCE, 'certReferences'), 'certReferences');
    const extensions = parseExtensions(reader.next(Tag.SEQUENCE, 'extensions').raw);
    reader.end();
    return { pkiDataReference, certReferences, extensions };
  },
  encode: ({ pkiDataReference, certReferences, extensions }) =>
    sequence(encodeBodyPartID(pkiDataReference), encodeBodyPartList(certReferences), encodeExtensions(extensions)),
};

export const MOD_CERT_TEMPLATE: Syntax<ModCertTemplate> = {
  read: (element) => {
    const reader = fields(element, 'ModCertTemplate');
    const pkiDataReference = readBodyPartList(reader.next(Tag.SEQUENCE, 'pkiDataReference'));
    const certReferences = readBodyPartList(reader.next(Tag.SEQUENCE, 'certReferences'), 'certReferences');
    const replace = reader.optional(Tag.BOOLEAN, 'replace');
    const certTemplate = reader.next(Tag.SEQUENCE, 'certTemplate').raw;
    reader.end();
    return {
      pkiDataReference,
      certReferences,
      replace: replace === undefined || readBoolean(replace, 'ModCertTemplate.replace'),
      certTemplate,
    };
  },
  encode: ({ pkiDataReference, certReferences, replace, certTemplate }) =>
    sequence(
      encodeBodyPartList(pkiDataReference),
      encodeBodyPartList(certReferences),
      ...(replace ? [] : [boolean(false)]),
      certTemplate,
    ),
};

export const PUBLISH_TRUST_ANCHORS: Syntax<PublishTrustAnchors> = {
  read: (element) => {
    const reader = fields(element, 'PublishTrustAnchors');
    const seqNumber = readInteger(reader.next(Tag.INTEGER, 'seqNumber'), 'seqNumber');
    const hashAlgorithm = readAlgorithmIdentifier(reader.next(Tag.SEQUENCE, 'hashAlgorithm'));
    const anchorHashes = readOctetStrings(reader.next(Tag.SEQUENCE, 'anchorHashes'), 'anchorHashes');
    reader.end();
    return { seqNumber, hashAlgorithm, anchorHashes };
  },
  encode: ({ seqNumber, hashAlgorithm, anchorHashes }) =>
    sequence(integer(seqNumber), encodeAlgorithmIdentifier(hashAlgorithm), sequence(...anchorHashes.map(octetString))),
};

export const PUBLICATION_INFO: Syntax<CmcPublicationInfo> = {
  read: (element) => {
    const reader = fields(element, 'CMCPublicationInfo');
    const hashAlgorithm = readAlgorithmIdentifier(reader.next(Tag.SEQUENCE, 'hashAlg'));
    const certHashes = readOctetStrings(reader.next(Tag.SEQUENCE, 'certHashes'), 'certHashes');
    const pubInfo = reader.next(Tag.SEQUENCE, 'pubInfo').raw;
    reader.end();
    return { hashAlgorithm, certHashes, pubInfo };
  },
  encode: ({ hashAlgorithm, certHashes, pubInfo }) =>
    sequence(encodeAlgorithmIdentifier(hashAlgorithm), sequence(...certHashes.map(octetString)), pubInfo),
};
