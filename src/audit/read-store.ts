import Database from 'better-sqlite3';

/** A record as the store keeps it. */
export interface StoredLine {
  readonly seq: number;
  /** The record: one line of JSON, as the audit file has it. */
  readonly line: string;
}

/** Milliseconds since the epoch, both within; absent: from the first, to the last. */
export interface TimeRange {
  readonly since?: number | undefined;
  readonly until?: number | undefined;
}

/** Records that are read at once: short reads, so that a server's write-ahead log is not kept from being folded in. */
const ROWS = 2000;

/**
 * Goes through the audit records of a store, in the order of their chain, while a server runs or not. It blocks its thread: for a command.
 *
 * @throws when the database cannot be opened or is none of Estuary's
 */
export function* storedLines(storePath: string, { since = 0, until = Number.MAX_SAFE_INTEGER }: TimeRange = {}) {
  const db = new Database(storePath, { readonly: true, fileMustExist: true, timeout: 5000 });
  try {
    const next = db.prepare<[number], StoredLine & { time: number }>(
      `SELECT seq, time, line FROM audit WHERE seq > ? ORDER BY seq LIMIT ${ROWS}`,
    );
    let after = 0;
    for (let rows = next.all(after); rows.length > 0; rows = next.all(after)) {
      for (const { seq, time, line } of rows) {
        after = seq;
        if (time >= since && time <= until) yield { seq, line } satisfies StoredLine;
      }
    }
  } finally {
    db.close();
  }
}
