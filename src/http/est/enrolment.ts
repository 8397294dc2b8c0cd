/** How simpleenroll, simplereenroll and serverkeygen read a request and answer it; what lies between is `enrollment`. */
import type { Enrollment, Enrolled } from '../../enrollment/enrollment.ts';
import type { EstEnrolment, ReceivedByEst } from '../../enrollment/request.ts';
import { EstuaryError } from '../../errors.ts';
import { certsOnly } from '../../pki/cms/pkcs7.ts';
import { decodeBody, encodeBody } from './codec.ts';
import { multipart } from './multipart.ts';
import {
  CERTS_ONLY,
  derAnswer,
  pendingAnswer,
  type EstAnswer,
  type EstOperation,
  type EstRequest,
} from './operation.ts';

export interface EnrolmentDependencies {
  readonly enrollment: Enrollment;
  /** Seconds in Retry-After. */
  readonly retryAfter: number;
}

/** One of the operations that come to a certificate. */
export function enrolment(
  name: EstEnrolment,
  shape: Pick<EstOperation, 'enabled' | 'challenges'>,
  { enrollment, retryAfter }: EnrolmentDependencies,
): EstOperation {
  return {
    ...shape,
    name,
    method: 'POST',
    requestType: 'application/pkcs10',
    handle: async (request) => {
      const enrolled = await enrollment.enroll(received(name, request));
      return withNegotiate(answer(enrolled, request, retryAfter), enrolled);
    },
  };
}

function received(operation: EstEnrolment, request: EstRequest): ReceivedByEst {
  const { requestId, ca, presented, body } = request;
  return {
    requestId,
    operation,
    ca,
    address: presented.address,
    presented,
    // EST has the channel binding alone to link a key to the connection (RFC 7030 §3.5).
    linking: { kind: 'connection', binding: () => request.channelBinding(), linked: false },
    body: decodedOrWhyNot(body),
    isGone: () => request.isGone(),
  };
}

function decodedOrWhyNot(body: Buffer): Buffer | EstuaryError {
  try {
    return decodeBody(body);
  } catch (error) {
    if (error instanceof EstuaryError) return error;
    throw error;
  }
}

/** 202; the certificate alone; or the certificate first and its key second, which clients tell by their Content-Type. */
function answer({ outcome }: Enrolled, { lineLength }: EstRequest, retryAfter: number): EstAnswer {
  if (outcome.status === 'pending') return pendingAnswer(retryAfter);
  const certificate = certsOnly([outcome.certificate]);
  if (outcome.key === undefined) return derAnswer(CERTS_ONLY, encodeBody(certificate, lineLength));
  try {
    const { contentType, body } = multipart([{ contentType: CERTS_ONLY, der: certificate }, outcome.key], lineLength);
    return { status: 200, headers: { 'Content-Type': contentType }, body };
  } finally {
    outcome.key.der.fill(0);
  }
}

/** RFC 4559 §5: the token of mutual authentication goes back with the success. */
function withNegotiate(answered: EstAnswer, { identity }: Enrolled): EstAnswer {
  if (identity.method !== 'gssapi' || identity.replyToken === undefined) return answered;
  return { ...answered, headers: { ...answered.headers, 'WWW-Authenticate': `Negotiate ${identity.replyToken}` } };
}
