/** The token issuer's public keys (RFC 7517) from a URL or a file: cached, and fetched again for an unknown key. */
import { createLocalJWKSet, errors, type JWSHeaderParameters, type LocalJWKSet, type FlattenedJWSInput } from 'jose';
import { readContent } from '../../config/content.ts';
import { measured } from '../../dependency-calls.ts';
import { describe, unavailable, type EstuaryError } from '../../errors.ts';
import { isObject } from '../../process/protocol.ts';
import { httpsCall } from '../https-call.ts';

interface KeyUrl {
  readonly url: string;
  readonly ca: () => string | undefined;
  /** A file with a bearer token for the URL. */
  readonly tokenFile: string | undefined;
}

interface IssuerKeysOptions {
  readonly source: KeyUrl | { readonly file: string };
  readonly retryAfter: number;
  readonly now: () => number;
}

/** Octets. */
const MAX_JWKS = 256 << 10;
const MAX_KEYS = 64;
/** After this age, refresh the keys but keep using them. */
const FRESH = 10 * 60_000;
/** After this age, do not use them. */
const USABLE = 60 * 60_000;
/** Minimum time between refreshes. */
const PAUSE = 60_000;
/** Requests that may wait for a fetch, so that a slow issuer does not hold many. */
const MAX_WAITING = 32;

type Key = Awaited<ReturnType<LocalJWKSet>>;

interface KeySet {
  readonly find: (header: JWSHeaderParameters, token: FlattenedJWSInput) => Promise<Key>;
  /** Each `kid`. */
  readonly names: ReadonlySet<unknown>;
}

export class IssuerKeys {
  readonly #options: IssuerKeysOptions;
  #keys: (KeySet & { readonly at: number }) | undefined;
  #fetching: Promise<void> | undefined;
  #waiting = 0;
  /** Start of the latest refresh. */
  #again = -Infinity;

  constructor(options: IssuerKeysOptions) {
    this.#options = options;
  }

  /**
   * The key that a token's header names.
   * @throws JOSEError if there is no such key; EstuaryError 503 `JWKS_UNAVAILABLE`
   */
  async find(header: JWSHeaderParameters, token: FlattenedJWSInput): Promise<Key> {
    const { now } = this.#options;
    const age = (): number => now() - (this.#keys?.at ?? -Infinity);
    if (age() > USABLE) await this.#fetched();
    else if (age() > FRESH && this.#mayAgain()) this.#fetch().catch(() => undefined);
    try {
      return await this.#known()(header, token);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey) || !this.#mayAgain()) throw error;
    }
    await this.#fetched();
    return this.#known()(header, token);
  }

  /**
   * Fetches the keys again after a signature with a key without this name failed, once a minute at most.
   * @throws EstuaryError 503
   */
  async renewed(kid: string | undefined): Promise<boolean> {
    if ((kid !== undefined && this.#keys?.names.has(kid)) || !this.#mayAgain()) return false;
    await this.#fetched();
    return true;
  }

  /** Fetches the keys. @throws Error with the reason */
  probe(): Promise<void> {
    return this.#fetch();
  }

  #known(): KeySet['find'] {
    if (this.#keys === undefined) throw this.#unavailable('no keys are loaded');
    return this.#keys.find;
  }

  #mayAgain(): boolean {
    const now = this.#options.now();
    if (now - this.#again < PAUSE) return false;
    this.#again = now;
    return true;
  }

  async #fetched(): Promise<void> {
    if (this.#waiting >= MAX_WAITING)
      throw this.#unavailable(`${MAX_WAITING} requests are already waiting for the keys`);
    this.#waiting += 1;
    try {
      await this.#fetch();
    } catch (error) {
      throw this.#unavailable(describe(error));
    } finally {
      this.#waiting -= 1;
    }
  }

  #fetch(): Promise<void> {
    this.#fetching ??= (async () => {
      try {
        const text = await measured({ dependency: 'jwks' }, () => this.#load());
        this.#keys = { ...readJwks(text), at: this.#options.now() };
      } finally {
        this.#fetching = undefined;
      }
    })();
    return this.#fetching;
  }

  async #load(): Promise<string> {
    const { source } = this.#options;
    return 'file' in source ? (await readContent(source.file)).toString() : download(source);
  }

  #unavailable(detail: string): EstuaryError {
    const { retryAfter } = this.#options;
    return unavailable(
      'JWKS_UNAVAILABLE',
      'The keys of the token issuer are temporarily unavailable. Try again later.',
      {
        retryAfter,
        detail,
      },
    );
  }
}

/** @throws Error with the reason */
function readJwks(text: string): KeySet {
  if (text.length > MAX_JWKS) throw new Error(`the JWKS is larger than ${MAX_JWKS} bytes`);
  const parsed: unknown = JSON.parse(text.replace(/^\ufeff/, ''));
  const keys = isObject(parsed) ? parsed['keys'] : undefined;
  if (!Array.isArray(keys)) throw new Error('the JWKS has no list "keys"');
  // Reject symmetric keys: a verifier could also sign with them.
  const usable = keys.filter((key): key is { kty: string } => {
    const kty = isObject(key) ? key['kty'] : undefined;
    return typeof kty === 'string' && kty !== 'oct';
  });
  if (usable.length === 0 || usable.length > MAX_KEYS)
    throw new Error(`the JWKS has ${usable.length} public keys (1 to ${MAX_KEYS})`);
  // In a SPIFFE trust bundle, the use of a signature key has another name.
  const keysForUse = usable.map((key) => ('use' in key && key.use === 'jwt-svid' ? { ...key, use: 'sig' } : key));
  const names = new Set(keysForUse.map(nameOf));
  const all = createLocalJWKSet({ keys: keysForUse });
  const nameless = createLocalJWKSet({ keys: keysForUse.filter((key) => nameOf(key) === undefined) });
  return {
    names,
    // RFC 7517 §4.5: a kid is optional. A token can name a key that the issuer publishes without one.
    find(header, token) {
      const { kid, ...rest } = header;
      return kid === undefined || names.has(kid) || !names.has(undefined) ? all(header, token) : nameless(rest, token);
    },
  };
}

const nameOf = (key: object): unknown => ('kid' in key ? key.kid : undefined);

async function download({ url, ca, tokenFile }: KeyUrl): Promise<string> {
  // Read each time: Kubernetes replaces it.
  const token = tokenFile && (await readContent(tokenFile)).toString().trim();
  if (token !== undefined && !/^[\x21-\x7e]+$/.test(token)) throw new Error(`${tokenFile} contains no bearer token`);
  const authorization = token === undefined ? {} : { Authorization: `Bearer ${token}` };
  const headers = { Accept: 'application/jwk-set+json, application/json', ...authorization };
  const { status, body } = await httpsCall(url, { headers, ca: ca() });
  if (status !== 200) throw new Error(`${url} responded with status ${status}`);
  return body.toString('utf8');
}
