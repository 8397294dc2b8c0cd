/**
 * `driver = "acme"`: submits CSRs to an ACME server (RFC 8555, docs/guides/upstream.md). Stores the order's URL before it
 * sends the CSR, so any later poll can continue the order.
 */
import type { KeyObject } from 'node:crypto';
import { badRequest, describe, EstuaryError, failed, isRefusal } from '../../errors.ts';
import { OID } from '../../pki/der/oids.ts';
import { parsePem } from '../../pki/der/pem.ts';
import { InputError } from '../../pki/input-error.ts';
import { CRL_REASONS, isCrlReason } from '../../pki/x509/crl.ts';
import { attributeValues } from '../../pki/x509/name.ts';
import { runProgram } from '../../process/run-program.ts';
import { parseRetryAfter } from '../../retry-after.ts';
import { type ClientTls, type HttpAnswer, HttpClient, TransportError } from '../remote/http.ts';
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
import { dnsRecord, externalAccountBinding, type Jwk, jwkOf, signedBody } from './jws.ts';

interface AcmeOptions {
  readonly directory: string;
  readonly tls: ClientTls;
  readonly accountKey: KeyObject;
  readonly binding: { readonly kid: string; readonly key: () => Buffer } | undefined;
  /** `none`: the CA has already authorized our names. */
  readonly challenge: 'dns-01' | 'none';
  readonly dnsHook: readonly [string, ...string[]] | undefined;
  /** Milliseconds for one call or one run of the hook. */
  readonly timeout: number;
  /** Seconds; for 503 responses, and between polls if the upstream names no interval. */
  readonly retryAfter: number;
}

type Json = Readonly<Record<string, unknown>>;

interface Directory {
  readonly newNonce: string;
  readonly newAccount: string;
  readonly newOrder: string;
  readonly revokeCert: string | undefined;
}

interface Answer {
  readonly json: Json;
  readonly headers: HttpAnswer['headers'];
  readonly body: Buffer;
}

/** A nonce may be used or expired (RFC 8555 §6.5). */
const NONCE_ATTEMPTS = 10;
/** Milliseconds between polls of an order or a challenge, doubled up to the maximum; and the number of polls of a challenge. */
const [SHORTEST_PAUSE, LONGEST_PAUSE, LOOKS] = [50, 500, 12];
/** Milliseconds to wait for an order after the CSR was sent. */
const LONGEST_LOOK = 4000;

export class AcmeUpstream implements Upstream {
  readonly name = 'acme';
  readonly canRecover = false;
  readonly continuesAtOnce = true;
  readonly #options: AcmeOptions;
  readonly #jwk: Jwk;
  readonly #clients = new Map<string, HttpClient>();
  readonly #nonces: string[] = [];
  #directory: Directory | undefined;
  #account: string | undefined;

  constructor(options: AcmeOptions) {
    this.#options = options;
    this.#jwk = jwkOf(options.accountKey);
  }

  /** Identifiers are `dns` and `ip` (RFC 8555 §9.7.7, RFC 8738); the CN must be one of them. */
  check({ subject, subjectAltNames }: Pick<UpstreamRequest, 'subject' | 'subjectAltNames'>): void {
    const values = subjectAltNames.map((name) => (name.kind === 'dns' || name.kind === 'ip' ? name.value : undefined));
    if (values.length === 0 || values.includes(undefined))
      throw badRequest(
        'UPSTREAM_NAMES',
        'This CA issues certificates for DNS names and IP addresses in the subjectAltName only.',
      );
    const lower = new Set(values.map((value) => value?.toLowerCase()));
    const strange = attributeValues(subject, OID.commonName).find((value) => !lower.has(value.toLowerCase()));
    if (strange !== undefined)
      throw badRequest(
        'UPSTREAM_NAMES',
        `The common name "${shortened(strange)}" is not one of the names in the subjectAltName.`,
      );
  }

