/** What docs/reference/errors.md says of a code. */
export interface ErrorEntry {
  /** The HTTP status; the code's statuses where what happened tells them apart. */
  readonly status: number | readonly number[];
  /** What brings it about, in one sentence. */
  readonly cause: string;
  /** What the client's or the server's operator does about it, in one sentence. */
  readonly remedy: string;
  /** The public text, where the generator cannot read it at the place that throws. */
  readonly text?: string;
}

export type ErrorTable = Readonly<Record<string, ErrorEntry>>;
