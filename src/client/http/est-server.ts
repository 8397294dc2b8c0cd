/** An EST server for a client: operations (RFC 7030 §4), authentication, redirects and status codes. */
import {
  certificatesOf,
  derOf,
  isIssued,
  isWithoutAttributes,
  REQUEST_HEADERS,
  requestBody,
} from '../../est-protocol/bodies.ts';
import { exchange, RedirectError } from '../../est-protocol/exchange.ts';
import { InputError } from '../../pki/input-error.ts';
import { parseCsrAttrs, type AttrOrOid } from '../../pki/pkcs10/csrattrs.ts';
import { parseCertificate, type Certificate } from '../../pki/x509/certificate.ts';
import { ClientError } from '../client-error.ts';
import { parseMultipart, type BodyPart } from './multipart.ts';
import { authorization, noCredentials, type Credentials } from './authentication.ts';
import { Connection, type ClientIdentity, type HttpAnswer, type ServerTrust, type TlsSettings } from './connection.ts';
import { parseRetryAfter } from '../../retry-after.ts';

export interface EstServerSettings extends TlsSettings {
  /** `https://host[:port]`, with the operations' path (`/.well-known/est[/label]`). */
  readonly base: URL;
  readonly credentials: Credentials;
  readonly now: () => number;
  readonly randomBytes: (count: number) => Buffer;
}

export type EnrollmentOperation = 'simpleenroll' | 'simplereenroll' | 'serverkeygen';

/** @returns the DER of a request with this channel binding */
export type MakeCsr = (channelBinding: Buffer | undefined) => Promise<Buffer>;

export interface ServerKey {
  /** CMS; otherwise a PrivateKeyInfo, encrypted or not. */
  readonly isEnveloped: boolean;
  readonly der: Buffer;
}

export type EnrollmentAnswer =
  | { readonly kind: 'issued'; readonly certificate: Certificate; readonly serverKey?: ServerKey | undefined }
  /** 202: repeat the request after this many seconds. */
  | { readonly kind: 'pending'; readonly retryAfter: number };

/** Milliseconds since the epoch, and seconds. */
export interface RenewalInformation {
  readonly start: number;
  readonly end: number;
  readonly retryAfter: number | undefined;
}

