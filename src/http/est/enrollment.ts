/** HTTP side of simpleenroll, simplereenroll and serverkeygen; `enrollment` does the rest. */
import { randomBytes } from 'node:crypto';
import type { Enrolled, Enrollment } from '../../enrollment/enrollment.ts';
import type { EstEnrollment, ReceivedByEst } from '../../enrollment/request.ts';
import { EstuaryError } from '../../errors.ts';
import { certsOnly } from '../../pki/cms/cms.ts';
import { decodeBody, encodeBody } from './codec.ts';
import {
  CERTS_ONLY,
  derAnswer,
  type EstAnswer,
  type EstOperation,
  type EstRequest,
  pendingAnswer,
} from './operation.ts';

/** multipart/mixed (RFC 2046 §5.1) of base64 parts, as EST clients read it. */
interface Part {
  readonly contentType: string;
  readonly der: Buffer;
}

/**
 * @param lineLength columns per base64 line, or undefined for one line
 * @returns Content-Type, and a body that ends with the closing boundary: an epilogue breaks Bouncy Castle
 */
export function multipart(
  parts: readonly Part[],
  lineLength: number | undefined,
): { readonly contentType: string; readonly body: string } {
  const boundary = `estuary-${randomBytes(16).toString('hex')}`;
  const texts = parts.map(
    ({ contentType, der }) =>
      `--${boundary}\r\nContent-Type: ${contentType}\r\nContent-Transfer-Encoding: base64\r\n\r\n` +
      encodeBody(der, lineLength).replaceAll('\n', '\r\n'),
  );
  return { contentType: `multipart/mixed; boundary=${boundary}`, body: `${texts.join('')}--${boundary}--\r\n` };
}

interface EnrollmentDependencies {
  readonly enrollment: Enrollment;
  /** Seconds in Retry-After. */
  readonly retryAfter: number;
}

function enrollment(
  name: EstEnrollment,
  shape: Pick<EstOperation, 'enabled' | 'challenges'>,
  { enrollment, retryAfter }: EnrollmentDependencies,
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

function received(operation: EstEnrollment, request: EstRequest): ReceivedByEst {
  const { requestId, ca, presented, body } = request;
  return {
    requestId,
    operation,
    ca,
    address: presented.address,
    presented,
    // EST links a key to the connection only by channel binding (RFC 7030 §3.5).
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

/** 202; the certificate alone; or the certificate and then its key, which clients distinguish by Content-Type. */
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

/** RFC 4559 §5: the success includes the token for mutual authentication. */
function withNegotiate(answered: EstAnswer, { identity }: Enrolled): EstAnswer {
  if (identity.method !== 'gssapi' || identity.replyToken === undefined) return answered;
  return { ...answered, headers: { ...answered.headers, 'WWW-Authenticate': `Negotiate ${identity.replyToken}` } };
}

export interface ServerKeyGenDependencies extends EnrollmentDependencies {
  /** `est.serverkeygen`. */
  readonly serverKeyGen: boolean;
}

/**
 * `POST simpleenroll` (RFC 7030 §4.2.1), `simplereenroll` (§4.2.2: renews or rekeys the certificate that the client
 * authenticates with), and `serverkeygen` (§4.4: a certificate and its server-generated private key).
 */
export const enrollments = (dependencies: ServerKeyGenDependencies): readonly EstOperation[] => [
  enrollment('simpleenroll', { enabled: true, challenges: true }, dependencies),
  enrollment('simplereenroll', { enabled: true, challenges: false }, dependencies),
  enrollment('serverkeygen', { enabled: dependencies.serverKeyGen, challenges: true }, dependencies),
];
