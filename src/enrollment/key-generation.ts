/** Generates clients' key pairs (RFC 7030 §4.4): key type and concurrency. */
import type { Ca } from '../ca/router.ts';
import { badRequest, unavailable, type EstuaryError } from '../errors.ts';
import { FairLimiter, type Release } from '../process/fair-limiter.ts';
import { canGenerateKey, mlDsaOf, newKeyPair } from '../pki/x509/key-pair.ts';
import { parsePublicKey, type PublicKeyInfo } from '../pki/x509/public-key.ts';
import { inPrivateKeyForm, type MlDsaPrivateKeyForm } from './ml-dsa-private-key.ts';

/** A generated key pair. The caller disposes of it. */
export class GeneratedKey {
  readonly publicKey: PublicKeyInfo;
  readonly pkcs8: Buffer;
  readonly #release: Release;

  constructor(publicKey: PublicKeyInfo, pkcs8: Buffer, release: Release) {
    this.publicKey = publicKey;
    this.pkcs8 = pkcs8;
    this.#release = release;
  }

  /** Zeroes the private key and releases the permit. */
  dispose(): void {
    this.pkcs8.fill(0);
    this.#release();
  }
}

/**
 * The key type: from csrattrs, otherwise as requested, otherwise the profile's first.
 * @param requested type of the CSR's own key
 * @throws EstuaryError 400 `KEY_TYPE_NOT_GENERATED`
 */
export function chooseKeyType(
  { csrAttributes, profile }: Pick<Ca, 'csrAttributes' | 'profile'>,
  requested: string,
): string {
  const allowed: readonly string[] = profile.key_types;
  const candidates = csrAttributes.keyType === undefined ? [requested, ...allowed] : [csrAttributes.keyType];
  const chosen = candidates.find((keyType) => allowed.includes(keyType) && canGenerateKey(keyType));
  if (chosen === undefined) throw keyTypeNotGenerated();
  return chosen;
}

/** 400: the server generates neither the requested type nor another that the CA certifies. */
export function keyTypeNotGenerated(): EstuaryError {
  return badRequest('KEY_TYPE_NOT_GENERATED', 'The server does not generate keys of a type that this CA certifies.');
}

/** An RSA key takes up to seconds of a pool thread that signatures and files share, so one at a time. */
const RSA_AT_A_TIME = 1;
const RSA_WAITING = 32;
/** Other keys take less than a millisecond, but the password form takes tens of milliseconds to derive a key. */
const OTHERS_AT_A_TIME = 2;
const OTHERS_WAITING = 256;
/** Maximum milliseconds to wait for a permit. */
const LONGEST_WAIT = 10_000;

export class KeyGenerator {
  readonly #rsa = new FairLimiter({ concurrency: RSA_AT_A_TIME, queue: RSA_WAITING, busy });
  readonly #others = new FairLimiter({ concurrency: OTHERS_AT_A_TIME, queue: OTHERS_WAITING, busy });
  readonly #samples = new Map<string, PublicKeyInfo>();
  readonly #mlDsaForm: MlDsaPrivateKeyForm;

  /** @param mlDsaForm `[serverkeygen] ml_dsa_key` */
  constructor(mlDsaForm: MlDsaPrivateKeyForm = 'seed') {
    this.#mlDsaForm = mlDsaForm;
  }

  /**
   * Generates a key in the thread pool with a permit, which is held until the key is disposed of.
   * @param keyType from {@link chooseKeyType}
   * @throws EstuaryError 503 `KEY_GENERATION_BUSY`
   */
  async generate(keyType: string): Promise<GeneratedKey> {
    const limiter = keyType.startsWith('rsa:') ? this.#rsa : this.#others;
    const release = await limiter.acquire({ waitMs: LONGEST_WAIT });
    try {
      const { publicKey, privateKey } = await newKeyPair(keyType);
      const mlDsa = mlDsaOf(keyType);
      const pkcs8 = mlDsa === undefined ? privateKey : await inPrivateKeyForm(privateKey, mlDsa, this.#mlDsaForm);
      return new GeneratedKey(parsePublicKey(publicKey), pkcs8, release);
    } catch (error) {
      release();
      throw error;
    }
  }

  /**
   * A public key of this type whose private key is discarded, for checks of a certificate before its key exists. Never
   * certified.
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

function busy(detail: string): EstuaryError {
  return unavailable('KEY_GENERATION_BUSY', 'Too many keys are being generated. Try again later.', { detail });
}
