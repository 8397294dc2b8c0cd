/** PKIData and PKIResponse (RFC 5272 §3.2.1, §4.2.1): the content of full PKI requests and responses. */
import { berElements, berToDer } from '../der/ber.ts';
import { DerError, DerReader, Tag, children, contextConstructed, parseDer, sequence, setOf, tlv } from '../der/der.ts';
import { encodeAs, listOf, OBJECT_ID, raw, record, syntax, type AnySyntax, type ValueOf } from '../der/syntax.ts';
import { BODY_PART_ID, BodyPartIDOutOfRange, CURRENT_MESSAGE, type BodyPartID } from './body-part.ts';
import { CmcError } from './cmc-error.ts';

/** An undecoded control; decode it with `parseControl`. */
const TAGGED_ATTRIBUTE = record('TaggedAttribute', {
  bodyPartID: BODY_PART_ID,
  type: OBJECT_ID,
  values: syntax<readonly Buffer[]>(
    Tag.SET,
    ({ value }, what) => children(value, what).map((element) => element.raw),
    (values) => setOf(...values),
  ),
});
export type TaggedAttribute = ValueOf<typeof TAGGED_ATTRIBUTE>;

/** An undecoded certification request; decode it with `parseCertificateRequest`. */
export type TaggedRequest =
  /** DER CertificationRequest (PKCS #10). */
  | { readonly kind: 'tcr'; readonly bodyPartID: BodyPartID; readonly der: Buffer }
  /** DER CertReqMsg (CRMF) and its certReqId. */
  | { readonly kind: 'crm'; readonly bodyPartID: BodyPartID; readonly der: Buffer }
  /** requestMessageType (dotted OID) and requestMessageValue. */
  | { readonly kind: 'orm'; readonly bodyPartID: BodyPartID; readonly type: string; readonly der: Buffer };

const TCR = record(
  'TaggedCertificationRequest',
  { bodyPartID: BODY_PART_ID, der: raw(Tag.SEQUENCE) },
  contextConstructed(0),
);
const ORM = record('orm', { bodyPartID: BODY_PART_ID, type: OBJECT_ID, der: raw() }, contextConstructed(2));

const TAGGED_REQUEST = syntax<TaggedRequest>(
  undefined,
  (element, what) => {
    if (element.tag === TCR.tag) return { kind: 'tcr', ...TCR.read(element) };
    if (element.tag === ORM.tag) return { kind: 'orm', ...ORM.read(element) };
    if (element.tag !== contextConstructed(1)) throw new DerError(`${what}: unexpected tag`);
    // IMPLICIT: the tag replaces the SEQUENCE tag of CertReqMsg.
    const certReq = new DerReader(element.value, 'CertReqMsg').enter(Tag.SEQUENCE, 'certReq');
    const bodyPartID = BODY_PART_ID.read(certReq.next(Tag.INTEGER, 'certReqId'), 'certReqId');
    return { kind: 'crm', bodyPartID, der: tlv(Tag.SEQUENCE, element.value) };
  },
  (request) => {
    if (request.kind === 'crm')
      return tlv(contextConstructed(1), parseDer(request.der, Tag.SEQUENCE, 'CertReqMsg').value);
    return request.kind === 'tcr' ? TCR.encode(request) : ORM.encode(request);
  },
);

const TAGGED_CONTENT_INFO = record('TaggedContentInfo', { bodyPartID: BODY_PART_ID, contentInfo: raw(Tag.SEQUENCE) });
export type TaggedContentInfo = ValueOf<typeof TAGGED_CONTENT_INFO>;

const OTHER_MSG = record('OtherMsg', { bodyPartID: BODY_PART_ID, type: OBJECT_ID, value: raw() });

/** The DER of a reqSequence is also the input to an identity proof. */
const REQ_SEQUENCE = listOf(TAGGED_REQUEST);
export const encodeReqSequence = REQ_SEQUENCE.encode;

/** Maximum parts per message; nested messages have their own count. */
export const MAX_BODY_PARTS = 256;

const PKI_RESPONSE = {
  controlSequence: TAGGED_ATTRIBUTE,
  cmsSequence: TAGGED_CONTENT_INFO,
  otherMsgSequence: OTHER_MSG,
};
const PKI_DATA = {
  controlSequence: TAGGED_ATTRIBUTE,
  reqSequence: TAGGED_REQUEST,
  cmsSequence: TAGGED_CONTENT_INFO,
  otherMsgSequence: OTHER_MSG,
};

type Sequences = Readonly<Record<string, AnySyntax>>;
type PartsOf<S extends Sequences> = { readonly [K in keyof S]: readonly ValueOf<S[K]>[] };

export type PkiDataContent = PartsOf<typeof PKI_DATA>;

export interface PkiData extends PkiDataContent {
  /** The reqSequence as received, including the header: the identity proofs cover it (§6.2.1). */
  readonly reqSequenceBytes: Buffer;
}

/**
 * @param content the encapsulated content of a full PKI request, as received (BER is accepted)
 * @throws CmcError `malformed`, `body-part-id-zero`, `body-part-id-range`, `body-part-id-duplicate`, `too-many-parts`
 */
export function parsePkiData(content: Buffer): PkiData {
  return reading('PKIData', () => {
    const data = parseParts('PKIData', content, PKI_DATA);
    const [, reqSequenceBytes = Buffer.alloc(0)] = berElements(content);
    return { ...data, reqSequenceBytes };
  });
}

/** {@link parsePkiData} for the content of a full PKI response. */
export const parsePkiResponse = (content: Buffer): PartsOf<typeof PKI_RESPONSE> =>
  reading('PKIResponse', () => parseParts('PKIResponse', content, PKI_RESPONSE));

/** DER of PKIData. @throws RangeError for a bodyPartID out of range */
export const buildPkiData = (data: Partial<PkiDataContent>): Buffer => encodeParts(data, PKI_DATA);

/** DER of PKIResponse. @throws RangeError for a bodyPartID out of range */
export const buildPkiResponse = (response: Partial<PartsOf<typeof PKI_RESPONSE>>): Buffer =>
  encodeParts(response, PKI_RESPONSE);

function parseParts<S extends Sequences>(what: string, content: Buffer, sequences: S): PartsOf<S> {
  const reader = DerReader.of(berToDer(content), what);
  const all: { readonly bodyPartID: BodyPartID }[] = [];
  const found = Object.entries(sequences).map(([name, { read }]) => {
    const list = reader.enter(Tag.SEQUENCE, name);
    const parts: unknown[] = [];
    for (; !list.done; parts.push(all.at(-1))) {
      if (all.length === MAX_BODY_PARTS) throw tooManyParts();
      all.push(read(list.next()) as { bodyPartID: BodyPartID });
    }
    return [name, parts];
  });
  reader.end();
  checkBodyPartIDs(all);
  return Object.fromEntries(found) as PartsOf<S>;
}

function encodeParts<S extends Sequences>(parts: Partial<PartsOf<S>>, sequences: S): Buffer {
  const lists = Object.entries(sequences).map(([name, item]) =>
    sequence(...(parts[name] ?? []).map((part) => encodeAs(item, part))),
  );
  return sequence(...lists);
}

function reading<T>(what: string, read: () => T): T {
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

const tooManyParts = (): CmcError =>
  new CmcError('too-many-parts', [CURRENT_MESSAGE], `The message has more than ${MAX_BODY_PARTS} body parts.`);

/** RFC 5272 §3.2.2: no bodyPartID is 0, and none occurs twice. */
function checkBodyPartIDs(all: readonly { readonly bodyPartID: BodyPartID }[]): void {
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
