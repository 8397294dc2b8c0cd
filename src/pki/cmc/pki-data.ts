/** PKIData (RFC 5272 §3.2.1): the content of a full PKI request. */
import { berElements, berToDer } from '../der/ber.ts';
import {
  DerError,
  DerReader,
  Tag,
  children,
  contextConstructed,
  oid,
  parseDer,
  readOid,
  sequence,
  setOf,
  tlv,
  type DerElement,
} from '../der/der.ts';
import {
  BodyPartIDOutOfRange,
  CURRENT_MESSAGE,
  encodeBodyPartID,
  readBodyPartID,
  type BodyPartID,
} from './body-part.ts';
import { CmcError } from './cmc-error.ts';

/** An undecoded control; decode it with `parseControl`. */
export interface TaggedAttribute {
  readonly bodyPartID: BodyPartID;
  /** attrType (dotted OID). */
  readonly type: string;
  /** attrValues: DER of each. */
  readonly values: readonly Buffer[];
}

/** An undecoded certification request; decode it with `parseCertificateRequest`. */
export type TaggedRequest =
  | {
      readonly kind: 'tcr';
      readonly bodyPartID: BodyPartID;
      /** DER CertificationRequest (PKCS #10). */
      readonly der: Buffer;
    }
  | {
      readonly kind: 'crm';
      /** certReqId. */
      readonly bodyPartID: BodyPartID;
      /** DER CertReqMsg (CRMF). */
      readonly der: Buffer;
    }
  | {
      readonly kind: 'orm';
      readonly bodyPartID: BodyPartID;
      /** requestMessageType (dotted OID). */
      readonly type: string;
      readonly der: Buffer;
    };

export interface TaggedContentInfo {
  readonly bodyPartID: BodyPartID;
  readonly contentInfo: Buffer;
}

export interface OtherMsg {
  readonly bodyPartID: BodyPartID;
  /** otherMsgType (dotted OID). */
  readonly type: string;
  readonly value: Buffer;
}

export interface PkiDataContent {
  readonly controlSequence: readonly TaggedAttribute[];
  readonly reqSequence: readonly TaggedRequest[];
  readonly cmsSequence: readonly TaggedContentInfo[];
  readonly otherMsgSequence: readonly OtherMsg[];
}

export interface PkiData extends PkiDataContent {
  /** The reqSequence as received, including the header: the identity proofs cover it (§6.2.1). */
  readonly reqSequenceBytes: Buffer;
}

/** Maximum parts per message; nested messages have their own count. */
export const MAX_BODY_PARTS = 256;

/**
 * @param content the encapsulated content of a full PKI request, as received (BER is accepted)
 * @throws CmcError `malformed`, `body-part-id-zero`, `body-part-id-range`, `body-part-id-duplicate`, `too-many-parts`
 */
export function parsePkiData(content: Buffer): PkiData {
  return reading('PKIData', () => {
    const reader = DerReader.of(berToDer(content), 'PKIData');
    const count = counter();
    const controlSequence = parts(reader, 'controlSequence', count, readTaggedAttribute);
    const reqSequence = parts(reader, 'reqSequence', count, readTaggedRequest);
    const cmsSequence = parts(reader, 'cmsSequence', count, readTaggedContentInfo);
    const otherMsgSequence = parts(reader, 'otherMsgSequence', count, readOtherMsg);
    reader.end();
    checkBodyPartIDs([...controlSequence, ...reqSequence, ...cmsSequence, ...otherMsgSequence]);
    const [, reqSequenceBytes = Buffer.alloc(0)] = berElements(content);
    return { controlSequence, reqSequence, cmsSequence, otherMsgSequence, reqSequenceBytes };
  });
}

/** DER of PKIData. @throws RangeError for a bodyPartID out of range */
export function buildPkiData(data: Partial<PkiDataContent>): Buffer {
  const { controlSequence = [], reqSequence = [], cmsSequence = [], otherMsgSequence = [] } = data;
  return sequence(
    sequence(...controlSequence.map(encodeTaggedAttribute)),
    encodeReqSequence(reqSequence),
    sequence(...cmsSequence.map(encodeTaggedContentInfo)),
    sequence(...otherMsgSequence.map(encodeOtherMsg)),
  );
}

/** DER of a reqSequence, as input to an identity proof. */
export function encodeReqSequence(requests: readonly TaggedRequest[]): Buffer {
  return sequence(...requests.map(encodeTaggedRequest));
}

// --- shared with PKIResponse -----------------------------------------------------------------------------------

export function reading<T>(what: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof BodyPartIDOutOfRange)
      throw new CmcError('body-part-id-range', [CURRENT_MESSAGE], `A ${what}'s bodyPartID is out of range.`);
    if (error instanceof DerError)
      throw new CmcError(
        'malformed',
        [CURRENT_MESSAGE],
        `The ${what} is not valid: ${error.message}.`,
        'badRequest',
        error,
      );
    throw error;
  }
}

interface PartCounter {
  add(): void;
}

/** Counts parts and throws before the first one over the limit is read. */
export function counter(): PartCounter {
  let count = 0;
  return {
    add: () => {
      if (++count > MAX_BODY_PARTS)
        throw new CmcError(
          'too-many-parts',
          [CURRENT_MESSAGE],
          `The message has more than ${MAX_BODY_PARTS} body parts.`,
        );
    },
  };
}

