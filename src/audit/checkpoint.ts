/** Signed checkpoints: who keeps one finds out later whether the chain up to it was rewritten, by whoever has the store and the file. */
import type { KeyObject } from 'node:crypto';
import { InputError } from '../pki/input-error.ts';
import { parsePublicKey, type PublicKeyInfo } from '../pki/x509/public-key.ts';
import {
  createSignature,
  defaultSignatureAlgorithm,
  verifySignature,
  type SignatureAlgorithm,
} from '../pki/x509/signature-algorithms.ts';
import type { Checkpoint } from './event.ts';
import { isCheckpoint, type ChainHead } from './record.ts';

/** What is signed: nothing else that the key may ever sign begins like this. */
const signed = ({ seq, hash }: ChainHead): Buffer => Buffer.from(`estuary audit checkpoint\n${seq}\n${hash}\n`);

/** The key of the checkpoints, with its algorithm: the usual one of its kind. */
export class CheckpointKey {
  readonly #publicKey: PublicKeyInfo;
  readonly #algorithm: SignatureAlgorithm;

  /**
   * @param spki DER SubjectPublicKeyInfo
   * @throws InputError for a key that signs nothing here
   */
  constructor(spki: Buffer) {
    this.#publicKey = parsePublicKey(spki);
    const algorithm = defaultSignatureAlgorithm(this.#publicKey.keyType);
    if (algorithm === undefined) throw new InputError(`a ${this.#publicKey.keyType} key signs no checkpoints`);
    this.#algorithm = algorithm;
  }

  /** @param privateKey of this key */
  async sign({ seq, hash }: ChainHead, privateKey: KeyObject): Promise<Checkpoint> {
    const { keyType } = this.#publicKey;
    const signature = await createSignature(this.#algorithm, privateKey, keyType, signed({ seq, hash }));
    return { seq, hash, signature: signature.toString('base64') };
  }

  verify(checkpoint: Checkpoint): Promise<boolean> {
    const signature = Buffer.from(checkpoint.signature, 'base64');
    return verifySignature(this.#algorithm, this.#publicKey, signed(checkpoint), signature);
  }
}

/**
 * The checkpoints that somebody kept: lines of JSON with a `checkpoint`, as audit records and lines of the log have it, among others.
 *
 * @throws InputError where there is none
 */
export function keptCheckpoints(text: string): Checkpoint[] {
  const found = text.split('\n').flatMap((line) => {
    if (!line.includes('"checkpoint"')) return [];
    try {
      const value: unknown = JSON.parse(line);
      const checkpoint = typeof value === 'object' && value !== null && 'checkpoint' in value && value.checkpoint;
      return isCheckpoint(checkpoint) ? [checkpoint] : [];
    } catch {
      return [];
    }
  });
  if (found.length === 0) throw new InputError('it holds no checkpoint');
  return found;
}
