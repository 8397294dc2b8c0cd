export interface Page<T> {
  readonly items: readonly T[];
  /** null: the list ends here. Otherwise it may go on, also behind a page that is not full. */
  readonly next_cursor: string | null;
}

/** Oldest or newest first. */
export type Order = 'asc' | 'desc';

export interface PageRequest {
  readonly limit: number;
  readonly cursor?: string | undefined;
  /** Oldest first unless told. */
  readonly order?: Order | undefined;
}

/** The place behind every row of a list that pages by a number, in either direction. */
export const NEWEST = Number.MAX_SAFE_INTEGER;
