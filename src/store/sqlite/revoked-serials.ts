/**
 * Which serial numbers are revoked, known to the main thread: nearly every certificate that is presented is not, and need not be asked
 * for. It holds where one process writes the database; the serials of whatever it revokes are there before the call is answered.
 */
import type { Db } from './database.ts';

/** Serials remembered; with more of them, the database is asked each time. */
const CAPACITY = 100_000;

/** The main thread's memory. A serial too many costs a question, one too few would let a revoked certificate in. */
export class RevokedSerials {
  readonly #capacity: number;
  readonly #serials = new Set<string>();
  /** Whether all are known: not before the thread that writes has told, nor when they are too many. */
  #complete = false;

  constructor(capacity = CAPACITY) {
    this.#capacity = capacity;
  }

  /** What the writing thread has found as it started. */
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

  /** Until the thread is there again, nobody knows what it did last. */
  forget(): void {
    this.#complete = false;
  }

  /** Whether a certificate of this serial may be revoked, as far as is known here. */
  mayHold(serial: string): boolean {
    return !this.#complete || this.#serials.has(serial);
  }
}

/** The writing thread's side: all that are revoked, and then those that its connection revokes, by whichever statement. */
export interface RevocationWatch {
  readonly known: readonly string[];
  /** Those since the last call; also of what was rolled back. */
  take(): readonly string[];
}

export function watchRevocations(db: Db, capacity = CAPACITY): RevocationWatch {
  let revoked: string[] = [];
  db.function('estuary_revoked', (serial: unknown) => {
    revoked.push(String(serial));
    return null;
  });
  for (const change of ['INSERT', 'UPDATE OF revoked_at'])
    db.exec(`CREATE TEMP TRIGGER revoked_by_${change.slice(0, 6).toLowerCase()} AFTER ${change} ON main.certificate
      WHEN NEW.revoked_at IS NOT NULL BEGIN SELECT estuary_revoked(NEW.serial); END`);
  const all = db
    .prepare<[number], string>('SELECT serial FROM certificate WHERE revoked_at IS NOT NULL LIMIT ?')
    .pluck();
  return {
    known: all.all(capacity + 1),
    take() {
      const taken = revoked;
      revoked = [];
      return taken;
    },
  };
}
