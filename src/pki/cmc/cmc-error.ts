/** What is wrong with a CMC message, by the rule it breaks and the body parts that break it. */
import type { BodyPartID } from './body-part.ts';
import type { CmcFailInfoName } from './status-info.ts';

/** The rules of RFC 5272 that a message can break before anything in it is acted on. */
type CmcRule =
  /** Not the DER of a PKIData or PKIResponse, or of one of its parts (§3.2.1, §4.2.1). */
  | 'malformed'
  /** A bodyPartID that is 0, which stands for the message itself (§3.2.2). */
  | 'body-part-id-zero'
  /** A bodyPartID that is negative or above 4294967295 (§3.2.2). */
  | 'body-part-id-range'
  /** Two parts of one message with the same bodyPartID (§3.2.2). */
  | 'body-part-id-duplicate'
  /** More parts than we are willing to read. */
  | 'too-many-parts'
  /** A control whose value is not of its type, or that has not exactly one value (§3.2.1.1). */
  | 'control-malformed'
  /** A certification request that breaks its own format, or the restrictions of §3.2.1.2. */
  | 'request-malformed'
  /** Proof of possession that is missing, of a kind that is not accepted, or wrong. */
  | 'proof-of-possession'
  /** An algorithm that is unknown or too weak. */
  | 'algorithm';

/**
 * A message or a part of it that cannot be processed. `message` is public: one sentence that a person can act on.
 * `bodyPartIDs` are what the status of the answer is about; 0 stands for the whole message.
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
