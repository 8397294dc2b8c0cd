/** CertReqMsg (RFC 4211) as used in CMC (RFC 5272 §3.2.1.2.2). All readers throw DerError. */
import {
  DerError,
  DerReader,
  Tag,
  children,
  contextConstructed,
  contextPrimitive,
  parseDer,
  readBitStringOctets,
  readFields,
  readInteger,
  readTime,
  tlv,
  type DerElement,
} from '../der/der.ts';
import { parseExtensions, type Extension } from '../x509/extensions.ts';
import { parseName, type Name } from '../x509/name.ts';
import { BODY_PART_ID, type BodyPartID } from './body-part.ts';

/** The certificate fields that a requester may specify. */
interface CertTemplate {
  /** 2 is X.509 version 3. */
  readonly version: number | undefined;
  readonly issuer: Name | undefined;
  readonly notBefore: Date | undefined;
  readonly notAfter: Date | undefined;
  readonly subject: Name | undefined;
  readonly publicKey: Buffer | undefined;
  readonly extensions: readonly Extension[] | undefined;
  /** Fields that only the CA may assign (RFC 4211 §5) but the requester filled in. */
  readonly assigned: readonly string[];
}

/** A CertRequest control: CMC's own attributes (popLinkWitnessV2, changeSubjectName) or CRMF's. */
interface CrmfControl {
  readonly oid: string;
  readonly value: Buffer;
}

type CrmfProofOfPossession =
  | { readonly kind: 'raVerified' }
  | {
      readonly kind: 'signature';
      /** Whether a poposkInput is present; the signature then does not cover the request. */
      readonly withInput: boolean;
      readonly algorithm: Buffer;
      readonly signature: Buffer;
    }
  | { readonly kind: 'keyEncipherment' | 'keyAgreement' };

export interface CertReqMsg {
  readonly der: Buffer;
  readonly certReqId: BodyPartID;
  /** DER CertRequest, which the signature covers. */
  readonly certReq: Buffer;
  readonly certTemplate: CertTemplate;
  readonly controls: readonly CrmfControl[];
  readonly popo: CrmfProofOfPossession | undefined;
  readonly hasRegInfo: boolean;
}

export function parseCertReqMsg(der: Buffer): CertReqMsg {
  const reader = DerReader.of(der, 'CertReqMsg');
  const certReq = reader.next(Tag.SEQUENCE, 'certReq');
  const popo = reader.nextTag === undefined || reader.nextTag === Tag.SEQUENCE ? undefined : readPopo(reader.next());
  const regInfo = reader.optional(Tag.SEQUENCE, 'regInfo');
  reader.end();

  const request = new DerReader(certReq.value, 'CertRequest');
  const certReqId = BODY_PART_ID.read(request.next(Tag.INTEGER, 'certReqId'), 'certReqId');
  const certTemplate = parseCertTemplate(request.sequence('certTemplate'));
  const controls = request.optional(Tag.SEQUENCE, 'controls');
  request.end();
  return {
    der,
    certReqId,
    certReq: certReq.raw,
    certTemplate,
    controls: controls === undefined ? [] : children(controls.value, 'Controls').map(readControl),
    popo,
    hasRegInfo: regInfo !== undefined,
  };
}

function readControl(element: DerElement): CrmfControl {
  return readFields(element, 'AttributeTypeAndValue', (fields) => ({
    oid: fields.oid('type'),
    value: fields.next(undefined, 'value').raw,
  }));
}

function readPopo(element: DerElement): CrmfProofOfPossession {
  switch (element.tag) {
    case contextPrimitive(0):
      if (element.value.length !== 0) throw new DerError('ProofOfPossession.raVerified: not NULL');
      return { kind: 'raVerified' };
    case contextConstructed(1):
      return readSignature(element);
    case contextConstructed(2):
      return { kind: 'keyEncipherment' };
    case contextConstructed(3):
      return { kind: 'keyAgreement' };
    default:
      throw new DerError('ProofOfPossession: unexpected tag');
  }
}

/** POPOSigningKey (RFC 4211 §4.1). */
function readSignature(element: DerElement): CrmfProofOfPossession {
  const reader = new DerReader(element.value, 'POPOSigningKey');
  const input = reader.optional(contextConstructed(0), 'poposkInput');
  const algorithm = reader.sequence('algorithmIdentifier');
  const signature = readBitStringOctets(reader.next(Tag.BIT_STRING, 'signature'), 'POPOSigningKey.signature');
  reader.end();
  return { kind: 'signature', withInput: input !== undefined, algorithm, signature };
}

/** @param der CertTemplate. The tags are IMPLICIT except those of CHOICEs (names and times). */
function parseCertTemplate(der: Buffer): CertTemplate {
  const reader = DerReader.of(der, 'CertTemplate');
  const version = reader.optional(contextPrimitive(0), 'version');
  const serialNumber = reader.optional(contextPrimitive(1), 'serialNumber');
  const signingAlg = reader.optional(contextConstructed(2), 'signingAlg');
  const issuer = reader.optional(contextConstructed(3), 'issuer');
  const validity = reader.optional(contextConstructed(4), 'validity');
  const subject = reader.optional(contextConstructed(5), 'subject');
  const publicKey = reader.optional(contextConstructed(6), 'publicKey');
  const issuerUID = reader.optional(contextPrimitive(7), 'issuerUID');
  const subjectUID = reader.optional(contextPrimitive(8), 'subjectUID');
  const extensions = reader.optional(contextConstructed(9), 'extensions');
  reader.end();
  const assigned = Object.entries({ serialNumber, signingAlg, issuerUID, subjectUID })
    .filter(([, field]) => field !== undefined)
    .map(([name]) => name);
  return {
    version: version && readInteger(version, 'CertTemplate.version'),
    issuer: issuer && parseName(issuer.value),
    ...readValidity(validity),
    subject: subject && parseName(subject.value),
    publicKey: publicKey && tlv(Tag.SEQUENCE, publicKey.value),
    extensions: extensions && parseExtensions(tlv(Tag.SEQUENCE, extensions.value)),
    assigned,
  };
}

function readValidity(element: DerElement | undefined): Pick<CertTemplate, 'notBefore' | 'notAfter'> {
  if (element === undefined) return { notBefore: undefined, notAfter: undefined };
  const reader = new DerReader(element.value, 'OptionalValidity');
  const notBefore = reader.optional(contextConstructed(0), 'notBefore');
  const notAfter = reader.optional(contextConstructed(1), 'notAfter');
  reader.end();
  return {
    notBefore: notBefore && readTime(parseDer(notBefore.value, undefined, 'notBefore'), 'notBefore'),
    notAfter: notAfter && readTime(parseDer(notAfter.value, undefined, 'notAfter'), 'notAfter'),
  };
}
