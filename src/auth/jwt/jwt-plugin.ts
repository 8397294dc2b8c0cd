/** Authenticates EST requests by `Authorization: Bearer` (RFC 6750) with a JSON Web Token (RFC 7519). */
import { hash } from 'node:crypto';
import { decodeJwt, decodeProtectedHeader, errors, jwtVerify, type JWTPayload, type JWTVerifyOptions } from 'jose';
import type { Config } from '../../config/schema.ts';
import type { OtpStore } from '../../store/otp-store.ts';
import { CredentialRefused, type GuardedAttempts } from '../guarded-attempts.ts';
import type { JwtIdentity, PresentedCredentials, UsedToken } from '../identity.ts';
import type { AuthContext, AuthPlugin } from '../plugin.ts';
import type { IssuerKeys } from './issuer-keys.ts';

type JwtSettings = NonNullable<Config['auth']['jwt']>;

interface JwtOptions {
  readonly settings: JwtSettings;
  readonly keys: Pick<IssuerKeys, 'find' | 'renewed'>;
  readonly attempts: GuardedAttempts;
  readonly store: Pick<OtpStore, 'getOtp' | 'admitToken'>;
}

const MAX_TOKEN = 16_384;
/** Seconds of the year 10000: the store and RFC 3339 have no such times. */
const END_OF_TIME = 253_402_300_800;
/** Maximum characters of the subject, the `jti`, and claims used as placeholders. */
const MAX_VALUE = 256;
/** Without control characters and lone surrogates. */
const USABLE = /^[^\p{Cc}\p{Cs}\u2028\u2029]+$/u;

const isUsable = (value: unknown): value is string =>
  typeof value === 'string' && value.length <= MAX_VALUE && USABLE.test(value);

export class JwtPlugin implements AuthPlugin {
  readonly method = 'jwt';
  /** A failure is committed together with its count. */
  readonly auditsFailures = true;
  readonly #options: JwtOptions;

  constructor(options: JwtOptions) {
    this.#options = options;
  }

