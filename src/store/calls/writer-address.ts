/** Where the process is that writes the database for others, and who this one is. */
export interface WriterAddress {
  readonly socket: string;
  /** The owner of this process's reservations. */
  readonly name: string;
}
