/** Interprets Dogtag's responses by content, never by HTTP status alone. */
import { failed } from '../../errors.ts';
import type { HttpAnswer } from '../remote/http.ts';
import { asObject, complaint, objectsOf, readJson, sentence, textOf, type JsonObject } from './json.ts';
import { ReplicaFault } from './replica.ts';

/** A certificate request as reported by Dogtag. */
export interface RequestInfo {
  /** Dogtag's request ID: `10`, or `0xa` in newer versions. */
  readonly id: string;
  /** `begin`, `pending`, `approved`, `svc_pending`, `canceled`, `rejected` or `complete`. */
  readonly status: string;
  /** The certificate's serial number, as `0x1f`. */
  readonly certId: string | undefined;
  readonly message: string | undefined;
}

/** @throws ReplicaFault unless it is JSON: the container or a proxy answered instead of the CA */
export function jsonOf(answer: HttpAnswer): JsonObject {
  const json = readJson(answer);
  if (json === undefined) throw new ReplicaFault(complaint(answer), true);
  return json;
}

/** @throws ReplicaFault if a field is missing */
export function requestInfo(json: JsonObject): RequestInfo {
  const status = textOf(json, 'requestStatus');
  const id = requestId(json);
  if (status === undefined || id === undefined) throw new ReplicaFault('the response contains no request', true);
  const message = textOf(json, 'errorMessage');
  return {
    id,
    status,
    certId: textOf(json, 'certId'),
    message: message === undefined || message.trim() === '' ? undefined : sentence(message),
  };
}

/** 10.10 has only the URL; 11.2 and later a hexadecimal `requestID`. */
function requestId(json: JsonObject): string | undefined {
  const id =
    textOf(json, 'requestID') ?? textOf(json, 'requestId') ?? textOf(json, 'requestURL')?.split('/').at(-1) ?? '';
  return /^(0x)?[0-9a-f]{1,40}$/i.test(id) ? id : undefined;
}

export function onlyRequest(json: JsonObject): RequestInfo {
  const [entry, ...more] = objectsOf(json, 'entries');
  if (entry === undefined || more.length > 0)
    throw new ReplicaFault('the response does not contain exactly one request', true);
  return requestInfo(entry);
}

interface DogtagError {
  /** Java class without its package. */
  readonly type: string;
  readonly message: string;
}

export function errorOf(answer: HttpAnswer): DogtagError | undefined {
  const json = answer.status < 400 ? undefined : asObject(readJson(answer));
  const type = json === undefined ? undefined : textOf(json, 'ClassName');
  if (json === undefined || type === undefined) return undefined;
  return { type: type.split('.').at(-1) ?? type, message: sentence(textOf(json, 'Message') ?? '') };
}

/** The JSON of a read, which must have status 200. @throws ReplicaFault; EstuaryError 500 if Dogtag refuses */
export function readAnswer(answer: HttpAnswer): JsonObject {
  if (answer.status === 200) return jsonOf(answer);
  const error = errorOf(answer);
  // The directory of this replica alone may be down: 401 and 5xx are retried at other replicas.
  if (error === undefined || answer.status === 401 || answer.status >= 500)
    throw new ReplicaFault(complaint(answer), true);
  throw failed('CA_REFUSED', 'The CA refused the request.', { detail: complaint(answer) });
}
