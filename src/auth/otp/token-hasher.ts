/**
 * Hashes tokens for storage. The encoded hash names its algorithm and parameters (`$argon2id$…`, `$2b$…`,
 * `hmac-sha256:…`), so tokens remain valid if `otp.hash_algorithm` changes.
 */
import { createHash, createHmac, randomInt, timingSafeEqual } from 'node:crypto';
import argon2 from 'argon2';
import bcrypt from 'bcrypt';
import type { Config } from '../../config/schema.ts';
import { failed } from '../../errors.ts';

/** base62; a token has `otp.token_length` characters. */
const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

const MIN_TOKEN_LENGTH = 8;
const MAX_TOKEN_LENGTH = 128;

/** A new token from a CSPRNG with uniform characters. */
export function generateToken(length: number): string {
  if (length < MIN_TOKEN_LENGTH || length > MAX_TOKEN_LENGTH)
    throw new RangeError(`a token has ${MIN_TOKEN_LENGTH} to ${MAX_TOKEN_LENGTH} characters, not ${length}`);
  return Array.from({ length }, () => ALPHABET.charAt(randomInt(ALPHABET.length))).join('');
}

/** Whether a password can be a token. */
export function isTokenLike(password: string): boolean {
  return password.length >= MIN_TOKEN_LENGTH && password.length <= MAX_TOKEN_LENGTH && /^[0-9A-Za-z]+$/.test(password);
}

export interface HashSettings extends Pick<Config['otp'], 'hash_algorithm' | 'argon2' | 'bcrypt_cost'> {
  /** The key of sha256-hmac; existing tokens may need it after the algorithm changed. */
  readonly hmacKey: Buffer | undefined;
}

const HMAC_PREFIX = 'hmac-sha256:';

export class TokenHasher {
  readonly #settings: HashSettings;
  /** A hash of no token, with the configured parameters. */
  readonly #decoy: string;

  private constructor(settings: HashSettings, decoy: string) {
    this.#settings = settings;
    this.#decoy = decoy;
  }

  static async create(settings: HashSettings): Promise<TokenHasher> {
    return new TokenHasher(settings, await hashToken(settings, generateToken(32)));
  }

  /** Whether a hash needs the queue; an HMAC takes microseconds. */
  isExpensive(encoded: string | undefined): boolean {
    return !(encoded ?? this.#decoy).startsWith(HMAC_PREFIX);
  }

  /** The encoded hash of a new token, with the configured algorithm. */
  async hash(token: string): Promise<string> {
    return hashToken(this.#settings, token);
  }

  /** Verifies a token. Without a hash (unknown token) it does the same work, so that timing reveals nothing. */
  async verify(encoded: string | undefined, token: string): Promise<boolean> {
    const matches = await this.#matches(encoded ?? this.#decoy, token);
    return encoded !== undefined && matches;
  }

  async #matches(encoded: string, token: string): Promise<boolean> {
    if (encoded.startsWith('$argon2id$')) return argon2.verify(encoded, token);
    if (encoded.startsWith('$2')) return bcrypt.compare(bcryptInput(token), encoded);
    if (!encoded.startsWith(HMAC_PREFIX)) return false;
    const { hmacKey } = this.#settings;
    if (hmacKey === undefined) return false;
    const expected = Buffer.from(encoded.slice(HMAC_PREFIX.length), 'hex');
    const actual = hmac(hmacKey, token);
    return expected.length === actual.length && timingSafeEqual(expected, actual);
  }
}

async function hashToken(settings: HashSettings, token: string): Promise<string> {
  switch (settings.hash_algorithm) {
    case 'argon2id':
      return argon2.hash(token, {
        type: argon2.argon2id,
        memoryCost: settings.argon2.memory_kib,
        timeCost: settings.argon2.iterations,
        parallelism: settings.argon2.parallelism,
      });
    case 'bcrypt':
      return bcrypt.hash(bcryptInput(token), settings.bcrypt_cost);
    case 'sha256-hmac':
      if (settings.hmacKey === undefined)
        throw failed(
          'OTP_HMAC_KEY_MISSING',
          'otp.hmac_key_file or otp.hmac_key_env is missing; sha256-hmac requires a key',
        );
      return `${HMAC_PREFIX}${hmac(settings.hmacKey, token).toString('hex')}`;
  }
}

const hmac = (key: Buffer, token: string): Buffer => createHmac('sha256', key).update(token).digest();

/** bcrypt uses only 72 bytes, so it hashes a digest of the token. */
const bcryptInput = (token: string): string => createHash('sha256').update(token).digest('base64');
