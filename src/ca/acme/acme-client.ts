/** The requests of an ACME client (RFC 8555 §6, §7.1 to §7.3): directory, nonces, account, signed requests, errors. */
import type { KeyObject } from 'node:crypto';
import { EstuaryError, isUnavailable } from '../../errors.ts';
import type { AcmeAccountStore } from '../../store/acme-account-store.ts';
import { type ClientTls, type HttpAnswer, HttpClient } from '../../https-client.ts';
import { refusalOf, shortened, upstreamFailed, waitOf, withoutAnswer } from '../remote/upstream.ts';
import { externalAccountBinding, type Jwk, jwkOf, signedBody, thumbprint } from './jws.ts';

export interface AcmeClientOptions {
  readonly directory: string;
  /** Origins of the server's URLs, in addition to the directory's. */
  readonly origins: readonly string[];
  readonly tls: ClientTls;
  readonly accountKey: KeyObject;
  readonly contact: readonly string[];
  readonly binding: { readonly kid: string; readonly key: () => Buffer } | undefined;
  /** Keeps the account's URL: some servers accept an external account binding once. */
  readonly store: AcmeAccountStore;
  /** Milliseconds for one call. */
  readonly timeout: number;
  /** Seconds; for 503 responses. */
  readonly retryAfter: number;
}

export type Json = Readonly<Record<string, unknown>>;

interface Directory {
  readonly newNonce: string;
  readonly newAccount: string;
  readonly newOrder: string;
  readonly revokeCert: string | undefined;
}

export interface AcmeAnswer {
  readonly json: Json;
  readonly body: Buffer;
  readonly location: string | undefined;
  /** Seconds. */
  readonly retryAfter: number | undefined;
}

/** A problem document (RFC 8555 §6.7), as the response for the device. */
export class AcmeProblem extends EstuaryError {
  /** Without its namespace. */
  readonly type: string | undefined;
  /** Of the response that carried it. */
  readonly answered: number;

  constructor({ status, code, message, detail, retryAfter }: EstuaryError, type: string | undefined, answered: number) {
    super(status, code, message, {
      ...(detail === undefined ? {} : { detail }),
      ...(retryAfter === undefined ? {} : { retryAfter }),
    });
    this.type = type;
    this.answered = answered;
  }
}

/** A nonce may be used or expired (RFC 8555 §6.5). */
const NONCE_ATTEMPTS = 10;
const MAX_NONCES = 64;

export class AcmeClient {
  readonly jwk: Jwk;
  readonly #options: AcmeClientOptions;
  readonly #origins: ReadonlySet<string>;
  readonly #clients = new Map<string, HttpClient>();
  readonly #nonces: string[] = [];
  #directory: Directory | undefined;
  #account: Promise<string> | undefined;
  /** A stored account that the server does not know any more. */
  #lostAccount: string | undefined;

  constructor(options: AcmeClientOptions) {
    this.#options = options;
    this.#origins = new Set([options.directory, ...options.origins].map((url) => new URL(url).origin));
    this.jwk = jwkOf(options.accountKey);
  }

