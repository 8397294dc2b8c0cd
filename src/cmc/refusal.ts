/**
 * The outcomes of a message's parts, and why a message, or a part of it, is not done: as HTTP and as CMC say it
 * (docs/guides/cmc.md has the table).
 */
import type { AuditEvent } from '../audit/event.ts';
import { requestsOwnNames } from '../enrollment/names.ts';
import { deniedEvent } from '../enrollment/request.ts';
import { describe, EstuaryError, type ErrorKind } from '../errors.ts';
import { DerError } from '../pki/der/der.ts';
import type { BodyPartID, BodyPartReference } from '../pki/cmc/body-part.ts';
import { CmcError } from '../pki/cmc/cmc-error.ts';
import type { CmcCertificateRequest } from '../pki/cmc/tagged-request.ts';
import type { TaggedContentInfo } from '../pki/cmc/pki-data.ts';
import type { CmcFailInfoName, CmcStatusInfo } from '../pki/cmc/status-info.ts';
import type { Origin, Sender } from './sender.ts';

const HTTP_STATUS = {
  'bad-request': 400,
  unauthenticated: 401,
  forbidden: 403,
  failure: 500,
  unavailable: 503,
} as const satisfies Readonly<Record<ErrorKind, number>>;
export type RefusalStatus = (typeof HTTP_STATUS)[ErrorKind];

interface RefusalOptions {
  /** For the log only. */
  readonly detail?: string | undefined;
  readonly retryAfter?: number | undefined;
  /** Of the error. */
  readonly code?: string;
  /** Already in the audit log. */
  readonly audited?: boolean;
}

/** `message` is public: it becomes the statusString. */
export class CmcRefusal extends Error {
  readonly kind: ErrorKind;
  /** undefined for noSupport, which has none. */
  readonly failInfo: CmcFailInfoName | undefined;
  readonly bodyList: readonly BodyPartReference[];
  readonly detail: string | undefined;
  readonly retryAfter: number | undefined;
  readonly code: string;
  readonly audited: boolean;

  constructor(
    kind: ErrorKind,
    failInfo: CmcFailInfoName | undefined,
    bodyList: readonly BodyPartReference[],
    message: string,
    { detail, retryAfter, code = 'BAD_REQUEST', audited = false }: RefusalOptions = {},
  ) {
    super(message);
    this.name = 'CmcRefusal';
    this.kind = kind;
    this.failInfo = failInfo;
    this.bodyList = bodyList;
    this.detail = detail;
    this.retryAfter = retryAfter;
    this.code = code;
    this.audited = audited;
  }

  get httpStatus(): RefusalStatus {
    return HTTP_STATUS[this.kind];
  }

  /** Whether the message is not at fault: the same one may succeed later. */
  get isOurs(): boolean {
    return this.kind === 'failure' || this.kind === 'unavailable';
  }

  get statusInfo(): CmcStatusInfo {
    const { failInfo, bodyList, message: statusString } = this;
    return failInfo === undefined
      ? { status: 'noSupport', bodyList, statusString }
      : { status: 'failed', bodyList, statusString, otherInfo: { failInfo } };
  }

  /** The same rejection for other parts. */
  about(...bodyList: readonly BodyPartReference[]): CmcRefusal {
    return new CmcRefusal(this.kind, this.failInfo, bodyList, this.message, this);
  }
}

/** 400 badCertId. */
export const unknownCertificate = (bodyPart: BodyPartReference): CmcRefusal =>
  new CmcRefusal('bad-request', 'badCertId', [bodyPart], 'This CA has issued no such certificate.');

/** 401 badIdentity: the sender is not authenticated. */
export const unauthenticated = (bodyPart: BodyPartReference, message: string, detail?: string): CmcRefusal =>
  new CmcRefusal('unauthenticated', 'badIdentity', [bodyPart], message, { detail });

/** 403 badIdentity: authenticated but not permitted. */
export const notAllowed = (bodyPart: BodyPartReference, message: string, detail?: string): CmcRefusal =>
  new CmcRefusal('forbidden', 'badIdentity', [bodyPart], message, { detail });

export const badMessage = (bodyPart: BodyPartReference, message: string): CmcRefusal =>
  new CmcRefusal('bad-request', 'badRequest', [bodyPart], message);

/** 400 badMessageCheck: the integrity check of the whole message failed. */
export const badMessageCheck = (message: string): CmcRefusal =>
  new CmcRefusal('bad-request', 'badMessageCheck', [0], message);

