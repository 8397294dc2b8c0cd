/** ASN.1 types of the controls that clients and servers exchange (RFC 5272 §6). All readers throw DerError. */
import { issuerAndSerialNumber, encodeSignerIdentifier } from '../cms/signed-data.ts';
import { serialHex, serialInteger } from '../x509/certificate.ts';
import { CRL_REASONS, type CrlReason, isCrlReason } from '../x509/crl.ts';
import {
  DerError,
  Tag,
  generalizedTime,
  integerBytes,
  octetString,
  readInteger,
  readString,
  readTime,
  sequence,
  tlv,
  utf8String,
} from '../der/der.ts';
import { encodeGeneralName, parseGeneralName, type GeneralName } from '../x509/general-name.ts';
import { parseName, type Name } from '../x509/name.ts';
import { encodeBodyPartID, readBodyPartID, type BodyPartID } from './body-part.ts';
import { encodeTaggedRequest, readTaggedRequest, type TaggedRequest } from './pki-data.ts';
import {
  encodeAlgorithmIdentifier,
  fields,
  present,
  readAlgorithmIdentifier,
  type AlgorithmIdentifier,
  type Syntax,
} from './syntax.ts';

/** IdentityProofV2 and PopLinkWitnessV2 (same syntax). */
export interface KeyedWitness {
  /** hashAlgID or keyGenAlgorithm: derives the MAC key from the shared secret. */
  readonly keyAlgorithm: AlgorithmIdentifier;
  readonly macAlgorithm: AlgorithmIdentifier;
  readonly witness: Buffer;
}

export interface CertificateId {
  readonly issuer: Name;
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
  readonly serialNumber: string;
}

export interface GetCrl {
  readonly issuerName: Name;
  readonly crlName?: GeneralName;
  readonly time?: Date;
  /** DER of ReasonFlags, a BIT STRING. */
  readonly reasons?: Buffer;
}

interface EncryptedPop {
  readonly request: TaggedRequest;
  /** DER ContentInfo around EnvelopedData. */
  readonly cms: Buffer;
  readonly thePopAlgorithm: AlgorithmIdentifier;
  readonly witnessAlgorithm: AlgorithmIdentifier;
  readonly witness: Buffer;
}

interface DecryptedPop {
  readonly bodyPartID: BodyPartID;
  readonly thePopAlgorithm: AlgorithmIdentifier;
  readonly thePop: Buffer;
}

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

/** CMCCertId (§6.14). Dogtag's CMCRequest wraps the issuer in an additional SEQUENCE, which is removed. */
export const CERTIFICATE_ID: Syntax<CertificateId> = {
  read: (element) => {
    const reader = fields(element, 'CMCCertId');
    const issuer = reader.next(Tag.SEQUENCE, 'issuer');
    const name = issuer.value[0] === Tag.SEQUENCE ? issuer.value : issuer.raw;
    const serialNumber = serialHex(integerBytes(reader.next(Tag.INTEGER, 'serialNumber'), 'serialNumber'));
    reader.end();
    return { issuer: parseName(name), serialNumber };
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
      serialInteger(serialNumber),
      tlv(Tag.ENUMERATED, Buffer.of(CRL_REASONS[reason])),
      ...present(invalidityDate && generalizedTime(invalidityDate)),
      ...present(sharedSecret && octetString(sharedSecret)),
      ...(comment === undefined ? [] : [utf8String(comment)]),
    ),
};

export const GET_CERT: Syntax<GetCert> = {
  read: (element) => {
    const reader = fields(element, 'GetCert');
    const issuerName = parseGeneralName(reader.next(undefined, 'issuerName'));
    const serialNumber = serialHex(integerBytes(reader.next(Tag.INTEGER, 'serialNumber'), 'serialNumber'));
    reader.end();
    return { issuerName, serialNumber };
  },
  encode: ({ issuerName, serialNumber }) => sequence(encodeGeneralName(issuerName), serialInteger(serialNumber)),
};

export const GET_CRL: Syntax<GetCrl> = {
  read: (element) => {
    const reader = fields(element, 'GetCRL');
    const issuerName = parseName(reader.next(Tag.SEQUENCE, 'issuerName').raw);
    const isName = reader.nextTag !== undefined && (reader.nextTag & 0xc0) === 0x80;
    const crlName = isName ? parseGeneralName(reader.next(undefined, 'cRLName')) : undefined;
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