  async readDirectory(): Promise<Directory> {
    const answer = await this.#call('GET', this.#options.directory);
    if (answer.status !== 200) throw this.#problem(answer);
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

  async resources(): Promise<Directory> {
    return this.#directory ?? this.readDirectory();
  }

  /** @param payload undefined: POST-as-GET @throws EstuaryError; AcmeProblem */
  async post(url: string, payload: object | undefined): Promise<AcmeAnswer> {
    const account = await this.#accountUrl();
    try {
      return await this.#signed(url, payload, { kid: account });
    } catch (error) {
      if (!(error instanceof AcmeProblem) || error.type !== 'accountDoesNotExist') throw error;
      this.#account = undefined;
      this.#lostAccount = account;
      return this.#signed(url, payload, { kid: await this.#accountUrl() });
    }
  }

  #accountUrl(): Promise<string> {
    if (this.#account === undefined) {
      const account = this.#findAccount();
      account.catch(() => (this.#account = undefined));
      this.#account = account;
    }
    return this.#account;
  }

  async #findAccount(): Promise<string> {
    const { directory, store } = this.#options;
    const key = { directory, thumbprint: thumbprint(this.jwk) };
    const stored = await store.getAcmeAccount(key);
    if (stored !== undefined && stored !== this.#lostAccount) return stored;
    const { location } = (await this.#existingAccount()) ?? (await this.#newAccount());
    if (location === undefined) throw unreadable('the account has no URL');
    await store.putAcmeAccount(key, location);
    return location;
  }

  /** RFC 8555 §7.3.1. Servers without accounts for our key may answer with what a new account lacks. */
  async #existingAccount(): Promise<AcmeAnswer | undefined> {
    const { newAccount } = await this.resources();
    try {
      return await this.#signed(newAccount, { onlyReturnExisting: true }, { jwk: this.jwk });
    } catch (error) {
      const isRefused = error instanceof AcmeProblem && !isUnavailable(error) && error.answered < 500;
      if (!isRefused || error.type === 'unauthorized') throw error;
      return undefined;
    }
  }

  async #newAccount(): Promise<AcmeAnswer> {
    const { binding, contact } = this.#options;
    const { newAccount } = await this.resources();
    const payload = {
      termsOfServiceAgreed: true,
      ...(contact.length === 0 ? {} : { contact }),
      ...(binding && {
        externalAccountBinding: externalAccountBinding(binding.kid, binding.key(), newAccount, this.jwk),
      }),
    };
    return this.#signed(newAccount, payload, { jwk: this.jwk });
  }

  async #signed(url: string, payload: object | undefined, who: object): Promise<AcmeAnswer> {
    for (let attempt = 1; ; attempt++) {
      const nonce = this.#nonces.pop() ?? (await this.#freshNonce());
      const answer = await this.#call(
        'POST',
        url,
        signedBody(this.#options.accountKey, { ...who, nonce, url }, payload),
      );
      const next = nonceOf(answer);
      if (next !== undefined && this.#nonces.length < MAX_NONCES) this.#nonces.push(next);
      if (answer.status >= 200 && answer.status < 300) {
        const { headers, body } = answer;
        const json = /json/.test(headers['content-type'] ?? '') ? jsonOf(answer) : {};
        return { json, body, location: headers.location, retryAfter: waitOf(answer) };
      }
      const problem = this.#problem(answer);
      if (problem.type !== 'badNonce' || attempt >= NONCE_ATTEMPTS) throw problem;
    }
  }

  async #freshNonce(): Promise<string> {
    const { newNonce } = await this.resources();
    const nonce = nonceOf(await this.#call('HEAD', newNonce));
    if (nonce === undefined) throw unreadable('no nonce');
    return nonce;
  }

  /** The ACME error type takes precedence over the HTTP status. */
  #problem(answer: HttpAnswer): AcmeProblem {
    const document = readJson(answer) ?? {};
    const type = typeOf(document);
    const status = STATUSES.get(type ?? '') ?? (type === undefined ? answer.status : fromStatus(answer.status));
    const text = `${problemText(document) ?? ''}${status >= 500 || status === 401 ? ` (${type ?? 'no type'})` : ''}`;
    const error = refusalOf({ status, text, retryAfter: waitOf(answer) }, this.#options.retryAfter);
    return new AcmeProblem(error, type, answer.status);
  }

  async #call(method: 'GET' | 'HEAD' | 'POST', url: string, body?: Buffer): Promise<HttpAnswer> {
    const { tls, timeout, retryAfter } = this.#options;
    const target = URL.canParse(url) ? new URL(url) : undefined;
    if (target === undefined || target.protocol !== 'https:' || !this.#origins.has(target.origin))
      throw unreadable(`"${url}" is not at the origin of the directory (add its origin to [ca.acme] origins)`);
    const { origin, pathname, search } = target;
    let client = this.#clients.get(origin);
    if (client === undefined) this.#clients.set(origin, (client = new HttpClient(origin, tls)));
    const headers = {
      'User-Agent': 'estuary',
      ...(body === undefined ? {} : { 'Content-Type': 'application/jose+json' }),
    };
    const path = `${pathname}${search}`;
    try {
      return await client.call({ method, path, headers, deadline: Date.now() + timeout, ...(body && { body }) });
    } catch (error) {
      // Every step of an order can be repeated, so a lost response counts as a failed call.
      throw withoutAnswer(error, retryAfter);
    }
  }

  close(): void {
    for (const client of this.#clients.values()) client.close();
  }
}

/** Error types that concern the device's request. */
const STATUSES: ReadonlyMap<string, number> = new Map([
  ['badCSR', 400],
  ['rejectedIdentifier', 403],
  ['unauthorized', 403],
  ['rateLimited', 429],
]);

/** 400 or 403 with another type concerns our account or our request, not the device. */
const fromStatus = (status: number): number => (status === 429 || status === 503 ? status : 500);

function nonceOf({ headers }: HttpAnswer): string | undefined {
  const nonce = headers['replay-nonce'];
  return typeof nonce === 'string' ? nonce : undefined;
}

export const isJson = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

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

export function textOf(json: Json, name: string): string {
  const value = json[name];
  if (typeof value !== 'string') throw unreadable(`its answer has no "${name}"`);
  return value;
}

export function objectOf(json: Json, name: string): Json {
  const value = json[name];
  return isJson(value) ? value : {};
}

export function listOf(json: Json, name: string): readonly unknown[] {
  const value = json[name];
  return Array.isArray(value) ? value : [];
}

/** The type of a problem document, without its namespace. */
function typeOf({ type }: Json): string | undefined {
  return typeof type === 'string' ? type.replace(/^urn:ietf:params:acme:error:/, '') : undefined;
}

/** The text of a problem document, or of the error in an order or a challenge. */
export function problemText(json: Json): string | undefined {
  const detail = json['detail'] ?? objectOf(json, 'error')['detail'];
  return typeof detail === 'string' && detail !== '' ? shortened(detail) : undefined;
}

/** 500 */
export const unreadable = (detail: string): EstuaryError =>
  upstreamFailed(`the upstream CA's answer cannot be used: ${shortened(detail)}`);