const USER_AGENT = 'estuary-client';
/** Seconds for a 202 without Retry-After, which RFC 7030 §4.2.3 requires. */
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

  /** DER of the server's certificate on the open connection. */
  get serverCertificate(): Buffer | undefined {
    return this.#connection?.serverCertificate;
  }

  /** Changes trust and identity; closes an open connection. */
  use(trust: ServerTrust, identity: ClientIdentity | undefined): void {
    this.close();
    this.#session = undefined;
    this.#trust = trust;
    this.#identity = identity;
  }

  /** RFC 7030 §4.1. @throws ClientError */
  async caCertificates(): Promise<Certificate[]> {
    const answer = await this.#exchange('cacerts');
    if (answer.status !== 200) throw failure('cacerts', answer, this.#settings.now());
    const certificates = readBody('cacerts', () => certsOnlyOf(contentType(answer), answer.body));
    if (certificates.length === 0) throw invalid('cacerts', 'it contains no certificate');
    return certificates;
  }

  /**
   * RFC 7030 §4.5.
   * @param authenticate whether to answer a 401; otherwise the server's requirements show when it rejects the request
   * @returns empty if the server has no requirements
   * @throws ClientError
   */
  async csrAttributes(authenticate = false): Promise<AttrOrOid[]> {
    const answer = await this.#exchange('csrattrs', { authenticate });
    if (isWithoutAttributes(answer.status) || (answer.status === 401 && !authenticate)) return [];
    if (answer.status !== 200) throw failure('csrattrs', answer, this.#settings.now());
    if (answer.body.length === 0) return [];
    return readBody('csrattrs', () => parseCsrAttrs(derOf(answer.body)));
  }

  /** RFC 7030 §4.2, §4.4. The request is created anew for each connection. @throws ClientError */
  async enroll(operation: EnrollmentOperation, csr: MakeCsr): Promise<EnrollmentAnswer> {
    const answer = await this.#exchange(operation, { csr, authenticate: true });
    if (answer.status === 202) {
      const given = parseRetryAfter(answer.headers['retry-after'], this.#settings.now());
      return { kind: 'pending', retryAfter: given ?? DEFAULT_RETRY_AFTER };
    }
    if (!isIssued(answer.status)) throw failure(operation, answer, this.#settings.now());
    return readBody(operation, () => {
      const { certificates, serverKey } =
        operation === 'serverkeygen'
          ? readKeyAndCertificate(contentType(answer), answer.body)
          : { certificates: certsOnlyOf(contentType(answer), answer.body), serverKey: undefined };
      // RFC 7030 §4.2.3 allows only the issued certificate; some servers add its chain.
      const certificate = certificates.find(({ isCa }) => !isCa) ?? certificates[0];
      if (certificate === undefined) throw new InputError('it contains no certificate');
      return { kind: 'issued', certificate, serverKey };
    });
  }

  /**
   * draft-ietf-lamps-est-renewal-info.
   * @returns undefined if the server gives no valid information
   * @throws ClientError if it does not answer
   */
  async renewalInfo(id: string): Promise<RenewalInformation | 'unknown' | undefined> {
    const { status, body, headers } = await this.#exchange(`renewal-info/${id}`);
    if (status === 404) return 'unknown';
    if (status !== 200) return undefined;
    const { start, end } = windowOf(body.toString('utf8'));
    const window = { start: Date.parse(String(start)), end: Date.parse(String(end)) };
    if (!(window.start < window.end)) return undefined;
    return { ...window, retryAfter: parseRetryAfter(headers['retry-after'], this.#settings.now()) };
  }

  close(): void {
    this.#connection?.close();
    this.#connection = undefined;
  }

  /** The open connection, or a new one that resumes the session (RFC 7030 §3.3). */
  async #connected(): Promise<Connection> {
    if (this.#connection?.usable === true) return this.#connection;
    this.close();
    this.#connection = await Connection.open(this.#settings.base, {
      ...this.#settings,
      trust: this.#trust,
      identity: this.#identity,
      session: this.#session,
      onSession: (session) => (this.#session = session),
    });
    return this.#connection;
  }

  async #exchange(
    operation: string,
    { csr, authenticate = false }: { readonly csr?: MakeCsr; readonly authenticate?: boolean } = {},
  ): Promise<HttpAnswer> {
    const method = csr === undefined ? 'GET' : 'POST';
    let body: { readonly connection: Connection; readonly text: string } | undefined;
    const send = async (path: string, authorized: string | undefined): Promise<HttpAnswer> => {
      const isKept = this.#connection?.usable === true;
      const connection = await this.#connected();
      if (csr !== undefined && body?.connection !== connection)
        body = { connection, text: requestBody(await csr(connection.channelBinding)) };
      const headers = {
        Accept: '*/*',
        'User-Agent': USER_AGENT,
        ...(csr && REQUEST_HEADERS),
        ...(authorized === undefined ? {} : { Authorization: authorized }),
      };
      try {
        return await connection.send({ method, path, headers, ...(body && { body: body.text }) });
      } catch (error) {
        // A server may close an idle connection just as a request begins. A GET can be repeated.
        if (isKept && csr === undefined && error instanceof ClientError && error.code === 'SERVER_UNREACHABLE')
          return send(path, authorized);
        throw error;
      }
    };
    const url = new URL(`${this.#settings.base.pathname}/${operation}`, this.#settings.base);
    try {
      return await exchange(url, {
        authorization: authenticate ? await this.#bearer() : undefined,
        authorize: authenticate ? (offered, path) => this.#authorization(offered, method, path) : undefined,
        send,
      });
    } catch (error) {
      if (!(error instanceof RedirectError)) throw error;
      throw new ClientError('refused', 'REDIRECTED', error.message, { status: error.status });
    }
  }

  /** Without a challenge, which a gateway in front of an EST server often omits. */
  async #bearer(): Promise<string | undefined> {
    const { bearer } = this.#settings.credentials;
    if (bearer === undefined || this.#trust.kind === 'provisional') return undefined;
    return `Bearer ${await bearer()}`;
  }

  async #authorization(offered: string | undefined, method: string, path: string): Promise<string | undefined> {
    const { credentials, base, randomBytes } = this.#settings;
    // RFC 7030 §3.2.3, §4.1.1: never to an unauthenticated server.
    if (this.#trust.kind === 'provisional') return undefined;
    const answer = await authorization(offered, credentials, { method, path, host: base.hostname }, randomBytes);
    if (answer === undefined && offered !== undefined && this.#identity === undefined) throw noCredentials(offered);
    return answer;
  }
}

const contentType = ({ headers }: HttpAnswer): string => (headers['content-type'] ?? '').trim();

function certsOnlyOf(type: string, body: Buffer): Certificate[] {
  if (!/^application\/pkcs7-mime\b/i.test(type)) throw new InputError(`its type is "${type}"`);
  return certificatesOf(body).map(parseCertificate);
}

/** RFC 7030 §4.4.2: the parts may be in either order. */
function readKeyAndCertificate(
  type: string,
  body: Buffer,
): { readonly certificates: readonly Certificate[]; readonly serverKey: ServerKey } {
  if (!/^multipart\//i.test(type)) throw new InputError(`its type is "${type}"`);
  const parts = parseMultipart(type, body);
  const isEnveloped = (part: BodyPart): boolean =>
    part.type === 'application/pkcs7-mime' &&
    /smime-type="?(?:server-generated-key|enveloped-data)/i.test(part.contentType);
  const key = parts.find((part) => part.type === 'application/pkcs8' || isEnveloped(part));
  const certificate = parts.find((part) => part !== key && part.type === 'application/pkcs7-mime');
  if (key === undefined || certificate === undefined)
    throw new InputError(`its parts are ${parts.map((part) => part.contentType).join(', ')}`);
  const serverKey = { isEnveloped: isEnveloped(key), der: derOf(key.body) };
  return { certificates: certsOnlyOf(certificate.contentType, certificate.body), serverKey };
}

function readBody<T>(operation: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof InputError) throw invalid(operation, error.message, error);
    throw error;
  }
}

const invalid = (operation: string, reason: string, cause?: unknown): ClientError =>
  new ClientError('later', 'ANSWER_INVALID', `the response to ${operation} is unusable: ${reason}`, { cause });

/** What a status means for the next attempt. */
function failure(operation: string, { status, headers, body }: HttpAnswer, now: number): ClientError {
  const text = /^text\/plain\b/i.test(headers['content-type'] ?? '') || headers['content-type'] === undefined;
  const reason = text ? oneLine(body) : '';
  const message = `${operation}: ${status}${reason === '' ? '' : ` (${reason})`}`;
  const retryAfter = parseRetryAfter(headers['retry-after'], now);
  const more = { status, retryAfter };
  if (status === 403 && /device not registered/i.test(reason))
    return new ClientError('disabled', 'DEVICE_DISABLED', message, more);
  if (status === 401) return new ClientError('unauthenticated', 'REFUSED', message, more);
  if (status >= 500 || status === 429 || status === 408)
    return new ClientError('later', 'SERVER_UNAVAILABLE', message, more);
  return new ClientError('refused', 'REFUSED', message, more);
}

/** Server text for a terminal or a log: one printable line. */
function oneLine(body: Buffer): string {
  const text = body
    .toString('utf8')
    .replace(/[\p{Cc}\p{Cf}\s]+/gu, ' ')
    .trim();
  return text.length > 300 ? `${text.slice(0, 300)}…` : text;
}

/** The member `suggestedWindow` of a JSON text, unchecked. */
function windowOf(text: string): { readonly start?: unknown; readonly end?: unknown } {
  try {
    const json: unknown = JSON.parse(text);
    const window: unknown =
      typeof json === 'object' && json !== null && 'suggestedWindow' in json ? json.suggestedWindow : {};
    return typeof window === 'object' && window !== null ? window : {};
  } catch {
    return {};
  }
}
