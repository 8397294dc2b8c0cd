/** Body part identifiers and references to them (RFC 5272 §3.2.2, §6.1.1). */
import { DerError, Tag, children, integer, readBigInt, sequence, type DerElement } from '../der/der.ts';

/** 1 to 4294967295; 0 denotes the message itself. */
export type BodyPartID = number;

/** A path through nested messages: each identifier names a part of the message that the previous one identifies. */
export type BodyPartPath = readonly BodyPartID[];

export type BodyPartReference = BodyPartID | BodyPartPath;

/** bodyIdMax. */
const MAX_BODY_PART_ID = 4_294_967_295;

export const CURRENT_MESSAGE: BodyPartID = 0;

export class BodyPartIDOutOfRange extends DerError {
  constructor(what: string) {
    super(`${what}: not between 0 and ${MAX_BODY_PART_ID}`);
    this.name = 'BodyPartIDOutOfRange';
  }
}

export function readBodyPartID(element: DerElement, what = 'bodyPartID'): BodyPartID {
  if (element.tag !== Tag.INTEGER) throw new DerError(`${what}: unexpected tag`);
  if (element.value.length > 5) throw new BodyPartIDOutOfRange(what);
  const value = readBigInt(element, what);
  if (value < 0n || value > MAX_BODY_PART_ID) throw new BodyPartIDOutOfRange(what);
  return Number(value);
}

/** @throws RangeError for a number outside 0..4294967295 */
export function encodeBodyPartID(id: BodyPartID): Buffer {
  if (!Number.isInteger(id) || id < 0 || id > MAX_BODY_PART_ID) throw new RangeError(`${id} is not a bodyPartID`);
  return integer(id);
}

/** BodyPartList or BodyPartPath (same syntax): SEQUENCE SIZE (1..MAX) OF BodyPartID. */
export function readBodyPartList(element: DerElement, what = 'BodyPartList'): BodyPartID[] {
  if (element.tag !== Tag.SEQUENCE) throw new DerError(`${what}: unexpected tag`);
  const ids = children(element.value, what).map((id) => readBodyPartID(id, what));
  if (ids.length === 0) throw new DerError(`${what}: empty`);
  return ids;
}

export function encodeBodyPartList(ids: readonly BodyPartID[]): Buffer {
  return sequence(...ids.map(encodeBodyPartID));
}

/** SEQUENCE SIZE (1..MAX) OF BodyPartReference. @throws DerError */
export function readBodyPartReferences(element: DerElement, what = 'bodyList'): BodyPartReference[] {
  if (element.tag !== Tag.SEQUENCE) throw new DerError(`${what}: unexpected tag`);
  const references = children(element.value, what).map((reference) =>
    reference.tag === Tag.SEQUENCE ? readBodyPartList(reference, what) : readBodyPartID(reference, what),
  );
  if (references.length === 0) throw new DerError(`${what}: empty`);
  return references;
}

export function encodeBodyPartReferences(references: readonly BodyPartReference[]): Buffer {
  return sequence(
    ...references.map((reference) =>
      typeof reference === 'number' ? encodeBodyPartID(reference) : encodeBodyPartList(reference),
    ),
  );
}
