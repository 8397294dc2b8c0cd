/** What simpleenroll and simplereenroll share: from an authenticated request to its answer. */
import type { AuditEvent } from '../../audit/event.ts';
import type { PopLinking } from '../../auth/channel-binding.ts';
import type { EstAuthenticator } from '../../auth/est-authenticator.ts';
import type { OtpService } from '../../auth/otp/otp-service.ts';
import type { Identity } from '../../auth/identity.ts';
import type { ClientIdBinding } from '../../enrollment/authorise.ts';
import type { Enrollment } from '../../enrollment/enrollment.ts';
import { EstuaryError } from '../../errors.ts';
import { recogniseOwnKey, type RecognisedCsr } from '../../enrollment/request.ts';
import { parseCsr, verifyCsr, type VerifiedCsr } from '../../pki/pkcs10/csr.ts';
import { DerError } from '../../pki/der/der.ts';
import { certsOnly } from '../../pki/cms/pkcs7.ts';
import type { Store } from '../../store/store.ts';
import { decodeBody, encodeBody } from './codec.ts';
import {
  CERTS_ONLY,
  derAnswer,
  pendingAnswer,
  type EstAnswer,
  type EstRequest,
  type OperationName,
} from './operation.ts';

export interface EnrollDependencies {
  readonly authenticator: EstAuthenticator;
  readonly otp: OtpService;
  readonly enrollment: Enrollment;
  readonly store: Store;
  /** Seconds in Retry-After. */
  readonly retryAfter: number;
  readonly clientIdBinding: ClientIdBinding;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

/** base64 of a PKCS#10 with a valid signature (its proof of possession). */
export async function readCsr(body: Buffer): Promise<VerifiedCsr> {
  return verifyCsr(parseCsr(decodeBody(body)));
}

/** An authenticated requester, with the audit events of the authentication that are still to be committed. */
export interface Requester {
  readonly identity: Identity;
  readonly events: readonly AuditEvent[];
}

export interface AuthenticationRules {
  readonly certificateOnly: boolean;
  readonly expiredGraceSeconds: number;
  /** What a queued request of this operation is recognised by. @throws DerError or EstuaryError 400 where there is no CSR */
  readonly recognise: (der: Buffer) => RecognisedCsr;
}

/** For operations that certify the key of the CSR. */
export const recogniseCsr = (der: Buffer): RecognisedCsr => recogniseOwnKey(parseCsr(der));

/** Authenticates; the events of a success are committed with what comes of the request. */
export async function authenticate(
  dependencies: EnrollDependencies,
  operation: OperationName,
  request: EstRequest,
  rules: AuthenticationRules,
): Promise<Requester> {
  const events: AuditEvent[] = [];
  const { certificateOnly, expiredGraceSeconds, recognise } = rules;
  const context = {
    certificateOnly,
    expiredGraceSeconds,
    operation,
    caLabel: request.ca.label,
    now: dependencies.now(),
    events,
  };
  const identity = await dependencies.authenticator.authenticate(request.presented, context);
  if (
    identity.method === 'otp' &&
    !identity.usable &&
    !(await isPoll(dependencies, request, { operation, identity, recognise }))
  )
    await dependencies.otp.refuseConsumed(identity, { ...context, address: request.presented.address });
  return { identity, events };
}

/** Whether a token without a use left comes with the request that it was used for; bad bytes are no such request. */
async function isPoll(
  { enrollment }: EnrollDependencies,
  request: EstRequest,
  {
    operation,
    identity,
    recognise,
  }: { operation: OperationName; identity: Identity } & Pick<AuthenticationRules, 'recognise'>,
): Promise<boolean> {
  let csr: RecognisedCsr;
  try {
    csr = recognise(decodeBody(request.body));
  } catch (error) {
    if (error instanceof DerError || (error instanceof EstuaryError && error.status === 400)) return false;
    throw error;
  }
  return enrollment.isQueued(request.ca.label, operation, identity, csr);
}

/** Asks for the certificate and answers with it alone (contract §3), or with 202. */
export async function enrollAndAnswer(
  dependencies: EnrollDependencies,
  operation: OperationName,
  request: EstRequest,
  { identity, events }: Requester,
  csr: VerifiedCsr,
): Promise<EstAnswer> {
  const outcome = await dependencies.enrollment.enroll({
    requestId: request.requestId,
    operation,
    ca: request.ca,
    identity,
    address: request.presented.address,
    csr,
    events,
    linking: linkingTo(request),
  });
  const answer =
    outcome.status === 'pending'
      ? pendingAnswer(dependencies.retryAfter)
      : derAnswer(CERTS_ONLY, encodeBody(certsOnly([outcome.certificate]), request.lineLength));
  return withNegotiate(answer, identity);
}

/** EST has the channel binding alone to link a key to the connection (RFC 7030 §3.5). */
export function linkingTo(request: EstRequest): PopLinking {
  return { kind: 'connection', binding: () => request.channelBinding(), linked: false };
}

/** RFC 4559 §5: the token of mutual authentication goes back with the success. */
export function withNegotiate(answer: EstAnswer, identity: Identity): EstAnswer {
  if (identity.method !== 'gssapi' || identity.replyToken === undefined) return answer;
  return { ...answer, headers: { ...answer.headers, 'WWW-Authenticate': `Negotiate ${identity.replyToken}` } };
}

/** Runs what follows authentication; a refusal (4xx) of an authenticated requester is audited before it is answered. */
export async function denialsAudited(
  dependencies: EnrollDependencies,
  operation: OperationName,
  request: EstRequest,
  { identity, events }: Requester,
  work: () => Promise<EstAnswer>,
): Promise<EstAnswer> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof EstuaryError && error.status < 500) {
      const denied: AuditEvent = {
        type: 'certificate.denied',
        outcome: 'failure',
        subject: identity.display,
        address: request.presented.address,
        ca: request.ca.label,
        request_id: request.requestId,
        detail: `${operation}: ${error.code}`,
      };
      await dependencies.store.audit([...events, denied]);
    }
    throw error;
  }
}
