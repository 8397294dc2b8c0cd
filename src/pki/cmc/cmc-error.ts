/** Errors in CMC messages: the violated rule and the body parts concerned. */
import type { BodyPartID } from './body-part.ts';
import type { CmcFailInfoName } from './status-info.ts';

/** The rules of RFC 5272 that are checked before a message is processed. */
type CmcRule =
  /** Not the DER of a PKIData or PKIResponse, or of a part of one (§3.2.1, §4.2.1). */
  | 'malformed'
  /** A bodyPartID of 0, which is reserved for the message itself (§3.2.2). */
  | 'body-part-id-zero'
  /** A bodyPartID that is negative or above 4294967295 (§3.2.2). */
  | 'body-part-id-range'
  /** Two parts of one message with the same bodyPartID (§3.2.2). */
  | 'body-part-id-duplicate'
  /** More parts than MAX_BODY_PARTS. */
  | 'too-many-parts'
  /** A control whose value has the wrong type, or that does not have exactly one value (§3.2.1.1). */
  | 'control-malformed'
  /** A certification request that violates its own format or the restrictions of §3.2.1.2. */
  | 'request-malformed'
  | 'proof-of-possession'
  /** An algorithm that is unknown or too weak. */
  | 'algorithm';

/**
 * A message, or a part of one, that cannot be processed. `message` is public and tells the client what to fix.
 * `bodyPartIDs` are the parts that the response's status names; 0 denotes the whole message.
 */
export class CmcError extends Error {
  readonly rule: CmcRule;
  readonly failInfo: CmcFailInfoName;
  readonly bodyPartIDs: readonly BodyPartID[];

  constructor(
    rule: CmcRule,
    bodyPartIDs: readonly BodyPartID[],
    message: string,
    failInfo: CmcFailInfoName = 'badRequest',
    cause?: unknown,
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'CmcError';
    this.rule = rule;
    this.bodyPartIDs = bodyPartIDs;
    this.failInfo = failInfo;
  }
}
