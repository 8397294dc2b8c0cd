import { badRequest } from '../../errors.ts';
import type { Page, PageRequest } from '../page.ts';

/** The lists; a cursor works for the list that gave it out. */
type ListName = 'otp' | 'certificate' | 'lockout' | 'request' | 'audit' | 'device';

/** The key behind which the page begins: of the last item of the page before; undefined for the first page. */
export function readCursor(list: ListName, page: PageRequest): string | undefined {
  if (page.cursor === undefined) return undefined;
  const text = Buffer.from(page.cursor, 'base64url').toString('utf8');
  const prefix = `${list}:`;
  if (!text.startsWith(prefix)) throw invalidCursor();
  return text.slice(prefix.length);
}

/** {@link readCursor} for the lists that page by a number, which starts at 1. */
export function readPosition(list: ListName, page: PageRequest): number {
  const key = readCursor(list, page) ?? '0';
  if (!/^\d{1,15}$/.test(key)) throw invalidCursor();
  return Number(key);
}

function invalidCursor(): Error {
  return badRequest('CURSOR_INVALID', 'cursor: not a cursor of this list');
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
 */
export function toPage<Row, Item>(
  list: ListName,
  rows: readonly Row[],
  limit: number,
  key: (row: Row) => string | number,
  item: (row: Row) => Item,
): Page<Item> {
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  const more = rows.length > limit && last !== undefined;
  return {
    items: shown.map(item),
    next_cursor: more ? Buffer.from(`${list}:${key(last)}`, 'utf8').toString('base64url') : null,
  };
}
