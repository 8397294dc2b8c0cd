/** Key pairs that the server makes for clients (RFC 7030 §4.4): which kind, and how many at a time. */
import { generateKeyPair } from 'node:crypto';
import type { Ca } from '../ca/router.ts';
import { badRequest, unavailable, type EstuaryError } from '../errors.ts';
import { NoPermitError, Semaphore } from '../process/semaphore.ts';
import { parsePublicKey, type PublicKeyInfo } from '../pki/x509/public-key.ts';

/** A fresh key pair. Whoever has it generated disposes of it. */
export class GeneratedKey {
  readonly publicKey: PublicKeyInfo;
  /** DER PrivateKeyInfo. */
  readonly pkcs8: Buffer;
  #semaphore: Pick<Semaphore, 'release'> | undefined;

  constructor(publicKey: PublicKeyInfo, pkcs8: Buffer, semaphore: Pick<Semaphore, 'release'>) {
    this.publicKey = publicKey;
    this.pkcs8 = pkcs8;
    this.#semaphore = semaphore;
  }

  /** Zeroes the private key, and lets the next one be generated. */
  dispose(): void {
    this.pkcs8.fill(0);
    this.#semaphore?.release();
    this.#semaphore = undefined;
  }
}

/**
 * The kind of key to generate: what csrattrs demands, else what was asked for, else the first of the profile's.
 *
 * @param requested the kind of the CSR's own key
 * @throws EstuaryError 400 `KEY_TYPE_NOT_GENERATED`
 */
export function chooseKeyType(
  { csrAttributes, profile }: Pick<Ca, 'csrAttributes' | 'profile'>,
  requested: string,
): string {
  const allowed: readonly string[] = profile.key_types;
  const candidates = csrAttributes.keyType === undefined ? [requested, ...allowed] : [csrAttributes.keyType];
  const chosen = candidates.find((keyType) => allowed.includes(keyType) && isGenerated(keyType));
  if (chosen === undefined) throw keyTypeNotGenerated();
  return chosen;
}

/** 400: neither what was asked for nor anything else that the CA certifies. */
export function keyTypeNotGenerated(): EstuaryError {
  return badRequest('KEY_TYPE_NOT_GENERATED', 'The server does not generate keys of a type that this CA certifies.');
}

const RSA = /^rsa:(\d+)$/;
const OTHERS: ReadonlySet<string> = new Set(['ec:P-256', 'ec:P-384', 'ed25519']);

function isGenerated(keyType: string): boolean {
  const bits = RSA.exec(keyType)?.[1];
  if (bits === undefined) return OTHERS.has(keyType);
  return Number(bits) >= 2048 && Number(bits) <= 4096;
}

/** An RSA key takes up to seconds of a thread of the pool that signatures and files share; so one at a time. */
const RSA_AT_A_TIME = 1;
const RSA_WAITING = 32;
/** Other keys are made in under a millisecond, but the password form derives a key for tens of them. */
const OTHERS_AT_A_TIME = 2;
const OTHERS_WAITING = 256;
/** Milliseconds that a request waits for a permit at most. */
const LONGEST_WAIT = 10_000;

export class KeyGenerator {
  readonly #rsa = new Semaphore(RSA_AT_A_TIME, RSA_WAITING);
  readonly #others = new Semaphore(OTHERS_AT_A_TIME, OTHERS_WAITING);
  readonly #samples = new Map<string, PublicKeyInfo>();

  /**
   * Generates a key in the thread pool when there is a permit, which is held until the key is disposed of, which zeroes it.
   *
   * @param keyType from {@link chooseKeyType}
   * @throws EstuaryError 503 `KEY_GENERATION_BUSY`
   */
  async generate(keyType: string): Promise<GeneratedKey> {
    const semaphore = RSA.test(keyType) ? this.#rsa : this.#others;
    await semaphore.acquire(LONGEST_WAIT).catch(refuseBusy);
    try {
      const { publicKey, privateKey } = await generate(keyType);
      return new GeneratedKey(parsePublicKey(publicKey), privateKey, semaphore);
    } catch (error) {
      semaphore.release();
      throw error;
    }
  }

  /**
   * A public key of this kind that belongs to nobody, since its private key was thrown away: for checks of a certificate
   * whose key does not exist yet. Never certified.
   *
   * @throws EstuaryError as {@link generate}
   */
  async sample(keyType: string): Promise<PublicKeyInfo> {
    const known = this.#samples.get(keyType);
    if (known !== undefined) return known;
    const key = await this.generate(keyType);
    key.dispose();
    this.#samples.set(keyType, key.publicKey);
    return key.publicKey;
  }
}

function refuseBusy(error: unknown): never {
  if (!(error instanceof NoPermitError)) throw error;
  throw unavailable('KEY_GENERATION_BUSY', 'The server is generating as many keys as it can; try again later.', {
    detail: error.message,
  });
}

const ENCODING = {
  publicKeyEncoding: { type: 'spki', format: 'der' },
  privateKeyEncoding: { type: 'pkcs8', format: 'der' },
} as const;

function generate(keyType: string): Promise<{ readonly publicKey: Buffer; readonly privateKey: Buffer }> {
  return new Promise((resolve, reject) => {
    const done = (error: Error | null, publicKey: Buffer, privateKey: Buffer): void => {
      if (error === null) resolve({ publicKey, privateKey });
      else reject(error);
    };
    const bits = RSA.exec(keyType)?.[1];
    if (bits !== undefined) generateKeyPair('rsa', { modulusLength: Number(bits), ...ENCODING }, done);
    else if (keyType === 'ed25519') generateKeyPair('ed25519', ENCODING, done);
    else generateKeyPair('ec', { namedCurve: keyType.slice('ec:'.length), ...ENCODING }, done);
  });
}
