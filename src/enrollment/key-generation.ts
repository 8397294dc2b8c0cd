/** Key pairs that the server makes for clients (RFC 7030 §4.4): which kind, and how many at a time. */
import { generateKeyPair, type KeyPairSyncResult } from 'node:crypto';
import { badRequest, unavailable } from '../errors.ts';
import { NoTurnError, Turns } from '../isolated/turns.ts';
import { parsePublicKey, type PublicKeyInfo } from '../pki/public-key.ts';

/** A fresh key pair. */
export interface GeneratedKey {
  readonly publicKey: PublicKeyInfo;
  /** DER PrivateKeyInfo; filled with zeros when the work with it has ended. */
  readonly pkcs8: Buffer;
}

/** What decides the kind of key, the strongest word first. */
export interface KeyTypeWishes {
  /** `[ca.csrattrs] key_type`. */
  readonly demanded: string | undefined;
  /** The kind of the CSR's own key. */
  readonly requested: string;
  /** `[ca.profile] key_types`. */
  readonly allowed: readonly string[];
}

/**
 * The kind of key to generate: what csrattrs demands, else what the CSR's own key shows, else the profile's first.
 *
 * @throws EstuaryError 400 `KEY_TYPE_NOT_GENERATED`
 */
export function chooseKeyType({ demanded, requested, allowed }: KeyTypeWishes): string {
  const candidates = demanded === undefined ? [requested, ...allowed] : [demanded];
  const chosen = candidates.find((keyType) => allowed.includes(keyType) && isGenerated(keyType));
  if (chosen === undefined)
    throw badRequest('KEY_TYPE_NOT_GENERATED', 'The server does not generate keys of a type that this CA certifies.');
  return chosen;
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
/** Milliseconds that a request waits for its turn at most. */
const LONGEST_WAIT = 10_000;

export class KeyGenerator {
  readonly #rsa = new Turns(RSA_AT_A_TIME, RSA_WAITING);
  readonly #others = new Turns(OTHERS_AT_A_TIME, OTHERS_WAITING);

  /**
   * Generates a key in the thread pool when its turn has come, and zeroes the private key after `work`.
   *
   * @param keyType from {@link chooseKeyType}
   * @throws EstuaryError 503 `KEY_GENERATION_BUSY`; otherwise what `work` throws
   */
  async withKey<T>(keyType: string, work: (key: GeneratedKey) => Promise<T>): Promise<T> {
    const turns = RSA.test(keyType) ? this.#rsa : this.#others;
    await turns.enter(LONGEST_WAIT).catch(refuseBusy);
    try {
      const { publicKey, privateKey } = await generate(keyType);
      try {
        return await work({ publicKey: parsePublicKey(publicKey), pkcs8: privateKey });
      } finally {
        privateKey.fill(0);
      }
    } finally {
      turns.leave();
    }
  }
}

function refuseBusy(error: unknown): never {
  if (!(error instanceof NoTurnError)) throw error;
  throw unavailable('KEY_GENERATION_BUSY', 'The server is generating as many keys as it can; try again later.', {
    detail: error.message,
  });
}

const ENCODING = {
  publicKeyEncoding: { type: 'spki', format: 'der' },
  privateKeyEncoding: { type: 'pkcs8', format: 'der' },
} as const;

function generate(keyType: string): Promise<KeyPairSyncResult<Buffer, Buffer>> {
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