  async submit(request: UpstreamRequest, waits: boolean): Promise<UpstreamAnswer> {
    const { newOrder } = await this.#resources();
    const identifiers = request.subjectAltNames.map((name) =>
      name.kind === 'ip'
        ? { type: 'ip', value: name.value }
        : { type: 'dns', value: 'value' in name ? name.value : '' },
    );
    // If the response is lost, the order issues nothing: it has no CSR yet.
    const { headers } = await this.#post(newOrder, { identifiers });
    const order = headers.location;
    if (order === undefined || !URL.canParse(order)) throw unreadable('the order has no URL');
    if (waits) return { status: 'pending', reference: order };
    return this.#continue(request, order, true);
  }

  poll(request: UpstreamRequest, reference: string | undefined): Promise<UpstreamAnswer | { status: 'unknown' }> {
    return reference === undefined ? Promise.resolve({ status: 'unknown' }) : this.#continue(request, reference, false);
  }

  /**
   * Advances an order as far as possible now.
   * @param isLast no later poll continues it, so a failure after the CSR was sent leaves its outcome open
   * @throws EstuaryError; {@link Unanswered}
   */
  async #continue(request: UpstreamRequest, url: string, isLast: boolean): Promise<UpstreamAnswer> {
    const end = Date.now() + Math.min(this.#options.timeout, LONGEST_LOOK);
    let isSent = false;
    for (let look = 0; ; look++) {
      try {
        let { json: order, headers } = await this.#post(url, undefined);
        if (order['status'] === 'pending') {
          await this.#authorize(order);
          ({ json: order, headers } = await this.#post(url, undefined));
        }
        if (order['status'] === 'ready') {
          isSent = true;
          const csr = request.csr.toString('base64url');
          ({ json: order, headers } = await this.#post(textOf(order, 'finalize'), { csr }));
        }
        if (order['status'] === 'valid')
          return { status: 'issued', certificates: await this.#download(textOf(order, 'certificate')) };
        if (order['status'] === 'invalid') return { status: 'rejected', reason: problemOf(order) };
        const wait = parseRetryAfter(headers['retry-after'], Date.now());
        const pause = wait === undefined ? Math.min(LONGEST_PAUSE, SHORTEST_PAUSE << look) : wait * 1000;
        if (!isSent || Date.now() + pause >= end)
          return { status: 'pending', reference: url, retryAfter: wait ?? this.#options.retryAfter };
        await new Promise((resolve) => setTimeout(resolve, pause).unref());
      } catch (error) {
        if (!isSent || !isLast || isRefusal(error)) throw error;
        // Asks for the order, which may be finished.
        if (look > 0) throw new Unanswered(`order ${url}: ${describe(error)}`, error);
      }
    }
  }

  async #authorize(order: Json): Promise<void> {
    for (const url of listOf(order, 'authorizations')) {
      if (typeof url !== 'string') throw unreadable('an authorization without a URL');
      const { json: authorization } = await this.#post(url, undefined);
      if (authorization['status'] === 'pending') await this.#prove(authorization);
    }
  }

  /** Answers the dns-01 challenge of an authorization unless it is already valid. */
  async #prove(authorization: Json): Promise<void> {
    const { challenge: kind, dnsHook } = this.#options;
    const { value } = objectOf(authorization, 'identifier');
    const name = typeof value === 'string' ? value : '';
    if (kind === 'none' || dnsHook === undefined)
      throw upstreamFailed(
        `the account has no authorization for "${shortened(name)}", and [ca.acme] challenge is "none"`,
      );
    const challenge = listOf(authorization, 'challenges').find(
      (one): one is Json => isJson(one) && one['type'] === kind,
    );
    if (challenge === undefined)
      throw upstreamFailed(`the upstream CA offers no ${kind} challenge for "${shortened(name)}"`);
    if (challenge['status'] !== 'pending') return;
    const record = [`_acme-challenge.${name}`, dnsRecord(textOf(challenge, 'token'), this.#jwk)] as const;
    await this.#hook(dnsHook, 'present', record);
    try {
      const url = textOf(challenge, 'url');
      let { json } = await this.#post(url, {});
      for (let look = 0; look < LOOKS && json['status'] !== 'valid' && json['status'] !== 'invalid'; look++) {
        await new Promise((resolve) => setTimeout(resolve, Math.min(LONGEST_PAUSE, SHORTEST_PAUSE << look)).unref());
        ({ json } = await this.#post(url, undefined));
      }
    } finally {
      // The server may read the record until it decides. A leftover record is useless to others.
      await this.#hook(dnsHook, 'cleanup', record).catch(() => undefined);
    }
  }

  async #hook(hook: readonly [string, ...string[]], verb: string, record: readonly [string, string]): Promise<void> {
    const { timeout } = this.#options;
    const [program, ...args] = hook;
    const result = await runProgram({
      command: [program, ...args, verb, ...record],
      env: {},
      timeout,
      maxOutput: 64 << 10,
    }).catch((error: unknown) => {
      throw upstreamFailed(describe(error));
    });
    if (result.code !== 0)
      throw upstreamFailed(
        `${program} ${verb} ended with exit code ${result.code}: ${shortened(result.stderr.toString('utf8'))}`,
      );
  }

  async #download(url: string): Promise<readonly Buffer[]> {
    const { body } = await this.#post(url, undefined);
    try {
      const certificates = parsePem(body.toString('latin1')).map(({ der }) => der);
      if (certificates.length === 0) throw unreadable('the order has no certificate');
      return certificates;
    } catch (error) {
      if (error instanceof InputError) throw unreadable(error.message);
      throw error;
    }
  }

  async revoke(certificate: Buffer, reason: string): Promise<void> {
    const { revokeCert } = await this.#resources();
    if (revokeCert === undefined) return;
    const code = isCrlReason(reason) ? CRL_REASONS[reason] : 0;
    try {
      await this.#post(revokeCert, { certificate: certificate.toString('base64url'), reason: code });
    } catch (error) {
      // An earlier revocation whose response was lost.
      if (error instanceof EstuaryError && /alreadyRevoked/.test(error.detail ?? '')) return;
      throw error;
    }
  }

  async probe(): Promise<void> {
    this.#directory = undefined;
    await this.#resources();
  }

  close(): void {
    for (const client of this.#clients.values()) client.close();
  }

  async #resources(): Promise<Directory> {
    if (this.#directory !== undefined) return this.#directory;
    const answer = await this.#call('GET', this.#options.directory);
    if (answer.status !== 200) throw this.#refusal(answer);
    const json = jsonOf(answer);
    const revoke = json['revokeCert'];
    this.#directory = {
      newNonce: textOf(json, 'newNonce'),
      newAccount: textOf(json, 'newAccount'),
      newOrder: textOf(json, 'newOrder'),
      revokeCert: typeof revoke === 'string' ? revoke : undefined,
    };
    return this.#directory;
  }

  /** The account's URL; newAccount returns the existing account of a known key (RFC 8555 §7.3.1). */
  async #accountUrl(): Promise<string> {
    if (this.#account !== undefined) return this.#account;
    const { newAccount } = await this.#resources();
    const { binding } = this.#options;
    const externalAccount =
      binding === undefined
        ? {}
        : { externalAccountBinding: externalAccountBinding(binding.kid, binding.key(), newAccount, this.#jwk) };
    const payload = { termsOfServiceAgreed: true, ...externalAccount };
    const { headers } = await this.#signed(newAccount, payload, { jwk: this.#jwk });
    if (headers.location === undefined) throw unreadable('the account has no URL');
    this.#account = headers.location;
    return this.#account;
  }

  async #post(url: string, payload: object | undefined): Promise<Answer> {
    return this.#signed(url, payload, { kid: await this.#accountUrl() });
  }

  async #signed(url: string, payload: object | undefined, who: object): Promise<Answer> {
    for (let attempt = 1; ; attempt++) {
      const nonce = this.#nonces.pop() ?? (await this.#freshNonce());
      const body = signedBody(this.#options.accountKey, { ...who, nonce, url }, payload);
      const answer = await this.#call('POST', url, body);
      const next = nonceOf(answer);
      if (next !== undefined && this.#nonces.length < 64) this.#nonces.push(next);
      if (answer.status >= 200 && answer.status < 300)
        return { json: /json/.test(answer.headers['content-type'] ?? '') ? jsonOf(answer) : {}, ...answer };
      if (typeOf(answer) !== 'badNonce' || attempt >= NONCE_ATTEMPTS) throw this.#refusal(answer);
    }
  }

  async #freshNonce(): Promise<string> {
    const { newNonce } = await this.#resources();
    const nonce = nonceOf(await this.#call('HEAD', newNonce));
    if (nonce === undefined) throw unreadable('no nonce');
    return nonce;
  }

  /** The ACME error type takes precedence over the HTTP status. */
  #refusal(answer: HttpAnswer): EstuaryError {
    const type = typeOf(answer);
    const statuses: Readonly<Record<string, number>> = {
      badCSR: 400,
      rejectedIdentifier: 403,
      unauthorized: 403,
      rateLimited: 429,
    };
    const status = statuses[type ?? ''] ?? (type === undefined ? answer.status : fromStatus(answer.status));
    const text = `${problemOf(readJson(answer) ?? {})}${status >= 500 || status === 401 ? ` (${type ?? 'no type'})` : ''}`;
    if (type === 'accountDoesNotExist') this.#account = undefined;
    const retryAfter = parseRetryAfter(answer.headers['retry-after'], Date.now());
    const error = refusalOf({ status, text, retryAfter }, this.#options.retryAfter);
    if (type !== 'alreadyRevoked') return error;
    return failed('UPSTREAM_FAILED', error.message, { detail: `alreadyRevoked: ${text}` });
  }

  async #call(method: 'GET' | 'HEAD' | 'POST', url: string, body?: Buffer): Promise<HttpAnswer> {
    const { tls, timeout, retryAfter } = this.#options;
    const { origin, pathname, search, protocol } = new URL(url);
    if (protocol !== 'https:') throw unreadable(`"${shortened(url)}" is not an https URL`);
    let client = this.#clients.get(origin);
    if (client === undefined) this.#clients.set(origin, (client = new HttpClient(origin, tls)));
    try {
      const headers = {
        'User-Agent': 'estuary',
        ...(body === undefined ? {} : { 'Content-Type': 'application/jose+json' }),
      };
      const path = `${pathname}${search}`;
      return await client.call({ method, path, headers, deadline: Date.now() + timeout, ...(body && { body }) });
    } catch (error) {
      if (!(error instanceof TransportError)) throw error;
      // Every step of an order can be repeated, so a lost response counts as a failed call.
      throw caUnavailable(error.message, retryAfter);
    }
  }
}

function nonceOf({ headers }: HttpAnswer): string | undefined {
  const nonce = headers['replay-nonce'];
  return typeof nonce === 'string' ? nonce : undefined;
}

/** 400 or 403 with another type concerns our account or our request, not the device. */
const fromStatus = (status: number): number => (status === 429 || status === 503 ? status : 500);

const isJson = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value);

function readJson({ body }: Pick<HttpAnswer, 'body'>): Json | undefined {
  try {
    const value: unknown = JSON.parse(body.toString('utf8'));
    return isJson(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function jsonOf(answer: Pick<HttpAnswer, 'body'>): Json {
  const json = readJson(answer);
  if (json === undefined) throw unreadable('its answer is not a JSON object');
  return json;
}

function textOf(json: Json, name: string): string {
  const value = json[name];
  if (typeof value !== 'string') throw unreadable(`its answer has no "${name}"`);
  return value;
}

function objectOf(json: Json, name: string): Json {
  const value = json[name];
  return isJson(value) ? value : {};
}

function listOf(json: Json, name: string): readonly unknown[] {
  const value = json[name];
  return Array.isArray(value) ? value : [];
}

/** The type of a problem document (RFC 8555 §6.7), without its namespace. */
function typeOf(answer: Pick<HttpAnswer, 'body'>): string | undefined {
  const type = readJson(answer)?.['type'];
  return typeof type === 'string' ? type.replace(/^urn:ietf:params:acme:error:/, '') : undefined;
}

/** The error text of a problem document or an invalid order. */
function problemOf(json: Json): string {
  const detail = json['detail'] ?? objectOf(json, 'error')['detail'];
  return typeof detail === 'string' && detail !== '' ? shortened(detail) : 'The upstream CA rejected the request.';
}

const unreadable = (detail: string): EstuaryError =>
  upstreamFailed(`the upstream CA's answer cannot be used: ${shortened(detail)}`);
