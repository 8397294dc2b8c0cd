/** Submits certificate requests and reads their status. */
import { failed } from '../../errors.ts';
import { parsePemCertificates, type Certificate } from '../../pki/x509/certificate.ts';
import {
  errorOf,
  jsonOf,
  onlyRequest,
  readAnswer,
  requestInfo,
  type RequestInfo,
  complaint,
  objectsOf,
  textOf,
  type JsonObject,
  NotHere,
  ReplicaFault,
  getJson,
  jsonPost,
} from './answers.ts';
import type { HttpAnswer } from '../../https-client.ts';
import type { Replicas } from './replicas.ts';
import { InputError } from '../../pki/input-error.ts';

/** A profile's inputs: the class that takes the request, and whether one takes the requestor's name. */
export interface ProfileInputs {
  readonly requestClass: string;
  readonly requestorClass: string | undefined;
}

interface Submission {
  readonly profile: string;
  readonly inputs: ProfileInputs;
  readonly type: 'pkcs10' | 'crmf';
  /** DER of the request. */
  readonly request: Buffer;
  /** Identifies the request in a later search. */
  readonly requestor: string;
}

/** @throws EstuaryError 500 if the profile takes no certificate request; 503 */
export function profileInputs(replicas: Replicas, profile: string): Promise<ProfileInputs> {
  return replicas.read(async (replica) => {
    const template = await getJson(replica.call, `/ca/rest/certrequests/profiles/${profile}`);
    const inputs = objectsOf(template, 'Input');
    const requestClass = classWith(inputs, 'cert_request');
    if (requestClass === undefined)
      throw failed('CA_PROFILE_UNSUITABLE', 'The CA cannot issue this certificate.', {
        detail: `the profile ${profile} has no input for a certificate request`,
      });
    return { requestClass, requestorClass: classWith(inputs, 'requestor_name') };
  });
}

function classWith(inputs: readonly JsonObject[], attribute: string): string | undefined {
  const input = inputs.find((input) =>
    objectsOf(input, 'Attribute').some((each) => textOf(each, 'name') === attribute),
  );
  return input === undefined ? undefined : textOf(input, 'ClassID');
}

/**
 * Submits a request once.
 * @throws EstuaryError 500 if the CA cannot process it; 503 if it certainly did not arrive; SubmissionUnanswered
 */
export function submitRequest(replicas: Replicas, submission: Submission): Promise<RequestInfo> {
  const call = { ...jsonPost('/ca/rest/certrequests', enrollmentRequest(submission)), freshConnection: true };
  return replicas.submit(async (replica) => submitted(await replica.call(call)));
}

function enrollmentRequest({ profile, inputs, type, request, requestor }: Submission): JsonObject {
  const input = (id: string, attributes: Readonly<Record<string, string>>): JsonObject => ({
    ClassID: id,
    Attribute: Object.entries(attributes).map(([name, Value]) => ({ name, Value })),
  });
  const { requestClass, requestorClass } = inputs;
  return {
    ProfileID: profile,
    Renewal: false,
    Input: [
      input(requestClass, { cert_request_type: type, cert_request: request.toString('base64') }),
      ...(requestorClass === undefined ? [] : [input(requestorClass, { requestor_name: requestor })]),
    ],
  };
}

/** Only certain outcomes end the submission; any other response leaves its outcome open. */
function submitted(answer: HttpAnswer): RequestInfo {
  if (answer.status === 200) return onlyRequest(jsonOf(answer));
  const error = errorOf(answer);
  // The web application is not (yet) deployed: the container answers.
  if (error === undefined && answer.status === 404) throw new ReplicaFault(complaint(answer), false);
  // The agent is unknown, or its directory is down; the request was not processed.
  if (answer.status === 401) throw new ReplicaFault(complaint(answer), false);
  if (answer.status >= 400 && answer.status < 500)
    throw failed('CA_REFUSED', 'The CA refused the request.', { detail: complaint(answer) });
  if (error?.message.startsWith('Unable to create enrollment request') === true)
    throw failed('CA_REFUSED', 'The CA cannot process this request.', { detail: error.message });
  throw new ReplicaFault(complaint(answer), true);
}

/**
 * The request's status; undefined if no replica knows it, or the directory is down.
 * @throws EstuaryError 503 if no replica answers
 */
export async function findRequestInfo(replicas: Replicas, id: string): Promise<RequestInfo | undefined> {
  let unknown = 0;
  try {
    return await replicas.read(async (replica) => {
      const answer = await replica.call({ method: 'GET', path: `/ca/rest/certrequests/${id}` });
      if (answer.status === 404 && errorOf(answer)?.type === 'RequestNotFoundException') {
        unknown += 1;
        // Replication may lag: another replica may know it. This one is not at fault.
        throw new NotHere(`request ${id} is unknown`);
      }
      return requestInfo(readAnswer(answer));
    });
  } catch (error) {
    if (unknown > 0) return undefined;
    throw error;
  }
}

/** Whether the agent can log in; otherwise "not found" may mean that the directory is down. */
export function directoryAnswers(replicas: Replicas): Promise<boolean> {
  return replicas.read(
    async (replica) =>
      (await replica.session((call) => call({ method: 'GET', path: '/ca/rest/account/login' }))).status === 200,
  );
}

/** Reads a certificate by serial number (`0x…`). @throws EstuaryError 500 or 503 */
export function fetchCertificate(replicas: Replicas, certId: string): Promise<Certificate> {
  return replicas.read(async (replica) => {
    const answer = await replica.call({ method: 'GET', path: `/ca/rest/certs/${encodeURIComponent(certId)}` });
    if (answer.status === 404) throw new NotHere(`certificate ${certId} is unknown`);
    return certificateIn(readAnswer(answer));
  });
}

/** The PEM certificate in `Encoded`. @throws ReplicaFault */
export function certificateIn(json: JsonObject): Certificate {
  try {
    const [certificate] = parsePemCertificates(textOf(json, 'Encoded') ?? '');
    if (certificate !== undefined) return certificate;
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
  }
  throw new ReplicaFault('the response contains no valid certificate', true);
}
