/** The checkpoints of a chain, and those from elsewhere that it has to agree with. */
import { Broken } from './broken.ts';
import type { CheckpointKey } from './checkpoint.ts';
import type { Checkpoint } from './event.ts';
import type { ChainHead } from './record.ts';

/** The first that the key has not signed. */
export async function firstUnsigned<T extends Checkpoint>(
  checkpoints: readonly T[],
  key: CheckpointKey | undefined,
): Promise<T | undefined> {
  if (key === undefined) return undefined;
  for (const checkpoint of checkpoints) if (!(await key.verify(checkpoint))) return checkpoint;
  return undefined;
}

/** How many records a checkpoint may lie behind the one that it signs: what was recorded while it was made. */
const REMEMBERED = 100_000;

/** Holds the chain against the checkpoints in it, and against those from elsewhere. */
export class Seals {
  readonly found: (Checkpoint & { readonly record: number })[] = [];
  agreed = 0;
  readonly #kept: ReadonlyMap<number, string>;
  readonly #last: number;
  /** Hashes of the newest records, at `seq % REMEMBERED`. */
  readonly #hashes: string[] = [];

  constructor(kept: readonly Checkpoint[]) {
    this.#kept = new Map(kept.map(({ seq, hash }) => [seq, hash]));
    this.#last = Math.max(0, ...this.#kept.keys());
  }

  /** The next record of the chain, or the one before the first. */
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
      throw new Broken(seq, `the checkpoint in record ${seq} is of another record ${checkpoint.seq} than the log has`);
    this.found.push({ ...checkpoint, record: seq });
  }

  end({ seq }: ChainHead): void {
    if (this.#last > seq)
      throw new Broken(
        seq + 1,
        `record ${this.#last} is missing, of which there is a kept checkpoint: the log was cut`,
      );
  }
}
