/** What the server and its GSSAPI child process say to each other, checked on arrival. */

/** The start payload. */
export interface StartArgs {
  /** GSS-API host-based service name, e.g. `HTTP@est.example.com` (RFC 2743 §4.1). */
  readonly service: string;
}

interface AcceptArgs {
  /** base64 of the client's token. */
  readonly token: string;
}

/** A client that has proven who it is. */
export interface Accepted {
  /** The principal in its printed form. */
  readonly principal: string;
  /** base64 of the token that proves the server to the client, if the client asked for that. */
  readonly replyToken: string | null;
}

function field(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
}

function text(value: unknown, name: string): string {
  const found = field(value, name);
  if (typeof found !== 'string' || found === '') throw new TypeError(`${name} is missing`);
  return found;
}

export const readStartArgs = (value: unknown): StartArgs => ({ service: text(value, 'service') });

export const readAcceptArgs = (value: unknown): AcceptArgs => ({ token: text(value, 'token') });

/** @throws TypeError when the child's answer is none */
export function readAccepted(value: unknown): Accepted {
  const reply = field(value, 'replyToken');
  return { principal: text(value, 'principal'), replyToken: typeof reply === 'string' && reply !== '' ? reply : null };
}
