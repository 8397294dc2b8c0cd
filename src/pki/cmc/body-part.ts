/** Body part identifiers and references to them (RFC 5272 §3.2.2, §6.1.1). */
import { DerError, Tag, integer, readBigInt } from '../der/der.ts';
import { listOf, syntax } from '../der/syntax.ts';

/** 1 to 4294967295; 0 denotes the message itself. */
export type BodyPartID = number;

/** A path names a part of a nested message: each identifier is one of the message that the previous one identifies. */
export type BodyPartReference = BodyPartID | readonly BodyPartID[];

/** bodyIdMax. */
const MAX_BODY_PART_ID = 4_294_967_295;

export const CURRENT_MESSAGE: BodyPartID = 0;

export class BodyPartIDOutOfRange extends DerError {
  constructor(what: string) {
    super(`${what}: not between 0 and ${MAX_BODY_PART_ID}`);
    this.name = 'BodyPartIDOutOfRange';
  }
}

/** Encoding throws RangeError for a number outside 0..4294967295. */
export const BODY_PART_ID = syntax<BodyPartID>(
  Tag.INTEGER,
  (element, what) => {
    if (element.value.length > 5) throw new BodyPartIDOutOfRange(what);
    const value = readBigInt(element, what);
    if (value < 0n || value > MAX_BODY_PART_ID) throw new BodyPartIDOutOfRange(what);
    return Number(value);
  },
  (id) => {
    if (!Number.isInteger(id) || id < 0 || id > MAX_BODY_PART_ID) throw new RangeError(`${id} is not a bodyPartID`);
    return integer(id);
  },
);

/** BodyPartList or BodyPartPath (same syntax): SEQUENCE SIZE (1..MAX) OF BodyPartID. */
export const BODY_PART_LIST = listOf(BODY_PART_ID, 1);

export const BODY_PART_REFERENCES = listOf(
  syntax<BodyPartReference>(
    undefined,
    (element, what) => (element.tag === Tag.SEQUENCE ? BODY_PART_LIST : BODY_PART_ID).read(element, what),
    (reference) => (typeof reference === 'number' ? BODY_PART_ID.encode(reference) : BODY_PART_LIST.encode(reference)),
  ),
  1,
);
