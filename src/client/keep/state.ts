/** A client's state between attempts; parsed leniently, since its loss costs no certificate. */
import { hash } from 'node:crypto';

export interface LastError {
  readonly code: string;
  readonly message: string;
  /** ISO 8601. */
  readonly time: string;
}

const SERVER_KNOWLEDGE = ['known', 'unknown', 'revoked'] as const;
export type ServerKnowledge = (typeof SERVER_KNOWLEDGE)[number];

/** When to renew a certificate, as the server suggests. Milliseconds since the epoch. */
export interface RenewalPlan {
  /** The version of the certificate. */
  readonly version: number;
  readonly start: number;
  readonly end: number;
  /** The time that was chosen in the window; 0: the server suggests none. */
  readonly at: number;
  /** When to ask again. */
  readonly ask: number;
  /**
   * `unknown`: the server knew the certificate and no longer does, or does not trust its issuer; `revoked`: so say OCSP or the server;
   * undefined: nobody has answered for it yet.
   */
  readonly server?: ServerKnowledge | undefined;
}

export interface State {
  readonly renewal?: RenewalPlan | undefined;
  /** Consecutive. */
  readonly failures: number;
  /** No attempt before. */
  readonly nextAttempt: number;
  /** The last change reported to hooks, from {@link changeOf}. */
  readonly announced: string | undefined;
  readonly hookFailures: number;
  readonly nextHook: number;
  readonly lastError: LastError | undefined;
  /** A record of the password in place at the last rejection. */
  readonly rejected?: string | undefined;
  /** An enrollment with a new password is under way, because the server rejects the current certificate. */
  readonly recovering?: boolean;
  /** The request was accepted (202) and is pending at the CA. */
  readonly accepted: boolean;
}

export const FIRST_STATE: State = {
  failures: 0,
  nextAttempt: 0,
  announced: undefined,
  hookFailures: 0,
  nextHook: 0,
  lastError: undefined,
  accepted: false,
};

/** A request that is repeated until it is answered, since a response may get lost. */
export interface PendingRequest {
  /** Version of its certificate; if that is already in use, the request was answered. */
  readonly version: number;
  readonly operation: 'simpleenroll' | 'simplereenroll';
  /** Identifies what is requested. */
  readonly request: string;
  /** DER CertificationRequest in base64, without the channel binding, which differs per connection. */
  readonly csr: string;
  readonly binding: 'challengePassword' | 'estIdentityLinking' | undefined;
  /** PEM, or the URI of a key in a token. */
  readonly privateKey: string;
}

export function parseState(text: string | undefined): State {
  const json = readObject(text);
  const error = readObject(json['lastError']);
  return {
    failures: count(json['failures']),
    nextAttempt: count(json['nextAttempt']),
    announced: optionalText(json['announced']),
    hookFailures: count(json['hookFailures']),
    nextHook: count(json['nextHook']),
    lastError:
      optionalText(error['message']) === undefined
        ? undefined
        : {
            code: optionalText(error['code']) ?? '',
            message: optionalText(error['message']) ?? '',
            time: optionalText(error['time']) ?? '',
          },
    rejected: optionalText(json['rejected']),
    recovering: json['recovering'] === true,
    accepted: json['accepted'] === true,
    renewal: json['renewal'] === undefined ? undefined : planOf(readObject(json['renewal'])),
  };
}

/** undefined if it is unreadable; a new one is then created. */
export function parsePendingRequest(text: string, privateKey: string): PendingRequest | undefined {
  const json = readObject(text);
  const operation = OPERATIONS.find((operation) => operation === json['operation']);
  const csr = optionalText(json['csr']);
  if (operation === undefined || csr === undefined) return undefined;
  const request = optionalText(json['request']) ?? '';
  const binding = BINDINGS.find((binding) => binding === json['binding']);
  return { version: count(json['version']), operation, request, csr, binding, privateKey };
}

const OPERATIONS = ['simpleenroll', 'simplereenroll'] as const;
const BINDINGS = ['challengePassword', 'estIdentityLinking'] as const;

function readObject(value: unknown): Readonly<Record<string, unknown>> {
  try {
    const json: unknown = typeof value === 'string' ? JSON.parse(value) : value;
    return typeof json === 'object' && json !== null && !Array.isArray(json) ? { ...json } : {};
  } catch {
    return {};
  }
}

/** Identifies a change for hooks: another version or other CAs. @param caPem content of ca.pem */
export function changeOf(version: number, caPem: string | undefined): string {
  return `${version} ${hash('sha256', caPem ?? '', 'hex').slice(0, 16)}`;
}

const count = (value: unknown): number => (typeof value === 'number' && value >= 0 ? value : 0);
const optionalText = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);

const planOf = (json: Readonly<Record<string, unknown>>): RenewalPlan => ({
  version: count(json['version']),
  start: count(json['start']),
  end: count(json['end']),
  at: count(json['at']),
  ask: count(json['ask']),
  server: SERVER_KNOWLEDGE.find((knowledge) => knowledge === json['server']),
});
