/** Responds to WWW-Authenticate: Basic (RFC 7617), Digest (RFC 7616) and Negotiate (RFC 4559). */
import { hash } from 'node:crypto';

/** Reads the password; undefined if the server may not get one. */
export type ReadPassword = () => Promise<string | undefined>;

/** What answers a challenge. The password is read only when a server requests it. */
export interface ChallengeCredentials {
  readonly username: string;
  readonly password: ReadPassword | undefined;
  /** The first token of a GSS-API client for a host, in base64; undefined: without Kerberos. */
  readonly ticket?: ((host: string) => Promise<string>) | undefined;
}

interface Challenge {
  readonly scheme: string;
  readonly parameters: ReadonlyMap<string, string>;
}

interface Challenged {
  readonly method: string;
  readonly path: string;
  /** Of the URL, without port. */
  readonly host: string;
}

/** @param header WWW-Authenticate, several joined by commas */
export function parseChallenges(header: string): Challenge[] {
  const challenges: { scheme: string; parameters: Map<string, string> }[] = [];
  const token = /\s*,?\s*([!#$%&'*+.^_`|~\w-]+)(?:\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+)))?/gy;
  for (let found = token.exec(header); found !== null; found = token.exec(header)) {
    const [, name = '', quoted, plain] = found;
    const value = quoted?.replace(/\\(.)/g, '$1') ?? plain;
    if (value === undefined) challenges.push({ scheme: name.toLowerCase(), parameters: new Map() });
    else challenges.at(-1)?.parameters.set(name.toLowerCase(), value);
  }
  return challenges;
}

/**
 * The Authorization header for a 401: Negotiate, Digest or Basic, in this order of preference. Call it only for an
 * authenticated and authorized server (RFC 7030 §3.2.3).
 * @param random octets for a Digest
 * @returns undefined if no challenge is usable
 */
export async function authorization(
  header: string | undefined,
  { username, password: read, ticket }: ChallengeCredentials,
  request: Challenged,
  random: (bytes: number) => Buffer,
): Promise<string | undefined> {
  const challenges = parseChallenges(header ?? '');
  const offered = (scheme: string): Challenge | undefined =>
    challenges.find((challenge) => challenge.scheme === scheme);
  if (ticket !== undefined && offered('negotiate') !== undefined) return `Negotiate ${await ticket(request.host)}`;
  const digest = challenges.find((challenge) => challenge.scheme === 'digest' && digestHash(challenge) !== undefined);
  if (digest === undefined && offered('basic') === undefined) return undefined;
  const password = await read?.();
  if (password === undefined) return undefined;
  return digest === undefined ? basic(username, password) : digestAnswer(digest, username, password, request, random);
}

export const basic = (username: string, password: string): string =>
  `Basic ${Buffer.from(`${username}:${password}`, 'utf8').toString('base64')}`;

const DIGESTS: ReadonlyMap<string, string> = new Map([
  ['md5', 'md5'],
  ['sha-256', 'sha256'],
]);

function digestHash({ parameters }: Challenge): string | undefined {
  const qop = parameters.get('qop');
  if (qop !== undefined && !qop.split(/\s*,\s*/).includes('auth')) return undefined;
  return DIGESTS.get((parameters.get('algorithm') ?? 'md5').toLowerCase());
}

/** RFC 7616 §3.4. */
function digestAnswer(
  challenge: Challenge,
  username: string,
  password: string,
  { method, path }: Challenged,
  random: (bytes: number) => Buffer,
): string {
  const { parameters } = challenge;
  const digest = (text: string): string => hash(digestHash(challenge) ?? 'sha256', text, 'hex');
  const realm = parameters.get('realm') ?? '';
  const nonce = parameters.get('nonce') ?? '';
  const secret = digest(`${username}:${realm}:${password}`);
  const what = digest(`${method}:${path}`);
  const cnonce = random(16).toString('hex');
  const count = '00000001';
  const hasQop = parameters.has('qop');
  const response = hasQop
    ? digest(`${secret}:${nonce}:${count}:${cnonce}:auth:${what}`)
    : digest(`${secret}:${nonce}:${what}`);
  const quoted = (value: string): string => `"${value.replace(/["\\]/g, '\\$&')}"`;
  const fields = [
    `username=${quoted(username)}`,
    `realm=${quoted(realm)}`,
    `nonce=${quoted(nonce)}`,
    `uri=${quoted(path)}`,
    `response="${response}"`,
    ...(parameters.has('algorithm') ? [`algorithm=${parameters.get('algorithm') ?? ''}`] : []),
    ...(parameters.has('opaque') ? [`opaque=${quoted(parameters.get('opaque') ?? '')}`] : []),
    ...(hasQop ? [`qop=auth, nc=${count}, cnonce="${cnonce}"`] : []),
  ];
  return `Digest ${fields.join(', ')}`;
}
