import { badRequest } from '../errors.ts';

export interface Page<T> {
  readonly items: readonly T[];
  /** null: the end of the list. Otherwise it may continue, even after a partial page. */
  readonly next_cursor: string | null;
  /** In place of the items, if the request `counts`. */
  readonly total?: Total;
}

/** How many rows a list has. */
export interface Total {
  readonly count: number;
  /** false: there may be more. */
  readonly exact: boolean;
}

export type Order = 'asc' | 'desc';

export interface PageRequest {
  readonly limit: number;
  readonly cursor?: string | undefined;
  /** Default: oldest first. */
  readonly order?: Order | undefined;
  /** Counts the rows, up to the limit, and as far as a page may search. */
  readonly counts?: true;
}

/** Rows per page when reading a whole list. */
const ROWS = 500;

type ReadPage<Row> = (request: { readonly limit: number; readonly cursor: string | undefined }) => Promise<Page<Row>>;

/** Every page of a list. */
export async function* allPages<Row>(page: ReadPage<Row>): AsyncGenerator<readonly Row[]> {
  for (let cursor: string | undefined; ;) {
    const { items, next_cursor } = await page({ limit: ROWS, cursor });
    yield items;
    if (next_cursor === null) return;
    cursor = next_cursor;
  }
}

/** Every row of a list, read page by page. */
export async function* allRows<Row>(page: ReadPage<Row>): AsyncGenerator<Row> {
  for await (const items of allPages(page)) yield* items;
}

/** A position after every row of a list that pages by number, in either direction. */
export const NEWEST = Number.MAX_SAFE_INTEGER;

/** A text in the form that searches compare, ignoring case. Other values count as empty. */
export const fold = (text: unknown): string => (typeof text === 'string' ? text.toLowerCase() : '');

/** PostgreSQL's text cannot hold U+0000, whose symbol replaces it, and lone surrogates. */
export const storable = <Value>(value: Value): Value | string =>
  typeof value === 'string' ? value.replaceAll('\0', '\u2400').toWellFormed() : value;

/** A cursor is valid only for its list. */
export type ListName = 'otp' | 'certificate' | 'lockout' | 'request' | 'audit' | 'device' | 'fleet';

/** The key of the last item of the previous page; undefined for the first page. */
export function readCursor(list: ListName, page: PageRequest): string | undefined {
  if (page.cursor === undefined) return undefined;
  const text = Buffer.from(page.cursor, 'base64url').toString('utf8');
  const prefix = `${list}:`;
  if (!text.startsWith(prefix)) throw invalidCursor();
  return text.slice(prefix.length);
}

/** {@link readCursor} for lists that page by a number from 1: the position before the page, in its order. */
export function readPosition(list: ListName, page: PageRequest): number {
  const key = readCursor(list, page);
  if (key === undefined) return page.order === 'desc' ? NEWEST : 0;
  if (!/^\d{1,16}$/.test(key)) throw invalidCursor();
  return Number(key);
}

export function invalidCursor(): Error {
  return badRequest('CURSOR_INVALID', 'cursor does not belong to this list');
}

/**
 * Makes a page from rows queried with a limit of one more.
 * @param key the list's sort key
 * @param stopped the position where the query stopped early, if it did
 */
export function toPage<Row, Item>(
  list: ListName,
  rows: readonly Row[],
  { limit, counts }: PageRequest,
  key: (row: Row) => string | number,
  item: (row: Row) => Item,
  stopped?: number,
): Page<Item> {
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  const end = rows.length > limit && last !== undefined ? key(last) : stopped;
  if (counts) return { items: [], next_cursor: null, total: { count: shown.length, exact: end === undefined } };
  return {
    items: shown.map(item),
    next_cursor: end === undefined ? null : Buffer.from(`${list}:${end}`, 'utf8').toString('base64url'),
  };
}

/** {@link toPage} for a list by `position`, which items do not have. @typeParam Row the other columns */
export function pageByPosition<Row extends object, Item>(
  list: ListName,
  { rows, stopped }: { readonly rows: readonly (Row & { readonly position: number })[]; readonly stopped?: number },
  page: PageRequest,
  item: (row: Row) => Item,
): Page<Item> {
  const withoutPosition = (row: Row): Item => {
    const rest: Row & { position?: number } = { ...row };
    delete rest.position;
    return item(rest);
  };
  return toPage(list, rows, page, ({ position }) => position, withoutPosition, stopped);
}
