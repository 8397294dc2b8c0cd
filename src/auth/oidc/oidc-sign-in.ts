/** Signing in at an OpenID provider: authorization code with PKCE, state and nonce (OpenID Connect Core §3.1, RFC 7636). */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import * as client from 'openid-client';
import type { Config } from '../../config/schema.ts';
import { measured } from '../../dependency-calls.ts';
import { describe, type EstuaryError, unauthorized, unavailable } from '../../errors.ts';
import { cutText } from '../../log.ts';
import { isObject } from '../../process/protocol.ts';
import { type HttpAnswer, TransportError } from '../../https-client.ts';
import { httpsCall } from '../https-call.ts';

export interface OidcSettings extends Omit<NonNullable<Config['admin']['oidc']>, 'client_secret' | 'trust_anchors'> {
  readonly client_secret: { readonly reveal: () => Buffer };
  /** PEM: CAs for the provider's certificate; undefined: those of Node.js. */
  readonly ca: string | undefined;
}

/** What the provider says about somebody. */
export interface OidcClaims {
  readonly issuer: string;
  readonly subject: string;
  /** For display only. */
  readonly name: string | undefined;
  /** Of the roles claim. */
  readonly values: readonly string[];
  /** A claim that the provider left out for its size (OpenID Connect Core §5.6.2). */
  readonly omitted?: string;
}

/** Milliseconds for which a sign-in may take. */
export const STATE_LIFETIME = 600_000;
/** Milliseconds after which the metadata of the provider is read again. */
const METADATA_LIFETIME = 600_000;
/** Calls that may wait for the provider, so that a slow one does not hold many. */
const MAX_WAITING = 32;
const MAX_VALUES = 1000;
/** Characters of each text of the provider in the log. */
const MAX_TEXT = 500;

interface State {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
  /** Milliseconds since the epoch. */
  readonly until: number;
}

export class OidcSignIn {
  readonly settings: OidcSettings;
  readonly #now: () => number;
  #provider: { readonly at: number; readonly found: Promise<client.Configuration> } | undefined;
  #waiting = 0;

  constructor(settings: OidcSettings, now: () => number = Date.now) {
    this.settings = settings;
    this.#now = now;
  }