  async authenticate(
    { authorization, address }: PresentedCredentials,
    context: AuthContext,
  ): Promise<JwtIdentity | undefined> {
    const token = bearerToken(authorization);
    if (token === undefined) return undefined;
    const { settings, attempts } = this.#options;
    return attempts.run(this.#claimedName(token), { ...context, address }, async (lockoutKeys) => {
      const claims = await this.#verify(token, context.now);
      const client_id = claims[settings.subject_claim];
      if (!isUsable(client_id))
        throw new CredentialRefused(`the claim "${settings.subject_claim}" is not a usable text`);
      checkRequired(claims, settings.required_claims);
      return {
        method: 'jwt',
        requester: `jwt:${settings.issuer} ${client_id}`,
        display: client_id,
        client_id,
        binding: settings.bind,
        attributes: placeholdersOf(claims),
        token: settings.single_use ? await this.#used(claims, client_id, lockoutKeys, context.now) : undefined,
      };
    });
  }

  async #verify(token: string, now: number): Promise<JWTPayload> {
    const { settings } = this.#options;
    if (token.length > MAX_TOKEN)
      throw new CredentialRefused(`a token of ${token.length} characters (at most ${MAX_TOKEN})`);
    const { algorithms, issuer, audience, clock_tolerance: clockTolerance, max_age } = settings;
    try {
      const payload = await this.#verifyWithKeys(token, {
        algorithms: [...algorithms],
        issuer,
        audience: [...audience],
        clockTolerance,
        currentDate: new Date(now),
        requiredClaims: ['exp', 'aud', ...(settings.single_use ? ['jti'] : [])],
        ...(max_age === undefined ? {} : { maxTokenAge: max_age }),
      });
      for (const name of ['exp', 'nbf', 'iat'] as const)
        if ((payload[name] ?? 0) >= END_OF_TIME) throw new CredentialRefused(`the claim "${name}" is beyond year 9999`);
      return payload;
    } catch (error) {
      // Other library errors concern an unusable token or key.
      if (error instanceof errors.JOSEError || error instanceof TypeError) throw new CredentialRefused(error.message);
      throw error;
    }
  }

  /** If no key is named, each that fits is tried, and after a failure once more with keys that are fetched again. */
  async #verifyWithKeys(token: string, options: JWTVerifyOptions): Promise<JWTPayload> {
    try {
      return await this.#tryKeys(token, options);
    } catch (error) {
      const isRejected = error instanceof errors.JWSSignatureVerificationFailed;
      if (!isRejected || !(await this.#options.keys.renewed(decodeProtectedHeader(token).kid))) throw error;
      return this.#tryKeys(token, options);
    }
  }

  async #tryKeys(token: string, options: JWTVerifyOptions): Promise<JWTPayload> {
    try {
      const { payload } = await jwtVerify(token, (header, jws) => this.#options.keys.find(header, jws), options);
      return payload;
    } catch (error) {
      if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error;
      for await (const key of error) {
        try {
          return (await jwtVerify(token, key, options)).payload;
        } catch (reason) {
          if (reason instanceof errors.JWTClaimValidationFailed || reason instanceof errors.JWTExpired) throw reason;
        }
      }
      throw new errors.JWSSignatureVerificationFailed();
    }
  }

  /** The name in an unverified token, for the lockout and the audit log. */
  #claimedName(token: string): string {
    if (token.length > MAX_TOKEN) return '';
    try {
      const name = decodeJwt(token)[this.#options.settings.subject_claim];
      return typeof name === 'string' ? name : '';
    } catch {
      return '';
    }
  }

  /** The use of a single-use token, which the request takes. */
  async #used(claims: JWTPayload, client_id: string, lockoutKeys: readonly string[], now: number): Promise<UsedToken> {
    const { settings, store } = this.#options;
    const { jti, exp = 0 } = claims;
    if (!isUsable(jti)) throw new CredentialRefused('the claim "jti" is not a usable text');
    const id = `jwt:${hash('sha256', JSON.stringify([settings.issuer, jti]), 'hex')}`;
    const row =
      (await store.getOtp(id)) ??
      (await store.admitToken({
        id,
        lookup: id,
        hash: '',
        client_id,
        ca: null,
        created_at: now,
        expires_at: Math.min(Math.ceil((exp + settings.clock_tolerance + 1) * 1000), END_OF_TIME * 1000 - 1),
        max_uses: 1,
        uses: 0,
        revoked_at: null,
      }));
    if (row.client_id !== client_id) throw new CredentialRefused('the "jti" belongs to a token of another subject');
    const dead = row.revoked_at === null ? undefined : 'is revoked';
    return { otp_id: id, usable: dead === undefined && row.uses < row.max_uses, dead, lockoutKeys };
  }
}

/** The Bearer token (RFC 9110 §11.1: case-insensitive); undefined for other schemes. */
function bearerToken(authorization: string | undefined): string | undefined {
  if (authorization === undefined || !/^bearer(?=[\t ]|$)/i.test(authorization)) return undefined;
  return authorization.slice('bearer'.length).trim();
}

function checkRequired(claims: JWTPayload, required: readonly string[]): void {
  for (const claim of required) {
    const [name = '', ...rest] = claim.split('=');
    const value = Object.hasOwn(claims, name) ? claims[name] : undefined;
    const texts = textsOf(value);
    // RFC 8693 §4.2: the values of a scope are one text.
    if (typeof value === 'string' && (name === 'scope' || name === 'scp')) texts.push(...value.split(' '));
    const fits = rest.length === 0 ? value !== undefined : texts.includes(rest.join('='));
    if (!fits) throw new CredentialRefused(`the claim "${name}" is missing or has another value`);
  }
}

function placeholdersOf(claims: JWTPayload): ReadonlyMap<string, readonly string[]> {
  return new Map(Object.entries(claims).map(([name, value]) => [name, textsOf(value).filter(isUsable)]));
}

function textsOf(value: unknown): string[] {
  return [value].flat().flatMap((element) => {
    if (typeof element === 'string') return [element];
    return typeof element === 'number' || typeof element === 'boolean' ? [String(element)] : [];
  });
}
