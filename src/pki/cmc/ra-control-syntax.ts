/** ASN.1 types of the controls between RAs and CAs (RFC 5272 §6.5, §6.8, §6.15, §6.18). All readers throw DerError. */
import { Tag, boolean, integer, octetString, readBoolean, readInteger, sequence } from '../der/der.ts';
import { encodeExtensions, parseExtensions, type Extension } from '../x509/extensions.ts';
import {
  encodeBodyPartID,
  encodeBodyPartList,
  readBodyPartID,
  readBodyPartList,
  type BodyPartID,
  type BodyPartPath,
} from './body-part.ts';
import {
  encodeAlgorithmIdentifier,
  fields,
  readAlgorithmIdentifier,
  readOctetStrings,
  type AlgorithmIdentifier,
  type Syntax,
} from './syntax.ts';

interface LraPopWitness {
  /** 0: the requests are in this message. */
  readonly pkiDataBodyid: BodyPartID;
  readonly bodyIds: readonly BodyPartID[];
}

interface AddExtensions {
  readonly pkiDataReference: BodyPartID;
  readonly certReferences: readonly BodyPartID[];
  readonly extensions: readonly Extension[];
}

interface ModCertTemplate {
  readonly pkiDataReference: BodyPartPath;
  readonly certReferences: readonly BodyPartID[];
  /** false: removes the template's fields from the request. */
  readonly replace: boolean;
  /** DER CertTemplate; decode it with `parseCertTemplate`. */
  readonly certTemplate: Buffer;
}

interface PublishTrustAnchors {
  readonly seqNumber: number;
  readonly hashAlgorithm: AlgorithmIdentifier;
  readonly anchorHashes: readonly Buffer[];
}

interface CmcPublicationInfo {
  readonly hashAlgorithm: AlgorithmIdentifier;
  readonly certHashes: readonly Buffer[];
  /** DER PKIPublicationInfo. */
  readonly pubInfo: Buffer;
}

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
