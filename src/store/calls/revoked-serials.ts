/**
 * The serial numbers of all revoked certificates, in the memory of the process: nearly every certificate that a client presents is not
 * revoked, so the database need not be asked. The thread that writes reports each serial number before it answers the call that revoked it.
 */

/** Most serial numbers that are remembered. Above it the database is asked each time. */
export const CAPACITY = 100_000;

/** An extra serial number costs a query; a missing one would accept a revoked certificate. */
export class RevokedSerials {
  readonly #capacity: number;
  readonly #serials = new Set<string>();
  /** False until the writing thread has reported, and when there are too many. */
  #complete = false;

  constructor(capacity = CAPACITY) {
    this.#capacity = capacity;
  }

  /** What the writing thread found revoked when it started. */
  begin(serials: readonly string[]): void {
    this.#complete = true;
    this.add(serials);
  }

  /** What the writing thread has revoked. */
  add(serials: readonly string[]): void {
    for (const serial of serials) this.#serials.add(serial);
    if (this.#serials.size <= this.#capacity) return;
    this.#serials.clear();
    this.#complete = false;
  }

  /** The writing thread has ended: its last revocations are unknown until it starts again. */
  forget(): void {
    this.#complete = false;
  }

  /** Whether a certificate with this serial number may be revoked. */
  mayHold(serial: string): boolean {
    return !this.#complete || this.#serials.has(serial);
  }
}

/** The writer's side: reports every revocation of its connection, whichever statement made it. */
export interface RevocationWatch {
  /** At most one more than a process remembers. */
  known(): readonly string[];
  /** Those since the last call, including revocations that were rolled back. */
  take(): readonly string[];
}
