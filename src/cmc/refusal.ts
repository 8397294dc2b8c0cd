/** Why a message, or a part of it, is not done: as HTTP and as CMC say it (docs/cmc.md has the table). */
import { describe, EstuaryError } from '../errors.ts';
import { DerError } from '../pki/der/der.ts';
import type { BodyPartReference } from '../pki/cmc/body-part.ts';
import { CmcError } from '../pki/cmc/cmc-error.ts';
import type { CmcFailInfoName, CmcStatusInfo } from '../pki/cmc/status-info.ts';

/** The HTTP status of a message of which nothing was done. */
export type RefusalStatus = 400 | 401 | 403 | 500 | 503;

export interface RefusalOptions {
  /** For the log only. */
  readonly detail?: string | undefined;
  /** Seconds. */
  readonly retryAfter?: number | undefined;
  /** The audit log has it already. */
  readonly audited?: boolean;
}

/** `message` is public: it goes into the statusString. */
export class CmcRefusal extends Error {
  readonly httpStatus: RefusalStatus;
  /** undefined: noSupport, which has none. */
  readonly failInfo: CmcFailInfoName | undefined;
  readonly bodyList: readonly BodyPartReference[];
  readonly detail: string | undefined;
  readonly retryAfter: number | undefined;
  readonly audited: boolean;

  constructor(
    httpStatus: RefusalStatus,
    failInfo: CmcFailInfoName | undefined,
    bodyList: readonly BodyPartReference[],
    message: string,
    { detail, retryAfter, audited = false }: RefusalOptions = {},
  ) {
    super(message);
    this.name = 'CmcRefusal';
    this.httpStatus = httpStatus;
    this.failInfo = failInfo;
    this.bodyList = bodyList;
    this.detail = detail;
    this.retryAfter = retryAfter;
    this.audited = audited;
  }

  get statusInfo(): CmcStatusInfo {
    const { failInfo, bodyList, message: statusString } = this;
    return failInfo === undefined
      ? { status: 'noSupport', bodyList, statusString }
      : { status: 'failed', bodyList, statusString, otherInfo: { failInfo } };
  }

  /** The same about other parts: a rule that one request breaks for all of them. */
  about(...bodyList: readonly BodyPartReference[]): CmcRefusal {
    return new CmcRefusal(this.httpStatus, this.failInfo, bodyList, this.message, this);
  }
}

/** 401 badIdentity: nobody authenticated. */
export const unauthenticated = (bodyPart: BodyPartReference, message: string, detail?: string): CmcRefusal =>
  new CmcRefusal(401, 'badIdentity', [bodyPart], message, { detail });

/** 403 badIdentity: authenticated, but not allowed to ask for this. */
export const notAllowed = (bodyPart: BodyPartReference, message: string, detail?: string): CmcRefusal =>
  new CmcRefusal(403, 'badIdentity', [bodyPart], message, { detail });

/** 400 badRequest. */
export const badMessage = (bodyPart: BodyPartReference, message: string): CmcRefusal =>
  new CmcRefusal(400, 'badRequest', [bodyPart], message);

/** 400 badMessageCheck: the integrity check of the whole message failed. */
export const badMessageCheck = (message: string): CmcRefusal => new CmcRefusal(400, 'badMessageCheck', [0], message);

/** What policy and the CA refuse, where it is not a badRequest. */
const FAIL_INFO: ReadonlyMap<string, CmcFailInfoName> = new Map<string, CmcFailInfoName>([
  ['KEY_TYPE_NOT_ALLOWED', 'badAlg'],
  ['KEY_USAGE_NOT_ALLOWED', 'unsupportedExt'],
  ['EXTENDED_KEY_USAGE_NOT_ALLOWED', 'unsupportedExt'],
  ['CA_NOT_ALLOWED', 'unsupportedExt'],
  ['EXTENSION_NOT_ALLOWED', 'unsupportedExt'],
  ['EXTENSION_MALFORMED', 'unsupportedExt'],
  ['REQUEST_REJECTED', 'badRequest'],
  // RFC 7030 §3.5
  ['POP_LINKING_MISSING', 'popFailed'],
  ['POP_LINKING_MISMATCH', 'popFailed'],
]);

/**
 * Anything thrown, as what the client is told of it; what nobody foresaw is an internalCAError without a word of why.
 *
 * @param bodyPart what the error is about where it does not say so itself
 */
export function asRefusal(error: unknown, bodyPart: BodyPartReference): CmcRefusal {
  if (error instanceof CmcRefusal) return error;
  if (error instanceof CmcError) return new CmcRefusal(400, error.failInfo, error.bodyPartIDs, error.message);
  if (error instanceof DerError)
    return new CmcRefusal(400, 'badRequest', [bodyPart], `The message is not valid: ${error.message}.`);
  if (error instanceof EstuaryError) {
    const { message, detail, retryAfter } = error;
    const [httpStatus, failInfo] = meaning(error);
    return new CmcRefusal(httpStatus, failInfo, [bodyPart], message, {
      detail,
      retryAfter,
      audited: error.code === 'LOCKED_OUT',
    });
  }
  return new CmcRefusal(500, 'internalCAError', [bodyPart], 'The server could not process the request.', {
    detail: error instanceof Error ? (error.stack ?? error.message) : describe(error),
  });
}

function meaning({ kind, code }: EstuaryError): [RefusalStatus, CmcFailInfoName] {
  const failInfo = FAIL_INFO.get(code);
  switch (kind) {
    case 'unauthenticated':
      return [401, failInfo ?? 'badIdentity'];
    case 'forbidden':
      return [403, failInfo ?? 'badIdentity'];
    case 'unavailable':
      return [503, 'tryLater'];
    case 'failure':
      return [500, 'internalCAError'];
    case 'bad-request':
      return [400, failInfo ?? 'badRequest'];
  }
}
