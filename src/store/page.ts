import { badRequest } from '../errors.ts';

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

/** A text as searches compare it: upper and lower case alike. What is no text is compared as nothing. */
export const fold = (text: unknown): string => (typeof text === 'string' ? text.toLowerCase() : '');

/** The lists; a cursor works for the list that gave it out. */
export type ListName = 'otp' | 'certificate' | 'lockout' | 'request' | 'audit' | 'device';

/** The key behind which the page begins: of the last item of the page before; undefined for the first page. */
export function readCursor(list: ListName, page: PageRequest): string | undefined {
  if (page.cursor === undefined) return undefined;
  const text = Buffer.from(page.cursor, 'base64url').toString('utf8');
  const prefix = `${list}:`;
  if (!text.startsWith(prefix)) throw invalidCursor();
  return text.slice(prefix.length);
}

/** {@link readCursor} for the lists that page by a number, which starts at 1: the place that the page begins behind, in its order. */
export function readPosition(list: ListName, page: PageRequest): number {
  const key = readCursor(list, page);
  if (key === undefined) return page.order === 'desc' ? NEWEST : 0;
  if (!/^\d{1,16}$/.test(key)) throw invalidCursor();
  return Number(key);
}

export function invalidCursor(): Error {
  return badRequest('CURSOR_INVALID', 'cursor does not belong to this list');
}

/** A row without the `position` that its list is ordered by. */
export function withoutPosition<Row extends { position: number }>(row: Row): Omit<Row, 'position'> {
  const rest: Omit<Row, 'position'> & { position?: number } = { ...row };
  delete rest.position;
  return rest;
}

/**
 * Makes a page of the rows that a query gave when asked for one more than the limit.
 *
 * @param key what the list is ordered by
 * @param stopped the place where the query ended before the list did, if so
 */
export function toPage<Row, Item>(
  list: ListName,
  rows: readonly Row[],
  limit: number,
  key: (row: Row) => string | number,
  item: (row: Row) => Item,
  stopped?: number,
): Page<Item> {
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  const end = rows.length > limit && last !== undefined ? key(last) : stopped;
  return {
    items: shown.map(item),
    next_cursor: end === undefined ? null : Buffer.from(`${list}:${end}`, 'utf8').toString('base64url'),
  };
}
