/** Signed checkpoints. An exported checkpoint reveals a later rewrite of the chain. */
import type { KeyObject } from 'node:crypto';
import { InputError } from '../pki/input-error.ts';
import { parsePublicKey, type PublicKeyInfo } from '../pki/x509/public-key.ts';
import {
  createSignature,
  defaultSignatureAlgorithm,
  type SignatureAlgorithm,
  verifySignature,
} from '../pki/x509/signature-algorithms.ts';
import type { Checkpoint } from './event.ts';
import { Broken, type ChainHead, isCheckpoint } from './record.ts';

/** The signed bytes; the key signs nothing else with this prefix. */
const signed = ({ seq, hash }: ChainHead): Buffer => Buffer.from(`estuary audit checkpoint\n${seq}\n${hash}\n`);

/** The checkpoint key, with its default algorithm. */
export class CheckpointKey {
  readonly #publicKey: PublicKeyInfo;
  readonly #algorithm: SignatureAlgorithm;

  /** @throws InputError if the key type cannot sign */
  constructor(spki: Buffer) {
    this.#publicKey = parsePublicKey(spki);
    const algorithm = defaultSignatureAlgorithm(this.#publicKey.keyType);
    if (algorithm === undefined)
      throw new InputError(`a key of the type ${this.#publicKey.keyType} cannot sign checkpoints`);
    this.#algorithm = algorithm;
  }

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
 * Reads exported checkpoints: lines of JSON with a `checkpoint`, from audit records or logs; skips other lines.
 * @throws InputError if the text has none
 */
export function exportedCheckpoints(text: string): Checkpoint[] {
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
  if (found.length === 0) throw new InputError('it contains no checkpoint');
  return found;
}

/** The first checkpoint with an invalid signature. */
export async function firstUnsigned<T extends Checkpoint>(
  checkpoints: readonly T[],
  key: CheckpointKey | undefined,
): Promise<T | undefined> {
  if (key === undefined) return undefined;
  for (const checkpoint of checkpoints) if (!(await key.verify(checkpoint))) return checkpoint;
  return undefined;
}

/** Maximum records between a checkpoint and the record that it signs: those written during signing. */
const REMEMBERED = 100_000;

/** Compares the chain with the checkpoints in it and with exported ones. */
export class Seals {
  readonly found: (Checkpoint & { readonly record: number })[] = [];
  agreed = 0;
  readonly #kept: ReadonlyMap<number, string>;
  readonly #last: number;
  /** Hashes of the latest records, at `seq % REMEMBERED`. */
  readonly #hashes: string[] = [];

  constructor(kept: readonly Checkpoint[]) {
    this.#kept = new Map(kept.map(({ seq, hash }) => [seq, hash]));
    this.#last = Math.max(0, ...this.#kept.keys());
  }

  /** Passes the next record of the chain, or the one before the first. */
  pass({ seq, hash }: ChainHead, checkpoint?: Checkpoint): void {
    this.#hashes[seq % REMEMBERED] = hash;
    const kept = this.#kept.get(seq);
    if (kept !== undefined && kept !== hash)
      throw new Broken(seq, `record ${seq} is not the one that the kept checkpoint signs: the log was rewritten`);
    if (kept !== undefined) this.agreed++;
    if (checkpoint === undefined) return;
    const signed = this.#hashes[checkpoint.seq % REMEMBERED];
    const isFar = checkpoint.seq <= seq - REMEMBERED || signed === undefined;
    if (checkpoint.seq >= seq || (!isFar && signed !== checkpoint.hash))
      throw new Broken(
        seq,
        `the checkpoint in record ${seq} signs a record ${checkpoint.seq} that differs from the one in the log`,
      );
    this.found.push({ ...checkpoint, record: seq });
  }

  end({ seq }: ChainHead): void {
    if (this.#last > seq)
      throw new Broken(
        seq + 1,
        `record ${this.#last} is missing, although a kept checkpoint signs it: the log was cut`,
      );
  }
}
