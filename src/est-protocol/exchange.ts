/** One operation of an EST client: its answer to a 401, and redirects (RFC 7030 §3.2.1, §3.2.3). */
import { randomBytes } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { authorization as answerTo, basic } from './authentication.ts';
import { REQUEST_HEADERS, requestBody } from './bodies.ts';

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
}

interface Exchange<A extends Answer> {
  /** The Authorization header of the first request. */
  readonly authorization?: string | undefined;
  /** The header for a challenge; absent: a 401 is the answer. @param offered WWW-Authenticate */
  readonly authorize?: ((offered: string | undefined, path: string) => Promise<string | undefined>) | undefined;
  /** @param path with the query */
  readonly send: (path: string, authorization: string | undefined) => Promise<A>;
}

/** The server redirects to another origin, which the operator must approve (RFC 7030 §3.2.1), or in a circle. */
export class RedirectError extends Error {
  readonly status: number;

  constructor(message: string, status: number) {
    super(message);
    this.name = 'RedirectError';
    this.status = status;
  }
}

const MAX_REDIRECTS = 5;

/** @param url of the operation @throws RedirectError */
export async function exchange<A extends Answer>(url: URL, { send, authorize, ...more }: Exchange<A>): Promise<A> {
  let { authorization } = more;
  let path = `${url.pathname}${url.search}`;
  let isChallenged = false;
  for (let redirects = 0; ;) {
    const answer = await send(path, authorization);
    if (answer.status === 401 && !isChallenged) {
      isChallenged = true;
      const next = await authorize?.(answer.headers['www-authenticate'], path);
      if (next !== undefined && next !== authorization) {
        authorization = next;
        continue;
      }
    }
    const target = redirection(answer, new URL(path, url));
    if (target === undefined) return answer;
    if (++redirects > MAX_REDIRECTS)
      throw new RedirectError(`the server redirects more than ${MAX_REDIRECTS} times`, answer.status);
    path = target;
    // A Digest is for one path.
    isChallenged = false;
  }
}

/** The path on this server to which a response redirects; undefined if it does not. */
function redirection({ status, headers }: Answer, here: URL): string | undefined {
  if (![301, 302, 303, 307, 308].includes(status) || headers.location === undefined) return undefined;
  if (!URL.canParse(headers.location, here.href))
    throw new RedirectError('the server redirects to an invalid URL', status);
  const target = new URL(headers.location, here);
  if (target.origin !== here.origin)
    throw new RedirectError(
      `the server redirects to ${target.origin}. If that server is the right one, set url to it`,
      status,
    );
  return `${target.pathname}${target.search}`;
}

interface Operation<A extends Answer> {
  /** With the label: `https://ca.example.com/.well-known/est/edge`. */
  readonly base: string;
  readonly operation: string;
  /** Posted to the operation. */
  readonly csr?: Buffer | undefined;
  readonly password: { readonly username: string; readonly reveal: () => string } | undefined;
  readonly send: (request: {
    readonly method: 'GET' | 'POST';
    readonly path: string;
    readonly headers: Readonly<Record<string, string>>;
    readonly body?: Buffer;
  }) => Promise<A>;
}

/** An {@link exchange} with one CSR and a password, which a CSR is sent with at once. @throws RedirectError */
export function callOperation<A extends Answer>({ base, operation, csr, password, send }: Operation<A>): Promise<A> {
  const url = new URL(base);
  url.pathname = `${url.pathname.replace(/\/$/, '')}/${operation}`;
  const method = csr === undefined ? 'GET' : 'POST';
  const content = csr && { body: Buffer.from(requestBody(csr), 'latin1') };
  const credentials = password && { ...password, password: () => Promise.resolve(password.reveal()) };
  return exchange(url, {
    authorization: csr && password && basic(password.username, password.reveal()),
    authorize:
      credentials &&
      ((offered, path) => answerTo(offered, credentials, { method, path, host: url.hostname }, randomBytes)),
    send: (path, authorized) => {
      const headers = {
        ...(csr && REQUEST_HEADERS),
        ...(authorized === undefined ? {} : { Authorization: authorized }),
      };
      return send({ method, path, headers, ...content });
    },
  });
}