  /**
   * @returns where to send the browser, and what it must send back with the answer: sealed, so that only a node with the same client
   *   secret can read it
   * @throws EstuaryError 503 `OIDC_UNAVAILABLE`
   */
  begin(): Promise<{ readonly url: string; readonly sealed: string }> {
    return this.#bounded(async () => {
      const provider = await this.#discovered();
      const verifier = client.randomPKCECodeVerifier();
      const [state, nonce] = [client.randomState(), client.randomNonce()];
      const url = client.buildAuthorizationUrl(provider, {
        redirect_uri: this.settings.redirect_url,
        scope: this.settings.scopes.join(' '),
        code_challenge: await client.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
        state,
        nonce,
      });
      return { url: url.href, sealed: this.#seal({ state, nonce, verifier, until: this.#now() + STATE_LIFETIME }) };
    });
  }

  /**
   * @param search of the URL to which the provider sent the browser
   * @param sealed of {@link begin}, from the same browser
   * @throws EstuaryError 401 `OIDC_FAILED`; 503 `OIDC_UNAVAILABLE`
   */
  complete(search: string, sealed: string | undefined): Promise<OidcClaims> {
    const known = sealed === undefined ? undefined : this.#open(sealed);
    if (known === undefined) throw refused('this browser has not begun to sign in, or took longer than ten minutes');
    const url = new URL(this.settings.redirect_url);
    url.search = search;
    return this.#bounded(async () => this.#claims(await this.#discovered(), url, known));
  }

  async #claims(provider: client.Configuration, url: URL, known: State): Promise<OidcClaims> {
    const tokens = await client.authorizationCodeGrant(provider, url, {
      pkceCodeVerifier: known.verifier,
      expectedState: known.state,
      expectedNonce: known.nonce,
      idTokenExpected: true,
    });
    const idToken = tokens.claims();
    if (idToken === undefined) throw refused('the answer of the provider has no ID token');
    const { name_claim, roles_claim, issuer } = this.settings;
    const lacks = (claim: string): boolean => claimAt(idToken, claim) === undefined;
    const canAsk = provider.serverMetadata().userinfo_endpoint !== undefined;
    const more =
      canAsk && (lacks(name_claim) || lacks(roles_claim))
        ? await client.fetchUserInfo(provider, tokens.access_token, idToken.sub).catch((error: unknown) => {
            if (lacks(roles_claim)) throw error;
            return {};
          })
        : {};
    const claims: Readonly<Record<string, unknown>> = { ...more, ...idToken };
    const name = claimAt(claims, name_claim);
    const omitted = claims['_claim_names'];
    const [first = ''] = Object.hasOwn(claims, roles_claim) ? [roles_claim] : roles_claim.split('.');
    return {
      issuer,
      subject: idToken.sub,
      name: typeof name === 'string' ? name.slice(0, 200) : undefined,
      values: textsOf(claimAt(claims, roles_claim)),
      ...(isObject(omitted) && Object.hasOwn(omitted, first) ? { omitted: first } : {}),
    };
  }

  /** Metadata that could not be read is read again at the next call. */
  #discovered(): Promise<client.Configuration> {
    const { issuer, client_id } = this.settings;
    const at = this.#now();
    if (this.#provider !== undefined && Math.abs(at - this.#provider.at) < METADATA_LIFETIME)
      return this.#provider.found;
    const found = client.discovery(new URL(issuer), client_id, {}, authentication(this.settings), {
      // The signature of the ID token is verified, too, although it came over TLS.
      execute: [client.enableNonRepudiationChecks],
      [client.customFetch]: (url, options) => this.#fetch(url, options),
    });
    const fresh = { at, found };
    this.#provider = fresh;
    found.catch(() => {
      if (this.#provider === fresh) this.#provider = undefined;
    });
    return found;
  }

  async #fetch(url: string, { method, headers, body }: client.CustomFetchOptions): Promise<Response> {
    const { ca } = this.settings;
    // Forms are all that the flow sends.
    const form = body instanceof URLSearchParams ? { body: Buffer.from(body.toString()) } : {};
    const call = () => httpsCall(url, { method, headers, ca, ...form });
    return toResponse(await measured({ dependency: 'oidc' }, call));
  }

  /** @throws EstuaryError */
  async #bounded<T>(work: () => Promise<T>): Promise<T> {
    if (this.#waiting >= MAX_WAITING) throw this.#unavailable(`${MAX_WAITING} sign-ins wait for the provider`);
    this.#waiting += 1;
    try {
      return await work();
    } catch (error) {
      if (isRejected(error))
        throw unavailable(
          'OIDC_REJECTED',
          'the OpenID provider rejects this server; an operator must check client_id, client_secret_file and token_endpoint_auth_method of admin.oidc',
          { detail: chainOf(error) },
        );
      throw isUnavailable(error) ? this.#unavailable(chainOf(error)) : refused(chainOf(error));
    } finally {
      this.#waiting -= 1;
    }
  }

  #unavailable(detail: string): EstuaryError {
    return unavailable(
      'OIDC_UNAVAILABLE',
      'the OpenID provider is temporarily unavailable; try again, or sign in with a token or a certificate',
      { detail },
    );
  }

  #key(): Buffer {
    return Buffer.from(hkdfSync('sha256', this.settings.client_secret.reveal(), '', 'estuary oidc state', 32));
  }

  #seal(state: State): string {
    const iv = randomBytes(12);
    const cipher = createCipheriv('aes-256-gcm', this.#key(), iv);
    const text = Buffer.concat([cipher.update(JSON.stringify(state), 'utf8'), cipher.final()]);
    return Buffer.concat([iv, cipher.getAuthTag(), text]).toString('base64url');
  }

  /** undefined: it is not ours, or too old. */
  #open(sealed: string): State | undefined {
    const bytes = Buffer.from(sealed, 'base64url');
    try {
      const decipher = createDecipheriv('aes-256-gcm', this.#key(), bytes.subarray(0, 12), { authTagLength: 16 });
      decipher.setAuthTag(bytes.subarray(12, 28));
      const text = Buffer.concat([decipher.update(bytes.subarray(28)), decipher.final()]);
      // Nobody else has the key.
      const state = JSON.parse(text.toString('utf8')) as State;
      return state.until > this.#now() ? state : undefined;
    } catch {
      return undefined;
    }
  }
}

