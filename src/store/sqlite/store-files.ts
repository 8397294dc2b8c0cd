/**
 * The database and its write-ahead log, which must stay where they are: SQLite would go on writing to a file without a
 * name, and a restart would find none of it.
 */
import { type Stats, statSync } from 'node:fs';
import { storeUnavailable } from '../calls/errors.ts';

/** Milliseconds for which a check counts for reads, each of which would pay 1 % of an enrollment. */
const RECENT = 100;

export class StoreFiles {
  readonly #known: readonly (readonly [path: string, stats: Stats | undefined])[];
  /** When the last check passed. */
  #passed = -Infinity;

  /** @param path as configured @param db without symbolic links */
  constructor(path: string, db: string) {
    this.#known = [path, `${db}-wal`].map((file) => [file, statOf(file)]);
  }

  /** @throws EstuaryError 503 that names the file in its detail */
  check(): void {
    this.#passed = -Infinity;
    for (const [path, known] of this.#known) {
      const now = statOf(path);
      if (now !== undefined && now.ino === known?.ino && now.dev === known.dev) continue;
      const what = now === undefined ? 'was removed or moved' : 'was replaced';
      throw storeUnavailable(`${path} ${what} while the server runs. Put it back, or restore a backup`);
    }
    this.#passed = performance.now();
  }

  /** As {@link check}, unless one has just passed. */
  checkForRead(): void {
    if (performance.now() - this.#passed > RECENT) this.check();
  }
}

const statOf = (path: string): Stats | undefined => statSync(path, { throwIfNoEntry: false });
