/**
 * `driver = "est"`: enrolls at another EST server (RFC 7030, RFC 8951) as a registration authority (docs/guides/upstream.md).
 */
import { EstuaryError, isRefusal } from '../../errors.ts';
import { certificatesOf, derOf, isIssued, isWithoutAttributes } from '../../est-protocol/bodies.ts';
import { callOperation, RedirectError } from '../../est-protocol/exchange.ts';
import { parseDer, Tag } from '../../pki/der/der.ts';
import { InputError } from '../../pki/input-error.ts';
import { type Certificate, parseCertificate } from '../../pki/x509/certificate.ts';
import { issuerFirst } from '../remote/issued.ts';
import type { HttpAnswer, HttpCaller } from '../../https-client.ts';
import {
  refusalOf,
  shortened,
  type Upstream,
  type UpstreamAnswer,
  upstreamFailed,
  type UpstreamRequest,
  waitOf,
  withoutAnswer,
} from '../remote/upstream.ts';

interface EstUpstreamOptions {
  readonly client: HttpCaller;
  /** Includes the label: `https://ca.example.com/.well-known/est/edge`. */
  readonly url: string;
  readonly password: { readonly username: string; readonly reveal: () => string } | undefined;
  readonly hasCertificate: boolean;
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

  constructor(options: EstUpstreamOptions) {
    this.#options = options;
    if (options.forwardsCsrAttributes) this.csrAttributes = () => this.#csrAttributes();
  }

  get hasGivenUp(): boolean {
    return this.#options.client.hasGivenUp ?? false;
  }

  async start(): Promise<void> {
    await this.#options.client.start?.();
  }

  async submit({ csr }: UpstreamRequest): Promise<UpstreamAnswer> {
    const answer = await this.#call('simpleenroll', csr);
    if (answer.status === 202)
      return { status: 'pending', reference: PENDING, retryAfter: waitOf(answer) ?? this.#options.retryAfter };
    if (!isIssued(answer.status)) throw this.#refusal(answer);
    return { status: 'issued', certificates: read(answer, certificatesOf, 'possibly issued: ') };
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
    const answer = await this.#call('cacerts');
    if (answer.status !== 200) throw this.#refusal(answer);
    return issuerFirst(read(answer, (body) => certificatesOf(body).map(parseCertificate)));
  }

  async #csrAttributes(): Promise<Buffer | undefined> {
    const answer = await this.#call('csrattrs');
    if (isWithoutAttributes(answer.status) || (answer.status === 200 && answer.body.length === 0)) return undefined;
    if (answer.status !== 200) throw this.#refusal(answer);
    return read(answer, (body) => parseDer(derOf(body), Tag.SEQUENCE, 'CsrAttrs').raw);
  }

  async probe(): Promise<void> {
    await this.chain();
  }

  #refusal({ status, headers, body, certificateRequested }: HttpAnswer): Error {
    if (status === 403 && this.#options.hasCertificate && certificateRequested === false)
      return upstreamFailed(
        'the upstream CA answered 403 and never requested the client certificate; if its server requests it after the handshake, set [ca.est] max_tls_version = "TLSv1.2"',
      );
    const isText = /^text\/plain\b/i.test(headers['content-type'] ?? '');
    const text = isText ? body.subarray(0, 4096).toString('utf8') : '';
    return refusalOf({ status, text, retryAfter: waitOf({ headers }) }, this.#options.retryAfter);
  }

  /** @param csr to enroll @throws EstuaryError; Unanswered */
  async #call(operation: string, csr?: Buffer): Promise<HttpAnswer> {
    const { client, url: base, password, timeout, retryAfter } = this.#options;
    const deadline = Date.now() + timeout;
    // A connection that the server is closing must not lose the request.
    const freshConnection = csr !== undefined;
    try {
      return await callOperation({
        ...{ base, operation, csr, password },
        send: (request) => client.call({ ...request, deadline, freshConnection }),
      });
    } catch (error) {
      if (error instanceof RedirectError) throw upstreamFailed(error.message);
      throw withoutAnswer(error, retryAfter, csr !== undefined);
    }
  }

  close(): void {
    this.#options.client.close();
  }
}

/** @throws EstuaryError 500 */
function read<T>({ body }: HttpAnswer, parse: (body: Buffer) => T, note = ''): T {
  try {
    return parse(body);
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    throw upstreamFailed(`${note}its answer cannot be read: ${shortened(error.message)}`);
  }
}
