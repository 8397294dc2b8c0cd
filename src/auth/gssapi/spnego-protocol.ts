/** Messages between the server and its GSSAPI child process, checked on arrival. */
import { isObject } from '../../process/protocol.ts';

export interface StartArgs {
  /** GSS-API host-based service name, such as `HTTP@est.example.com` (RFC 2743 §4.1). */
  readonly service: string;
}

interface AcceptArgs {
  /** base64 of the client's token. */
  readonly token: string;
}

/** An authenticated client. */
export interface Accepted {
  /** In printed form. */
  readonly principal: string;
  /** base64 of the token for mutual authentication, if the client requested it. */
  readonly replyToken: string | null;
}

const field = (value: unknown, name: string): unknown => (isObject(value) ? value[name] : undefined);

function text(value: unknown, name: string): string {
  const found = field(value, name);
  if (typeof found !== 'string' || found === '') throw new TypeError(`${name} is missing`);
  return found;
}

export const readStartArgs = (value: unknown): StartArgs => ({ service: text(value, 'service') });

export const readAcceptArgs = (value: unknown): AcceptArgs => ({ token: text(value, 'token') });

/** @throws TypeError for an invalid reply */
export function readAccepted(value: unknown): Accepted {
  const reply = field(value, 'replyToken');
  return { principal: text(value, 'principal'), replyToken: typeof reply === 'string' && reply !== '' ? reply : null };
}