/** failInfo of rejections by policy and CA other than badRequest. */
const FAIL_INFO: ReadonlyMap<string, CmcFailInfoName> = new Map<string, CmcFailInfoName>([
  ['KEY_TYPE_NOT_ALLOWED', 'badAlg'],
  ['KEY_USAGE_NOT_ALLOWED', 'unsupportedExt'],
  ['EXTENDED_KEY_USAGE_NOT_ALLOWED', 'unsupportedExt'],
  ['CA_NOT_ALLOWED', 'unsupportedExt'],
  ['EXTENSION_NOT_ALLOWED', 'unsupportedExt'],
  ['ATTRIBUTE_NOT_ALLOWED', 'unsupportedExt'],
  ['EXTENSION_MALFORMED', 'unsupportedExt'],
  ['REQUEST_REJECTED', 'badRequest'],
  ['AUTHORIZATION_DENIED', 'badRequest'],
  // RFC 7030 §3.5.
  ['POP_LINKING_MISSING', 'popFailed'],
  ['POP_LINKING_MISMATCH', 'popFailed'],
]);

/**
 * Converts any error; unexpected ones become internalCAError without details.
 * @param bodyPart default for errors that name no part
 */
export function asRefusal(error: unknown, bodyPart: BodyPartReference): CmcRefusal {
  if (error instanceof CmcRefusal) return error;
  if (error instanceof CmcError) return new CmcRefusal('bad-request', error.failInfo, error.bodyPartIDs, error.message);
  if (error instanceof DerError)
    return new CmcRefusal('bad-request', 'badRequest', [bodyPart], `The message is not valid: ${error.message}.`);
  if (error instanceof EstuaryError) {
    const { message, detail, retryAfter, code } = error;
    return new CmcRefusal(error.kind, failInfoOf(error), [bodyPart], message, {
      detail,
      retryAfter,
      code,
      audited: code === 'LOCKED_OUT',
    });
  }
  return new CmcRefusal('failure', 'internalCAError', [bodyPart], 'The server could not process the request.', {
    detail: error instanceof Error ? (error.stack ?? error.message) : describe(error),
  });
}

function failInfoOf({ kind, code }: EstuaryError): CmcFailInfoName {
  switch (kind) {
    case 'unavailable':
      return 'tryLater';
    case 'failure':
      return 'internalCAError';
    case 'unauthenticated':
    case 'forbidden':
      return FAIL_INFO.get(code) ?? 'badIdentity';
    case 'bad-request':
      return FAIL_INFO.get(code) ?? 'badRequest';
  }
}

export type PartOutcome =
  | {
      readonly kind: 'done';
      readonly bodyPart: BodyPartReference;
      /** DER of certificates for the response's SignedData. */
      readonly certificates?: readonly Buffer[];
      readonly crls?: readonly Buffer[];
      /** Responses to the messages of a batch, in order. */
      readonly responses?: readonly TaggedContentInfo[];
      /** A repeated message may have another outcome. */
      readonly unsettled?: boolean;
    }
  | { readonly kind: 'pending'; readonly bodyPart: BodyPartReference; readonly requestId: string }
  | { readonly kind: 'refused'; readonly refusal: CmcRefusal };

export const done = (
  bodyPart: BodyPartReference,
  more: Omit<Extract<PartOutcome, { kind: 'done' }>, 'kind' | 'bodyPart'> = {},
): PartOutcome => ({ kind: 'done', bodyPart, ...more });

/** Runs the work on one part; an error becomes that part's rejection. */
export async function outcomeOf(bodyPart: BodyPartID, work: () => Promise<PartOutcome>): Promise<PartOutcome> {
  try {
    return await work();
  } catch (error) {
    return { kind: 'refused', refusal: asRefusal(error, bodyPart) };
  }
}

/** Audit events of rejections to a known sender; internal failures are audited where they occur. */
export function denials(
  outcomes: readonly PartOutcome[],
  requests: readonly { readonly bodyPartID: BodyPartID; readonly request?: CmcCertificateRequest }[],
  { identity }: Pick<Sender, 'identity'>,
  { address, ca, requestId }: Pick<Origin, 'address' | 'ca'> & { readonly requestId: string },
): AuditEvent[] {
  const origin = { identity, address, ca, requestId };
  return outcomes.flatMap((outcome) => {
    if (outcome.kind !== 'refused' || outcome.refusal.isOurs) return [];
    const { bodyList, code, failInfo = 'noSupport', message } = outcome.refusal;
    // Body part 0 is the whole message.
    const isRenewal = requests.some(
      (part) =>
        bodyList.some((id) => id === 0 || id === part.bodyPartID) && requestsOwnNames(identity, () => part.request),
    );
    const why = `body part ${bodyList.join(', ')}: ${failInfo}: ${code}`;
    return [deniedEvent(origin, 'fullcmc', why, message, isRenewal)];
  });
}
