/** An EST server, as a client sees it: its operations (RFC 7030 §4), authentication, redirections and what its statuses mean. */
import type { IncomingHttpHeaders } from 'node:http';
import { berToDer } from '../../pki/der/ber.ts';
import { parsePem } from '../../pki/der/pem.ts';
import { parseCertsOnly } from '../../pki/cms/pkcs7.ts';
import { InputError } from '../../pki/input-error.ts';
import { parseCsrAttrs, type AttrOrOid } from '../../pki/pkcs10/csrattrs.ts';
import { parseCertificate, type Certificate } from '../../pki/x509/certificate.ts';
import { ClientError } from '../client-error.ts';
import { authorization, noCredentials, type Credentials } from './authentication.ts';
import {
  Connection,
  type ClientIdentity,
  type ConnectionSettings,
  type HttpAnswer,
  type ServerTrust,
} from './connection.ts';
import { parseRetryAfter } from './retry-after.ts';

export interface EstServerSettings {
  /** `https://host[:port]`, with the operations' path before them (`/.well-known/est[/label]`). */
  readonly base: URL;
  readonly minVersion: 'TLSv1.2' | 'TLSv1.3';
  readonly maxVersion: 'TLSv1.2' | 'TLSv1.3';
  /** Milliseconds. */
  readonly timeout: number;
  readonly credentials: Credentials;
  readonly now: () => number;
  readonly randomBytes: (count: number) => Buffer;
}

/** What became of an enrolment. */
export type EnrolmentAnswer =
  | { readonly kind: 'issued'; readonly certificate: Certificate }
  /** 202: the same request again, not before this many seconds. */
  | { readonly kind: 'pending'; readonly retryAfter: number };

const USER_AGENT = 'estuary-client';
const MAX_REDIRECTS = 5;
/** RFC 7030 §4.2.3 has a Retry-After with each 202; a server without one is left alone for as long. */
const DEFAULT_RETRY_AFTER = 60;

export class EstServer {
  readonly #settings: EstServerSettings;
  #trust: ServerTrust;
  #identity: ClientIdentity | undefined;
  #connection: Connection | undefined;
  #session: Buffer | undefined;

  /** @param identity the certificate to authenticate with */
  constructor(settings: EstServerSettings, trust: ServerTrust, identity: ClientIdentity | undefined) {
    this.#settings = settings;
    this.#trust = trust;
    this.#identity = identity;
  }

  get base(): URL {
    return this.#settings.base;
  }

  /** DER of what the server has shown on the connection that is open. */
  get serverCertificate(): Buffer | undefined {
    return this.#connection?.serverCertificate;
  }

  /** From now on; a connection that is open is closed. */
  use(trust: ServerTrust, identity: ClientIdentity | undefined): void {
    this.close();
    this.#session = undefined;
    this.#trust = trust;
    this.#identity = identity;
  }

