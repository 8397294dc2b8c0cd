/** What docs/reference/errors.md says of a code. */
export interface ErrorEntry {
  /** The HTTP status, or the statuses that depend on the situation. */
  readonly status: number | readonly number[];
  /** The cause, in one sentence. */
  readonly cause: string;
  /** What the client's or the server's operator does about it, in one sentence. */
  readonly remedy: string;
  /** The public text, if the generator cannot read it where it is thrown. */
  readonly text?: string;
}

export type ErrorTable = Readonly<Record<string, ErrorEntry>>;
