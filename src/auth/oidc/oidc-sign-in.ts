/** Signing in at an OpenID provider: authorization code with PKCE, state and nonce (OpenID Connect Core §3.1, RFC 7636). */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import * as client from 'openid-client';
import type { Config } from '../../config/schema.ts';
import { measured } from '../../dependency-calls.ts';
import { describe, type EstuaryError, unauthorized, unavailable } from '../../errors.ts';
import { type HttpsAnswer, httpsCall, UnreachableError } from '../https-call.ts';

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
}

/** Milliseconds for which a sign-in may take. */
export const STATE_LIFETIME = 600_000;
/** Milliseconds after which the metadata of the provider is read again. */
const METADATA_LIFETIME = 600_000;
/** Calls that may wait for the provider, so that a slow one does not hold many. */
const MAX_WAITING = 32;
const MAX_VALUES = 1000;

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
    const isMissing = [name_claim, roles_claim].some((claim) => idToken[claim] === undefined);
    const more =
      isMissing && provider.serverMetadata().userinfo_endpoint !== undefined
        ? await client.fetchUserInfo(provider, tokens.access_token, idToken.sub)
        : {};
    const claims: Readonly<Record<string, unknown>> = { ...more, ...idToken };
    const name = claims[name_claim];
    return {
      issuer,
      subject: idToken.sub,
      name: typeof name === 'string' ? name.slice(0, 200) : undefined,
      values: textsOf(claims[roles_claim]),
    };
  }

  /** Metadata that could not be read is read again at the next call. */
  #discovered(): Promise<client.Configuration> {
    const { issuer, client_id, client_secret } = this.settings;
    const at = this.#now();
    if (this.#provider !== undefined && Math.abs(at - this.#provider.at) < METADATA_LIFETIME)
      return this.#provider.found;
    const auth = client.ClientSecretBasic(client_secret.reveal().toString('utf8'));
    const found = client.discovery(new URL(issuer), client_id, {}, auth, {
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
    const text = body instanceof URLSearchParams ? body.toString() : undefined;
    const call = () => httpsCall(url, { method, headers, ca, ...(text === undefined ? {} : { body: text }) });
    return toResponse(await measured({ dependency: 'oidc' }, call));
  }

  /** @throws EstuaryError */
  async #bounded<T>(work: () => Promise<T>): Promise<T> {
    if (this.#waiting >= MAX_WAITING) throw this.#unavailable(`${MAX_WAITING} sign-ins wait for the provider`);
    this.#waiting += 1;
    try {
      return await work();
    } catch (error) {
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

/** Not the user's fault: the provider cannot be reached, or does not accept this server. */
function isUnavailable(error: unknown): boolean {
  const code: unknown = error instanceof client.ResponseBodyError ? error.error : undefined;
  if (code === 'invalid_client' || code === 'unauthorized_client') return true;
  for (let one: unknown = error; one instanceof Error; one = one.cause)
    if (one instanceof UnreachableError) return true;
  return false;
}

/** An error with its causes. Contains no secret: a code is worth nothing after its use. */
function chainOf(error: unknown): string {
  const parts: string[] = [];
  for (let one: unknown = error; one instanceof Error && parts.length < 4; one = one.cause) parts.push(describe(one));
  return parts.length === 0 ? describe(error) : parts.join(': ');
}

function toResponse({ status, headers, body }: HttpsAnswer): Response {
  const type = headers['content-type'];
  return new Response(body.length === 0 ? null : Uint8Array.from(body), {
    status,
    headers: type === undefined ? {} : { 'content-type': type },
  });
}

const textsOf = (claim: unknown): readonly string[] =>
  [claim]
    .flat()
    .filter((one): one is string => typeof one === 'string')
    .slice(0, MAX_VALUES);
