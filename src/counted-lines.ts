/** Lines of log that anybody can cause without end: some of one kind have a line of their own, the others share one that counts them. */
import { CountedRepeats, type Counted } from './counted-repeats.ts';

export interface CountedLog {
  readonly info: (fields: object, message: string) => void;
}

/** Lines of one kind within a window. */
const SINGLE = 5;

interface Line {
  readonly fields: object;
  readonly message: string;
}

export class CountedLines {
  readonly #log: CountedLog;
  readonly #repeats = new CountedRepeats<Line>({ single: SINGLE, tell: (counted) => this.#tell(counted) });

  constructor(log: CountedLog) {
    this.#log = log;
  }

  /** @param kind what lines have in common that may share one: the message and the client's address, for example */
  info(kind: string, fields: object, message: string): void {
    if (this.#repeats.add(kind, { fields, message }) === 0) this.#log.info(fields, message);
  }

  /** Tells what has been counted so far. */
  close(): void {
    void this.#repeats.close();
  }

  /** The fields are those of the last one. */
  #tell({ count, last: { fields, message }, since }: Counted<Line>): void {
    this.#log.info({ ...fields, repeated: count, since: new Date(since).toISOString() }, message);
  }
}
