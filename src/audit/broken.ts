/** Errors in a chain of audit records. */
import type { ChainHead } from './record.ts';

/** The end of the chain, as stored. */
export interface StoredHead extends ChainHead {
  readonly file_start: number;
  readonly file_size: number;
}

export interface StoredRecord {
  readonly seq: number;
  readonly time: number;
  readonly type: string;
  readonly line: string;
}

/** The first error found; used only inside the verification. */
export class Broken extends Error {
  readonly seq: number | null;
  constructor(seq: number | null, problem: string) {
    super(problem);
    this.seq = seq;
  }
}

/** An error in the file; a concurrent rotation or write may be the cause. */
export class BrokenFile extends Broken {}

/** A record with an intact line whose search columns differ. */
export const changedSearch = (seq: number, what: string): Broken =>
  new Broken(seq, `record ${seq} in the store was changed: its column "${what}" differs from the record`);
