/** Readers and writers of ASN.1 types. All readers throw DerError. */
import {
  DerError,
  DerReader,
  Tag,
  children,
  integerBytes,
  octetString,
  oid,
  readOid,
  readString,
  sequence,
  tlv,
  utf8String,
  type DerElement,
} from '../der/der.ts';
import {
  encodeBodyPartID,
  encodeBodyPartList,
  encodeBodyPartReferences,
  readBodyPartID,
  readBodyPartList,
  readBodyPartReferences,
  type BodyPartID,
  type BodyPartReference,
} from './body-part.ts';

export interface AlgorithmIdentifier {
  readonly oid: string;
  /** DER of the parameters, where there are any. */
  readonly parameters?: Buffer;
}

/** Reader and writer of one ASN.1 type. */
export interface Syntax<T> {
  readonly read: (element: DerElement) => T;
  readonly encode: (value: T) => Buffer;
}

export function fields(element: DerElement, what: string): DerReader {
  if (element.tag !== Tag.SEQUENCE) throw new DerError(`${what}: unexpected tag`);
  return new DerReader(element.value, what);
}

function expect(element: DerElement, tag: number, what: string): DerElement {
  if (element.tag !== tag) throw new DerError(`${what}: unexpected tag`);
  return element;
}

export const present = (bytes: Buffer | undefined): Buffer[] => (bytes === undefined ? [] : [bytes]);

// --- simple types ----------------------------------------------------------------------------------------------

export const OCTETS: Syntax<Buffer> = {
  read: (element) => expect(element, Tag.OCTET_STRING, 'OCTET STRING').value,
  encode: octetString,
};

export const UTF8: Syntax<string> = {
  read: (element) => readString(expect(element, Tag.UTF8_STRING, 'UTF8String'), 'UTF8String'),
  encode: utf8String,
};

/** An INTEGER of any size as lowercase hex of its content octets: transactionIds are compared, never computed with. */
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

/** ControlsProcessed (§6.19) wraps the references in a SEQUENCE. */
export const CONTROLS_PROCESSED: Syntax<readonly BodyPartReference[]> = {
  read: (element) => {
    const reader = fields(element, 'ControlsProcessed');
    const references = readBodyPartReferences(reader.next(Tag.SEQUENCE, 'bodyList'));
    reader.end();
    return references;
  },
  encode: (references) => sequence(encodeBodyPartReferences(references)),
};

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

export function readOctetStrings(element: DerElement, what: string): Buffer[] {
  return children(element.value, what).map((one) => expect(one, Tag.OCTET_STRING, what).value);
}
