/** The bodies of the stand-in's answers, and what it reads of requests. */
import type { IncomingMessage } from 'node:http';
import { TLSSocket } from 'node:tls';
import { PROFILES, type StoredRequest } from './state.ts';

export interface Answered {
  readonly status: number;
  readonly type?: string;
  readonly body?: string | Buffer;
  readonly cookie?: string;
}

export const JSON_TYPE = 'application/json';
export const HTML_TYPE = 'text/html;charset=utf-8';
export const html = (status: number): Answered => ({
  status,
  type: HTML_TYPE,
  body: `<!doctype html><html><head><title>HTTP Status ${status}</title></head><body><h1>HTTP Status ${status}</h1></body></html>`,
});
export const json = (status: number, body: object): Answered => ({
  status,
  type: JSON_TYPE,
  body: JSON.stringify(body),
});
export const error = (status: number, type: string, message: string): Answered =>
  json(status, {
    Attributes: { Attribute: [] },
    ClassName: `com.netscape.certsrv.${type}`,
    Code: status,
    Message: message,
  });
export const badRequest = (message: string): Answered => error(400, 'base.BadRequestException', message);

export const REASONS = [
  'Unspecified',
  'Key_Compromise',
  'CA_Compromise',
  'Affiliation_Changed',
  'Superseded',
  'Cessation_of_Operation',
  'Certificate_Hold',
  'Remove_from_CRL',
  'Privilege_Withdrawn',
  'AA_Compromise',
];

export function isAgent({ socket }: IncomingMessage): boolean {
  return socket instanceof TLSSocket && socket.authorized;
}

/** DER of the agent's TLS certificate. */
export function agentCertificate(request: IncomingMessage): Buffer | undefined {
  const { socket } = request;
  return isAgent(request) && socket instanceof TLSSocket ? socket.getPeerX509Certificate()?.raw : undefined;
}

export function useNonce(nonces: Map<string, string>, name: string, given: unknown): Answered | undefined {
  const nonce = nonces.get(name);
  if (nonce === undefined) return badRequest(`Nonce for ${name} does not exist`);
  if (given !== nonce) return error(403, 'base.ForbiddenException', `Invalid nonce: ${String(given)}`);
  nonces.delete(name);
  return undefined;
}

export function review({ id, profile, requestor, text, status }: StoredRequest, nonce: string): object {
  return {
    nonce,
    requestId: String(id),
    requestType: 'enrollment',
    requestStatus: status,
    ProfileID: profile,
    Input: [
      {
        id: null,
        ClassID: 'CertReqInput',
        Attribute: [
          { name: 'cert_request_type', Value: 'pkcs10' },
          { name: 'cert_request', Value: text },
        ],
      },
      { id: null, ClassID: 'SubmitterInfoInput', Attribute: [{ name: 'requestor_name', Value: requestor }] },
    ],
  };
}

export function template(profile: string): Answered {
  const rules = PROFILES[profile];
  if (rules === undefined) return badRequest(`Bad request data: Profile ${profile} Not Found`);
  const attributes = (...names: string[]): object[] => names.map((name) => ({ name, Value: '', Descriptor: {} }));
  return json(200, {
    ProfileID: profile,
    Renewal: false,
    Input: [
      { id: 'i1', ClassID: rules.inputClass, Attribute: attributes('cert_request_type', 'cert_request') },
      { id: 'i2', ClassID: 'submitterInfoInputImpl', Attribute: attributes('requestor_name', 'requestor_email') },
    ],
  });
}

export function readEnrollment(body: string): { profile: string; text: string; requestor: string } {
  const sent: unknown = JSON.parse(body);
  const inputs = fieldOf(sent, 'Input');
  const values = new Map<string, string>();
  for (const input of Array.isArray(inputs) ? inputs : []) {
    const attributes = fieldOf(input, 'Attribute');
    for (const attribute of Array.isArray(attributes) ? attributes : [])
      values.set(String(fieldOf(attribute, 'name')), String(fieldOf(attribute, 'Value')));
  }
  return {
    profile: String(fieldOf(sent, 'ProfileID')),
    text: values.get('cert_request') ?? '',
    requestor: values.get('requestor_name') ?? '',
  };
}

export function fieldOf(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined;
  const fields: Record<string, unknown> = { ...value };
  return fields[name];
}