export function parts<T>(reader: DerReader, field: string, count: PartCounter, read: (element: DerElement) => T): T[] {
  const list = reader.enter(Tag.SEQUENCE, field);
  const found: T[] = [];
  while (!list.done) {
    count.add();
    found.push(read(list.next()));
  }
  return found;
}

/** RFC 5272 §3.2.2: no bodyPartID is 0, and none occurs twice. */
export function checkBodyPartIDs(all: readonly { readonly bodyPartID: BodyPartID }[]): void {
  const seen = new Set<BodyPartID>();
  const twice = new Set<BodyPartID>();
  for (const { bodyPartID } of all) {
    if (bodyPartID === CURRENT_MESSAGE)
      throw new CmcError(
        'body-part-id-zero',
        [CURRENT_MESSAGE],
        'A body part has the identifier 0, which stands for the message itself.',
      );
    if (seen.has(bodyPartID)) twice.add(bodyPartID);
    seen.add(bodyPartID);
  }
  if (twice.size > 0)
    throw new CmcError(
      'body-part-id-duplicate',
      [...twice],
      `Two body parts have the same identifier ${[...twice].join(', ')}.`,
    );
}

function fields(element: DerElement, what: string, tag: number = Tag.SEQUENCE): DerReader {
  if (element.tag !== tag) throw new DerError(`${what}: unexpected tag`);
  return new DerReader(element.value, what);
}

export function readTaggedAttribute(element: DerElement): TaggedAttribute {
  const reader = fields(element, 'TaggedAttribute');
  const bodyPartID = readBodyPartID(reader.next(Tag.INTEGER, 'bodyPartID'));
  const type = readOid(reader.next(Tag.OID, 'attrType'));
  const values = children(reader.next(Tag.SET, 'attrValues').value, 'attrValues').map(({ raw }) => raw);
  reader.end();
  return { bodyPartID, type, values };
}

export function encodeTaggedAttribute({ bodyPartID, type, values }: TaggedAttribute): Buffer {
  return sequence(encodeBodyPartID(bodyPartID), oid(type), setOf(...values));
}

export function readTaggedRequest(element: DerElement): TaggedRequest {
  switch (element.tag) {
    case contextConstructed(0): {
      const reader = fields(element, 'TaggedCertificationRequest', element.tag);
      const bodyPartID = readBodyPartID(reader.next(Tag.INTEGER, 'bodyPartID'));
      const der = reader.next(Tag.SEQUENCE, 'certificationRequest').raw;
      reader.end();
      return { kind: 'tcr', bodyPartID, der };
    }
    case contextConstructed(1): {
      // IMPLICIT: the tag replaces the SEQUENCE tag of CertReqMsg.
      const der = tlv(Tag.SEQUENCE, element.value);
      const certReq = new DerReader(element.value, 'CertReqMsg').enter(Tag.SEQUENCE, 'certReq');
      return { kind: 'crm', bodyPartID: readBodyPartID(certReq.next(Tag.INTEGER, 'certReqId'), 'certReqId'), der };
    }
    case contextConstructed(2): {
      const reader = fields(element, 'orm', element.tag);
      const bodyPartID = readBodyPartID(reader.next(Tag.INTEGER, 'bodyPartID'));
      const type = readOid(reader.next(Tag.OID, 'requestMessageType'));
      const der = reader.next(undefined, 'requestMessageValue').raw;
      reader.end();
      return { kind: 'orm', bodyPartID, type, der };
    }
    default:
      throw new DerError('TaggedRequest: unexpected tag');
  }
}

export function encodeTaggedRequest(request: TaggedRequest): Buffer {
  switch (request.kind) {
    case 'tcr':
      return tlv(contextConstructed(0), encodeBodyPartID(request.bodyPartID), request.der);
    case 'crm':
      return tlv(contextConstructed(1), parseDer(request.der, Tag.SEQUENCE, 'CertReqMsg').value);
    case 'orm':
      return tlv(contextConstructed(2), encodeBodyPartID(request.bodyPartID), oid(request.type), request.der);
  }
}

export function readTaggedContentInfo(element: DerElement): TaggedContentInfo {
  const reader = fields(element, 'TaggedContentInfo');
  const bodyPartID = readBodyPartID(reader.next(Tag.INTEGER, 'bodyPartID'));
  const contentInfo = reader.next(Tag.SEQUENCE, 'contentInfo').raw;
  reader.end();
  return { bodyPartID, contentInfo };
}

export function encodeTaggedContentInfo({ bodyPartID, contentInfo }: TaggedContentInfo): Buffer {
  return sequence(encodeBodyPartID(bodyPartID), contentInfo);
}

export function readOtherMsg(element: DerElement): OtherMsg {
  const reader = fields(element, 'OtherMsg');
  const bodyPartID = readBodyPartID(reader.next(Tag.INTEGER, 'bodyPartID'));
  const type = readOid(reader.next(Tag.OID, 'otherMsgType'));
  const value = reader.next(undefined, 'otherMsgValue').raw;
  reader.end();
  return { bodyPartID, type, value };
}

export function encodeOtherMsg({ bodyPartID, type, value }: OtherMsg): Buffer {
  return sequence(encodeBodyPartID(bodyPartID), oid(type), value);
}
