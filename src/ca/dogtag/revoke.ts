/** Revoking a certificate as the agent: a review, whose nonce the order then carries in the same session. */
import { failed, notFound } from '../../errors.ts';
import { isCrlReason, type CrlReason } from '../../pki/x509/crl-reasons.ts';
import type { RevocationRequest } from '../driver.ts';
import { errorOf, jsonOf, readAnswer } from './answers.ts';
import type { HttpAnswer } from '../remote/http.ts';
import { complaint, digitsOf, textOf } from './json.ts';
import { ReplicaFault, type SessionCall } from './replica.ts';
import type { Replicas } from './replicas.ts';

/** Any other word is answered with an HTML page, and costs the nonce. */
const REASONS: Readonly<Record<CrlReason, string>> = {
  unspecified: 'Unspecified',
  keyCompromise: 'Key_Compromise',
  cACompromise: 'CA_Compromise',
  affiliationChanged: 'Affiliation_Changed',
  superseded: 'Superseded',
  cessationOfOperation: 'Cessation_of_Operation',
  certificateHold: 'Certificate_Hold',
  removeFromCRL: 'Remove_from_CRL',
  privilegeWithdrawn: 'Privilege_Withdrawn',
  aACompromise: 'AA_Compromise',
};

/**
 * Revokes a certificate. One that is revoked already (an earlier order whose answer was lost) is as good as done.
 * Doing it twice changes nothing, so a replica that fails in the middle is followed by the next.
 *
 * @throws EstuaryError 404 the CA does not know the certificate; 500; 503
 */
export async function revokeCertificate(replicas: Replicas, { serial, reason }: RevocationRequest): Promise<void> {
  if (!isCrlReason(reason)) throw failed('REASON_UNKNOWN', 'This reason cannot be told to the CA.', { detail: reason });
  await replicas.read((replica) => replica.session((call) => revokeInSession(call, `0x${serial}`, REASONS[reason])));
}

async function revokeInSession(call: SessionCall, certId: string, reason: string): Promise<void> {
  const path = `/ca/rest/agent/certs/${certId}`;
  const review = await call({ method: 'GET', path });
  if (review.status === 404 && errorOf(review)?.type === 'CertNotFoundException')
    throw notFound('CERTIFICATE_UNKNOWN_TO_CA', 'the CA does not know this certificate');
  const page = readAnswer(review);
  const status = textOf(page, 'Status');
  if (status === 'REVOKED' || status === 'REVOKED_EXPIRED') return;
  const nonce = digitsOf(page, 'Nonce');
  if (nonce === undefined) throw new ReplicaFault('a review without a nonce', true);
  const order = await call({
    method: 'POST',
    path: `${path}/revoke`,
    headers: { 'Content-Type': 'application/json' },
    body: Buffer.from(JSON.stringify({ Reason: reason, Nonce: nonce }), 'utf8'),
  });
  checkOrder(order);
}

function checkOrder(answer: HttpAnswer): void {
  const error = errorOf(answer);
  // The session may end between the review and the order; then the nonce is gone, and another attempt reviews anew.
  if (error !== undefined && (answer.status === 401 || answer.status >= 500 || /nonce/i.test(error.message)))
    throw new ReplicaFault(complaint(answer), true);
  const order = jsonOf(answer);
  if (error === undefined && answer.status === 200 && textOf(order, 'operationResult') === 'success') return;
  throw failed('CA_REVOCATION_FAILED', 'the CA did not revoke the certificate', {
    detail: textOf(order, 'errorMessage') ?? complaint(answer),
  });
}