  /** RFC 7030 §4.1. @throws ClientError */
  async caCertificates(): Promise<Certificate[]> {
    const answer = await this.#get('cacerts');
    if (answer.status !== 200) throw failure('cacerts', answer, this.#settings.now());
    const certificates = readCertsOnly('cacerts', answer);
    if (certificates.length === 0) throw invalid('cacerts', 'it holds no certificate');
    return certificates;
  }

  /** RFC 7030 §4.5; an empty list where the server has nothing to say. @throws ClientError */
  async csrAttributes(): Promise<AttrOrOid[]> {
    const answer = await this.#get('csrattrs');
    // 501: switched off. 401: for those who are known; what it asks for is told when it refuses.
    if ([204, 401, 404, 501].includes(answer.status)) return [];
    if (answer.status !== 200) throw failure('csrattrs', answer, this.#settings.now());
    if (answer.body.length === 0) return [];
    return readBody('csrattrs', answer, parseCsrAttrs);
  }

  /**
   * RFC 7030 §4.2. The request is made for the connection that it goes over, anew for another one.
   *
   * @param csr DER; its argument is the connection's channel binding
   * @throws ClientError
   */
  async enroll(
    operation: 'simpleenroll' | 'simplereenroll',
    csr: (channelBinding: Buffer | undefined) => Promise<Buffer>,
  ): Promise<EnrolmentAnswer> {
    const answer = await this.#post(operation, csr);
    if (answer.status === 202) {
      const given = parseRetryAfter(answer.headers['retry-after'], this.#settings.now());
      return { kind: 'pending', retryAfter: given ?? DEFAULT_RETRY_AFTER };
    }
    if (answer.status !== 200) throw failure(operation, answer, this.#settings.now());
    const [certificate, ...more] = readCertsOnly(operation, answer);
    if (certificate === undefined) throw invalid(operation, 'it holds no certificate');
    // RFC 7030 §4.2.3 has the issued one alone; some send its chain along, which is not needed.
    return { kind: 'issued', certificate: [certificate, ...more].find(({ isCa }) => !isCa) ?? certificate };
  }

  close(): void {
    this.#connection?.close();
    this.#connection = undefined;
  }

  /** Over the open connection, or a new one: RFC 7030 §3.3 wants sessions resumed. */
  async #connected(): Promise<Connection> {
    if (this.#connection?.usable === true) return this.#connection;
    this.close();
    const { base, minVersion, maxVersion, timeout } = this.#settings;
    const settings: ConnectionSettings = {
      trust: this.#trust,
      identity: this.#identity,
      minVersion,
      maxVersion,
      timeout,
      session: this.#session,
      onSession: (session) => (this.#session = session),
    };
    this.#connection = await Connection.open(base, settings);
    return this.#connection;
  }

  async #get(operation: string): Promise<HttpAnswer> {
    let path = this.#path(operation);
    for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects++) {
      const headers = { Accept: '*/*', 'User-Agent': USER_AGENT };
      const answer = await this.#again(async () => (await this.#connected()).send({ method: 'GET', path, headers }));
      const target = this.#redirection(answer, path);
      if (target === undefined) return answer;
      path = target;
    }
    throw new ClientError('refused', 'REDIRECTED', `${operation}: redirected more than ${MAX_REDIRECTS} times`);
  }

  /** A server may close a connection that was kept open just when a request is under way; a GET can go again. */
  async #again(send: () => Promise<HttpAnswer>): Promise<HttpAnswer> {
    const kept = this.#connection !== undefined;
    try {
      return await send();
    } catch (error) {
      if (!kept || !(error instanceof ClientError) || error.code !== 'SERVER_UNREACHABLE') throw error;
      return send();
    }
  }

  async #post(operation: string, csr: (channelBinding: Buffer | undefined) => Promise<Buffer>): Promise<HttpAnswer> {
    let path = this.#path(operation);
    let authorized: string | undefined;
    let body: { readonly connection: Connection; readonly text: string } | undefined;
    let challenges = 0;
    for (let redirects = 0; redirects <= MAX_REDIRECTS;) {
      const connection = await this.#connected();
      if (body?.connection !== connection) {
        // Base64 in lines, as RFC 2045 has it.
        const text = (await csr(connection.channelBinding)).toString('base64').replace(/.{64}(?=.)/g, '$&\r\n');
        body = { connection, text: `${text}\r\n` };
      }
      const headers = {
        Accept: '*/*',
        'User-Agent': USER_AGENT,
        'Content-Type': 'application/pkcs10',
        'Content-Transfer-Encoding': 'base64',
        ...(authorized === undefined ? {} : { Authorization: authorized }),
      };
      const answer = await connection.send({ method: 'POST', path, headers, body: body.text });
      if (answer.status === 401 && challenges === 0) {
        challenges += 1;
        authorized = await this.#authorization(answer.headers, path);
        if (authorized !== undefined) continue;
      }
      const target = this.#redirection(answer, path);
      if (target === undefined) return answer;
      path = target;
      redirects += 1;
    }
    throw new ClientError('refused', 'REDIRECTED', `${operation}: redirected more than ${MAX_REDIRECTS} times`);
  }

  async #authorization(headers: IncomingHttpHeaders, path: string): Promise<string | undefined> {
    const offered = headers['www-authenticate'];
    const { credentials, base, randomBytes } = this.#settings;
    // RFC 7030 §3.2.3, §4.1.1: never to a server that was not authenticated.
    if (this.#trust.kind === 'provisional') return undefined;
    const answer = await authorization(
      offered,
      credentials,
      { method: 'POST', path, host: base.hostname },
      randomBytes,
    );
    if (answer === undefined && offered !== undefined && this.#identity === undefined) throw noCredentials(offered);
    return answer;
  }

  #path(operation: string): string {
    return `${this.#settings.base.pathname}/${operation}`;
  }

  /**
   * The path on this server that an answer points to; undefined: it does not.
   *
   * @throws ClientError `REDIRECTED`: to another origin, which somebody has to want (RFC 7030 §3.2.1)
   */
  #redirection({ status, headers }: HttpAnswer, path: string): string | undefined {
    if (![301, 302, 303, 307, 308].includes(status) || headers.location === undefined) return undefined;
    const here = new URL(path, this.#settings.base);
    if (!URL.canParse(headers.location, here))
      throw new ClientError('refused', 'REDIRECTED', 'the server redirects to what is no URL', { status });
    const target = new URL(headers.location, here);
    if (target.origin !== here.origin)
      throw new ClientError(
        'refused',
        'REDIRECTED',
        `the server redirects to ${target.origin}; make that the url if it is the one to use`,
        { status },
      );
    return `${target.pathname}${target.search}`;
  }
}

function readCertsOnly(operation: string, answer: HttpAnswer): Certificate[] {
  const type = answer.headers['content-type'] ?? '';
  if (!/^application\/pkcs7-mime\b/i.test(type.trim())) throw invalid(operation, `its type is "${type}"`);
  return readBody(operation, answer, (der) => parseCertsOnly(berToDer(der)).map(parseCertificate));
}

/** RFC 8951 §3.1: base64 whatever Content-Transfer-Encoding says, white space anywhere; servers of old send DER or PEM. */
function readBody<T>(operation: string, { body }: HttpAnswer, read: (der: Buffer) => T): T {
  try {
    return read(decoded(body));
  } catch (error) {
    if (error instanceof InputError) throw invalid(operation, error.message, error);
    throw error;
  }
}

function decoded(body: Buffer): Buffer {
  if (body[0] === 0x30 && !/^[A-Za-z0-9+/=\s]*$/.test(body.toString('latin1'))) return body;
  const text = body.toString('latin1');
  if (text.includes('-----BEGIN ')) {
    const [block] = parsePem(text);
    if (block !== undefined) return block.der;
  }
  // libest ends its csrattrs with a NUL.
  const base64 = text.replace(/[\s\0]+/g, '');
  if (base64.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(base64)) throw new InputError('it is not base64');
  return Buffer.from(base64, 'base64');
}

const invalid = (operation: string, reason: string, cause?: unknown): ClientError =>
  new ClientError('later', 'ANSWER_INVALID', `the answer to ${operation} is unusable: ${reason}`, { cause });

/** What a status says of the next attempt. */
function failure(operation: string, { status, headers, body }: HttpAnswer, now: number): ClientError {
  const text = /^text\/plain\b/i.test(headers['content-type'] ?? '') || headers['content-type'] === undefined;
  const reason = text ? oneLine(body) : '';
  const message = `${operation}: ${status}${reason === '' ? '' : ` (${reason})`}`;
  const retryAfter = parseRetryAfter(headers['retry-after'], now);
  const more = { status, retryAfter };
  if (status === 401) return new ClientError('unauthenticated', 'REFUSED', message, more);
  if (status >= 500 || status === 429 || status === 408)
    return new ClientError('later', 'SERVER_UNAVAILABLE', message, more);
  return new ClientError('refused', 'REFUSED', message, more);
}

/** A server's text on a terminal and in a log: one line of what can be printed. */
function oneLine(body: Buffer): string {
  const text = body
    .toString('utf8')
    .replace(/[\p{Cc}\p{Cf}\s]+/gu, ' ')
    .trim();
  return text.length > 300 ? `${text.slice(0, 300)}…` : text;
}
