/**
 * Which serial numbers are revoked, known to every process that asks: nearly every certificate that is presented is not, and need not be
 * asked for. It holds where one thread or process writes the database; the serials of whatever it revokes are known to all before the call
 * is answered.
 *
 * A process that was stopped for a while may not have been told: so what it knows counts for {@link LEASE} after it last heard of the
 * writer, and the writer that was not confirmed waits that long with its answer.
 */
import { monotonic } from './clock.ts';

/** Milliseconds. The writer is heard every third of it. */
export const LEASE = 3000;

/** Serials remembered; with more of them, the database is asked each time. */
export const CAPACITY = 100_000;

/** The memory of one process. A serial too many costs a question, one too few would let a revoked certificate in. */
export class RevokedSerials {
  readonly #capacity: number;
  readonly #serials = new Set<string>();
  /** Whether all are known: not before the thread that writes has told, nor when they are too many. */
  #complete = false;
  /** When the writer was last heard. */
  #heard = -Infinity;

  constructor(capacity = CAPACITY) {
    this.#capacity = capacity;
  }

  /** The writer has sent something. @param at when, see clock.ts; Infinity for a thread, which nobody stops by itself */
  heard(at: number): void {
    this.#heard = at;
  }

  /** What the writer has found revoked. */
  begin(serials: readonly string[]): void {
    this.#complete = true;
    this.add(serials);
  }

  /** What it has revoked. */
  add(serials: readonly string[]): void {
    for (const serial of serials) this.#serials.add(serial);
    if (this.#serials.size <= this.#capacity) return;
    this.#serials.clear();
    this.#complete = false;
  }

  /** Until the writer is there again, nobody knows what it did last. */
  forget(): void {
    this.#complete = false;
  }

  /** Whether a certificate of this serial may be revoked, as far as is known here. */
  mayHold(serial: string): boolean {
    return !this.#complete || this.#serials.has(serial) || this.#heard + LEASE < monotonic();
  }
}

/** The writer's side: all that are revoked, and then those that its connection revokes, by whichever statement. */
export interface RevocationWatch {
  /** One more than a process remembers at most. */
  known(): readonly string[];
  /** Those since the last call; also of what was rolled back. */
  take(): readonly string[];
}
