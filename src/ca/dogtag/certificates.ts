/** Finds a request whose submission got no response, among pending requests and issued certificates. */
import { failed, notFound } from '../../errors.ts';
import { type CrlReason, isCrlReason } from '../../pki/x509/crl.ts';
import { attributeValues } from '../../pki/x509/name.ts';
import type { Found, RevocationRequest, SoughtRequest } from '../driver.ts';
import type { HttpAnswer } from '../../https-client.ts';
import { isKey } from '../remote/issued.ts';
import {
  errorOf,
  jsonOf,
  readAnswer,
  complaint,
  digitsOf,
  type JsonObject,
  objectsOf,
  textOf,
  ReplicaFault,
  type SessionCall,
  getJson,
  requestId,
  jsonPost,
} from './answers.ts';
import { fetchCertificate } from './enroll.ts';
import type { Replicas } from './replicas.ts';

/** Maximum candidates. A CA with more in the period cannot be searched. */
const LIMIT = 500;
/** Milliseconds of clock difference between Estuary and the CA. */
const CLOCK_SKEW = 300_000;

/**
 * All requests and certificates at the CA that may result from the request.
 * @param requestor as named in the submission
 * @throws EstuaryError 500 if it cannot be searched (too many, or the agent lacks permission); 503
 */
export async function findRequest(
  replicas: Replicas,
  sought: SoughtRequest,
  requestor: string,
): Promise<readonly Found[]> {
  return [...(await findWaiting(replicas, sought, requestor)), ...(await findIssued(replicas, sought))];
}

function findWaiting(replicas: Replicas, sought: SoughtRequest, requestor: string): Promise<Found[]> {
  return replicas.read((replica) =>
    replica.session(async (call) => {
      // The request is probably among the newest.
      for (const id of (await waitingIds(call)).reverse()) {
        const review = await getJson(call, `/ca/rest/agent/certrequests/${id}`);
        if (isSought(review, sought, requestor)) return [{ reference: id }];
      }
      return [];
    }),
  );
}

async function waitingIds(call: SessionCall): Promise<string[]> {
  const filter = `requestState=pending&requestType=enrollment&pageSize=${LIMIT}&maxResults=${LIMIT}`;
  const list = await getJson(call, `/ca/rest/agent/certrequests?${filter}`);
  const entries = objectsOf(list, 'entries');
  refuseTooMany(list, entries.length);
  return entries.flatMap((entry) => requestId(entry) ?? []);
}

/** Matches by requestor name or, if the profile has no such input, by the request's key. */
function isSought(review: JsonObject, { spki }: SoughtRequest, requestor: string): boolean {
  const attributes = objectsOf(review, 'Input').flatMap((input) => objectsOf(input, 'Attribute'));
  const value = (name: string): string | undefined =>
    attributes
      .flatMap((attribute) => (textOf(attribute, 'name') === name ? (textOf(attribute, 'Value') ?? []) : []))
      .at(0);
  const named = value('requestor_name');
  if (named !== undefined && named !== '') return named === requestor;
  // PKCS#10, CRMF or a CMC message around either: all contain the key's bytes.
  return Buffer.from((value('cert_request') ?? '').replace(/-----[A-Z ]+-----|\s/g, ''), 'base64').includes(spki);
}

async function findIssued(replicas: Replicas, { spki, subject, from, until }: SoughtRequest): Promise<Found[]> {
  const [commonName = ''] = attributeValues(subject, '2.5.4.3');
  const search = jsonPost(`/ca/rest/certs/search?size=${LIMIT}`, {
    serialNumberRangeInUse: false,
    // Only a plain name narrows the search; Dogtag's comparison of others is unreliable.
    ...(/^[A-Za-z0-9.-]+$/.test(commonName) ? { subjectInUse: true, matchExactly: true, commonName } : {}),
    issuedOnInUse: true,
    issuedOnFrom: String(from - CLOCK_SKEW),
    issuedOnTo: String(until + CLOCK_SKEW),
  });
  const list = await replicas.read(async (replica) => readAnswer(await replica.call(search)));
  const entries = objectsOf(list, 'entries');
  refuseTooMany(list, entries.length);
  const found: Found[] = [];
  for (const entry of entries) {
    const id = textOf(entry, 'id');
    if (id === undefined) continue;
    const certificate = await fetchCertificate(replicas, id);
    if (isKey(certificate, spki)) found.push({ certificate: certificate.der });
  }
  return found;
}

function refuseTooMany({ total }: JsonObject, listed: number): void {
  if (typeof total === 'number' && total > listed)
    throw failed('CA_SEARCH_TOO_LARGE', 'The CA has too many requests to search.', {
      detail: `received ${listed} of ${total} entries`,
    });
}

/** Revokes a certificate as the agent: the review returns a nonce, which the revocation repeats in the same session. */

/** Dogtag answers any other word with an HTML page and consumes the nonce. */
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
 * Revokes a certificate; succeeds if it is already revoked (an earlier response was lost). It is idempotent, so a
 * failing replica is followed by the next.
 * @throws EstuaryError 404 if the CA does not know the certificate; 500; 503
 */
export async function revokeCertificate(replicas: Replicas, { serial, reason }: RevocationRequest): Promise<void> {
  if (!isCrlReason(reason))
    throw failed('REASON_UNKNOWN', 'The CA does not support this revocation reason.', { detail: reason });
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
  if (nonce === undefined) throw new ReplicaFault('the review contains no nonce', true);
  checkOrder(await call(jsonPost(`${path}/revoke`, { Reason: reason, Nonce: nonce })));
}

function checkOrder(answer: HttpAnswer): void {
  const error = errorOf(answer);
  // The session may expire between review and revocation, and the nonce with it. The next attempt reviews again.
  if (error !== undefined && (answer.status === 401 || answer.status >= 500 || /nonce/i.test(error.message)))
    throw new ReplicaFault(complaint(answer), true);
  const order = jsonOf(answer);
  if (error === undefined && answer.status === 200 && textOf(order, 'operationResult') === 'success') return;
  throw failed('CA_REVOCATION_FAILED', 'the CA did not revoke the certificate', {
    detail: textOf(order, 'errorMessage') ?? complaint(answer),
  });
}
