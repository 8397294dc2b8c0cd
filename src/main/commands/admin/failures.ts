/** What went wrong between us and the server, each in a sentence that somebody can act on. */
import { CommandError, EXIT } from '../command.ts';
import { printable } from '../text-table.ts';
import type { Connection } from './connection.ts';
import { asRecord, textAt, textsAt, type JsonRecord } from './json.ts';

/** What a failure is answered with. */
export interface Failure {
  readonly code: string;
  readonly message: string;
}

/** undefined: the text is no failure of the admin API */
export function readFailure(text: string): Failure | undefined {
  const record = asRecord(text);
  const [code, message] = [textAt(record, 'code'), textAt(record, 'message')];
  return code === '' || message === '' ? undefined : { code, message };
}

interface Circumstances {
  readonly connection: Connection;
  /** One of which the call needs; none: it needs no more than a caller who is known. */
  readonly roles: readonly string[];
  /** Who the server takes us for. */
  readonly caller: JsonRecord | undefined;
}

/** The server answers, and the answer is no. */
export function refusal(status: number, { code, message }: Failure, around: Circumstances): CommandError {
  const text = `${printable(message)} (${status} ${printable(code)})${hint(status, around)}`;
  return new CommandError(text, status === 503 || status === 429 ? EXIT.unavailable : EXIT.failed);
}

function hint(status: number, { connection, roles, caller }: Circumstances): string {
  const needed = roles.length === 0 ? '' : `; the call needs the role ${roles.join(' or ')}`;
  if (status === 401)
    return connection.credential === undefined
      ? `: name a token with --token-file, or a certificate with --cert and --key${needed}`
      : `: the server does not accept ${connection.credential}, or no longer${needed}`;
  if (status !== 403 || caller === undefined) return '';
  const had = textsAt(caller, 'roles');
  return `: you are "${printable(textAt(caller, 'subject'))}", ${had.length === 0 ? 'without a role' : `with the role ${had.map(printable).join(' and ')}`}`;
}

export function notTheApi(status: number, type: string | undefined, { origin }: Connection): CommandError {
  const what = type === undefined ? 'nothing that it could be' : printable(type);
  return new CommandError(
    `${origin} answers (${status}, ${what}), but not as the admin API does: is this the admin listener of Estuary?`,
  );
}

/** No answer, or not the whole of one. */
export function unreachable(error: unknown, connection: Connection): CommandError {
  if (error instanceof CommandError) return error;
  const code = codeOf(error);
  const sentence = SENTENCES[code]?.(connection);
  if (sentence !== undefined) return new CommandError(`${connection.origin}: ${sentence}`, EXIT.unavailable);
  const distrust = trustSentence(code, error, connection);
  if (distrust !== undefined) return new CommandError(`${connection.origin}: ${distrust}`);
  const text = error instanceof Error ? error.message : String(error);
  return new CommandError(
    `${connection.origin}: ${printable(text.trim())}${code === '' ? '' : ` (${code})`}`,
    EXIT.unavailable,
  );
}

const SENTENCES: Readonly<Record<string, ((connection: Connection) => string) | undefined>> = {
  ECONNREFUSED: () => 'nobody listens there: does the server run, and is this the address of its admin listener?',
  ENOTFOUND: () => 'there is no host of this name',
  EAI_AGAIN: () => 'the name of the host cannot be looked up for now',
  EHOSTUNREACH: () => 'there is no way to this host',
  ENETUNREACH: () => 'there is no way to the network of this host',
  ETIMEDOUT: () => 'no answer in time',
  ECONNRESET: () => 'the connection was closed before the answer was whole: what became of the call is not known',
  EPIPE: () => 'the connection was closed before the call was sent whole',
};

const UNTRUSTED = [
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'CERT_SIGNATURE_FAILURE',
  'INVALID_CA',
];

function trustSentence(code: string, error: unknown, { files }: Connection): string | undefined {
  if (UNTRUSTED.includes(code)) {
    const anchors = files.ca ?? 'what this machine trusts';
    return `its certificate does not come from ${anchors} (${code}): name the root of the server's certificate with --ca FILE`;
  }
  if (code === 'CERT_HAS_EXPIRED') return 'its certificate has expired, or the clock of this machine is wrong';
  if (code === 'CERT_NOT_YET_VALID') return 'its certificate is not valid yet: is the clock of this machine right?';
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') {
    const reason = error instanceof Error && 'reason' in error ? `: ${printable(String(error.reason))}` : '';
    return `its certificate is for another name${reason}`;
  }
  if (/CERTIFICATE_REQUIRED|HANDSHAKE_FAILURE|CERTIFICATE_UNKNOWN|BAD_CERTIFICATE|UNKNOWN_CA/.test(code))
    return `it refuses the handshake (${code}): a client certificate that it accepts goes with --cert and --key`;
  if (code === 'ERR_SSL_WRONG_VERSION_NUMBER' || code === 'EPROTO' || code === 'ERR_SSL_PACKET_LENGTH_TOO_LONG')
    return 'what listens there speaks no TLS: is this the admin listener?';
  return undefined;
}

function codeOf(error: unknown): string {
  // Several addresses of a name that all fail.
  const one: unknown = error instanceof AggregateError ? error.errors[0] : error;
  return one instanceof Error && 'code' in one && typeof one.code === 'string' ? one.code : '';
}
