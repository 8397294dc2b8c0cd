/**
 * `driver = "est"`: enrolls at another EST server (RFC 7030, RFC 8951) as a registration authority (docs/guides/upstream.md).
 */
import { EstuaryError, isRefusal } from '../../errors.ts';
import { parseCertsOnly } from '../../pki/cms/cms.ts';
import { parseDer, Tag } from '../../pki/der/der.ts';
import { parsePem } from '../../pki/der/pem.ts';
import { InputError } from '../../pki/input-error.ts';
import { type Certificate, parseCertificate, isIssuedBy } from '../../pki/x509/certificate.ts';
import { parseRetryAfter } from '../../retry-after.ts';
import { type HttpAnswer, type HttpCall, type HttpCaller, TransportError } from '../remote/http.ts';
import {
  caUnavailable,
  refusalOf,
  shortened,
  Unanswered,
  type Upstream,
  type UpstreamAnswer,
  upstreamFailed,
  type UpstreamRequest,
} from '../remote/upstream.ts';

interface EstUpstreamOptions {
  /** Its base URL includes the label: `https://ca.example.com/.well-known/est/edge`. */
  readonly client: HttpCaller;
  /** HTTP Basic, if no client certificate is configured. */
  readonly password: { readonly username: string; readonly reveal: () => string } | undefined;
  /** Whether csrattrs come from the upstream. */
  readonly forwardsCsrAttributes: boolean;
  /** Milliseconds per call. */
  readonly timeout: number;
  /** Seconds; for 503 responses, and between polls if the upstream names no interval. */
  readonly retryAfter: number;
}

/** A pending request has no ID: it is polled by sending it again (RFC 7030 §4.2.3). */
const PENDING = 'simpleenroll';

export class EstUpstream implements Upstream {
  readonly name = 'est';
  readonly canRecover = false;
  readonly continuesAtOnce = false;
  readonly csrAttributes?: () => Promise<Buffer | undefined>;
  readonly #options: EstUpstreamOptions;
  readonly #client: HttpCaller;

  constructor(options: EstUpstreamOptions) {
    this.#options = options;
    this.#client = options.client;
    if (options.forwardsCsrAttributes) this.csrAttributes = () => this.#csrAttributes();
  }

  async start(): Promise<void> {
    await this.#client.start?.();
  }

  async submit({ csr }: UpstreamRequest): Promise<UpstreamAnswer> {
    const { password, retryAfter } = this.#options;
    const body = Buffer.from(`${csr.toString('base64').replace(/.{64}(?=.)/g, '$&\n')}\n`, 'latin1');
    const answer = await this.#call({
      method: 'POST',
      path: '/simpleenroll',
      headers: {
        'Content-Type': 'application/pkcs10',
        'Content-Transfer-Encoding': 'base64',
        ...(password === undefined ? {} : { Authorization: basic(password) }),
      },
      body,
      // A connection that the server is closing must not lose the request.
      freshConnection: true,
    });
    if (answer.status === 202)
      return { status: 'pending', reference: PENDING, retryAfter: waitOf(answer) ?? retryAfter };
    if (answer.status !== 200) throw this.#refusal(answer);
    return { status: 'issued', certificates: this.#read(answer, parseCertsOnly, 'possibly issued: ') };
  }

  /** @throws Unanswered; EstuaryError */
  async poll(request: UpstreamRequest, reference: string | undefined): Promise<UpstreamAnswer | { status: 'unknown' }> {
    // EST has no query for an unanswered submission.
    if (reference === undefined) return { status: 'unknown' };
    try {
      return await this.submit(request);
    } catch (error) {
      if (error instanceof EstuaryError && isRefusal(error)) return { status: 'rejected', reason: error.message };
      throw error;
    }
  }

  async chain(): Promise<readonly Certificate[]> {
    return issuerFirst(this.#read(await this.#get('/cacerts'), (der) => parseCertsOnly(der).map(parseCertificate)));
  }

  async #csrAttributes(): Promise<Buffer | undefined> {
    const answer = await this.#get('/csrattrs', [200, 204, 404]);
    if (answer.status !== 200) return undefined;
    return this.#read(answer, (der) => parseDer(der, Tag.SEQUENCE, 'CsrAttrs').raw);
  }

  async probe(): Promise<void> {
    await this.#get('/cacerts');
  }

  async #get(path: string, expected: readonly number[] = [200]): Promise<HttpAnswer> {
    const answer = await this.#call({ method: 'GET', path });
    if (!expected.includes(answer.status)) throw this.#refusal(answer);
    return answer;
  }

  #refusal({ status, headers, body }: HttpAnswer): Error {
    const isText = /^text\/plain\b/i.test(headers['content-type'] ?? '');
    const text = isText ? body.subarray(0, 4096).toString('utf8') : '';
    return refusalOf({ status, text, retryAfter: waitOf({ headers }) }, this.#options.retryAfter);
  }

  async #call(call: Omit<HttpCall, 'deadline'>): Promise<HttpAnswer> {
    const { timeout, retryAfter } = this.#options;
    try {
      return await this.#client.call({ ...call, deadline: Date.now() + timeout });
    } catch (error) {
      if (!(error instanceof TransportError)) throw error;
      if (error.mayHaveArrived && call.method === 'POST') throw new Unanswered(error.message, error);
      throw caUnavailable(error.message, retryAfter);
    }
  }

  /** RFC 8951 §3.1: base64 with any white space; old servers send PEM or DER. @throws EstuaryError 500 */
  #read<T>({ body }: HttpAnswer, read: (der: Buffer) => T, note = ''): T {
    try {
      const text = body.toString('latin1');
      const isDer = body[0] === 0x30 && !/^[\x09-\x7e]*$/.test(text);
      const block = isDer ? { der: body } : parsePem(text).at(0);
      return read(block?.der ?? base64Of(text));
    } catch (error) {
      if (!(error instanceof InputError)) throw error;
      throw upstreamFailed(`${note}its answer cannot be read: ${shortened(error.message)}`);
    }
  }

  close(): void {
    this.#client.close();
  }
}

function base64Of(text: string): Buffer {
  const packed = text.replace(/\s+/g, '');
  if (packed === '' || packed.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(packed))
    throw new InputError('it is not base64');
  return Buffer.from(packed, 'base64');
}

const waitOf = ({ headers }: Pick<HttpAnswer, 'headers'>): number | undefined =>
  parseRetryAfter(headers['retry-after'], Date.now());

const basic = ({ username, reveal }: { readonly username: string; readonly reveal: () => string }): string =>
  `Basic ${Buffer.from(`${username}:${reveal()}`, 'utf8').toString('base64')}`;

/** The issuing CA issued none of the other certificates. Servers send them in any order (RFC 7030 §4.1.3). */
async function issuerFirst(certificates: readonly Certificate[]): Promise<Certificate[]> {
  for (const one of certificates) {
    let issuesOther = false;
    for (const other of certificates) issuesOther ||= other !== one && (await isIssuedBy(other, one));
    if (!issuesOther) return [one, ...certificates.filter((other) => other !== one)];
  }
  return [...certificates];
}
