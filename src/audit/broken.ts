/** What is wrong with a chain of audit records, and what the store says of its end. */
import type { ChainHead } from './record.ts';

/** The end of the chain as the store keeps it. */
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

/** What was found first; thrown among the parts of the verification only. */
export class Broken extends Error {
  readonly seq: number | null;
  constructor(seq: number | null, problem: string) {
    super(problem);
    this.seq = seq;
  }
}

/** In the file, where a rotation or a write may have come between the look at the store and the look at the file. */
export class BrokenFile extends Broken {}

/** A record whose line is whole, but which searches do not find. */
export const changedSearch = (seq: number, what: string): Broken =>
  new Broken(seq, `record ${seq} in the store was changed: its column "${what}" differs from the record`);