const refused = (detail: string): EstuaryError =>
  unauthorized('OIDC_FAILED', 'signing in at the OpenID provider failed; start again', { detail });

/** RFC 6749 §2.3.1. The secret is encoded as little as possible, because some providers do not decode it. */
function authentication({ client_secret, token_endpoint_auth_method: configured }: OidcSettings): client.ClientAuth {
  const secret = client_secret.reveal().toString('utf8');
  const encoded = (text: string): string => encodeURIComponent(text).replaceAll('%20', '+');
  return ({ token_endpoint_auth_methods_supported: offered = [] }, { client_id }, body, headers) => {
    const isPost = offered.includes('client_secret_post') && !offered.includes('client_secret_basic');
    if ((configured ?? (isPost ? 'client_secret_post' : 'client_secret_basic')) === 'client_secret_post') {
      body.set('client_id', client_id);
      body.set('client_secret', secret);
    } else {
      const credentials = Buffer.from(`${encoded(client_id)}:${encoded(secret)}`).toString('base64');
      headers.set('Authorization', `Basic ${credentials}`);
    }
  };
}

/** The provider does not accept this server. */
function isRejected(error: unknown): boolean {
  const code: unknown = error instanceof client.ResponseBodyError ? error.error : undefined;
  return code === 'invalid_client' || code === 'unauthorized_client';
}

/** Not the user's fault: the provider cannot be reached. */
function isUnavailable(error: unknown): boolean {
  for (let cause: unknown = error; cause instanceof Error; cause = cause.cause)
    if (cause instanceof TransportError) return true;
  return false;
}

/** An error with its causes. Contains no secret: a code is worth nothing after its use. */
function chainOf(error: unknown): string {
  const parts: string[] = [];
  let cause: unknown = error;
  for (; cause instanceof Error && parts.length < 4; cause = cause.cause) {
    parts.push(describe(cause));
    if (cause instanceof client.ResponseBodyError || cause instanceof client.AuthorizationResponseError)
      parts.push(
        ...[cause.error, cause.error_description ?? ''].filter(Boolean).map((text) => cutText(text, MAX_TEXT)),
      );
  }
  return parts.length === 0 ? describe(error) : [...parts, ...comparisonOf(cause)].join(': ');
}

/** What the library compared: often an issuer, with and without a slash at its end. */
function comparisonOf(cause: unknown): readonly string[] {
  if (!isObject(cause)) return [];
  const [name, found] = [cause['attribute'] ?? cause['claim'], cause['body'] ?? cause['claims']];
  if (typeof name !== 'string' || !isObject(found)) return [];
  const [actual = 'absent', expected = 'absent'] = [found[name], cause['expected']].map((role) => JSON.stringify(role));
  return [cutText(`${name} is ${actual} and should be ${expected}`, MAX_TEXT)];
}

function toResponse({ status, headers, body }: HttpAnswer): Response {
  const type = headers['content-type'];
  return new Response(body.length === 0 ? null : Uint8Array.from(body), {
    status,
    headers: type === undefined ? {} : { 'content-type': type },
  });
}

/** A claim, or a path to a value where no claim has that name. */
function claimAt(claims: Readonly<Record<string, unknown>>, name: string): unknown {
  if (Object.hasOwn(claims, name)) return claims[name];
  return name
    .split('.')
    .reduce<unknown>(
      (value, part) => (isObject(value) && Object.hasOwn(value, part) ? value[part] : undefined),
      claims,
    );
}

const textsOf = (claim: unknown): readonly string[] =>
  [claim]
    .flat()
    .map((role: unknown) => (isObject(role) ? (role['name'] ?? role['value']) : role))
    .filter((role) => typeof role === 'string')
    .slice(0, MAX_VALUES);
