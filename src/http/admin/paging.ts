import { badRequest } from '../../errors.ts';
import type { Order, Page, PageRequest } from '../../store/page.ts';
import { DEFAULT_LIMIT } from './schemas.ts';

/** What a list's query says about its page. */
export function pageRequest(query: {
  limit?: number | undefined;
  cursor?: string | undefined;
  order?: Order | undefined;
}): PageRequest {
  return { limit: query.limit ?? DEFAULT_LIMIT, cursor: query.cursor, order: query.order };
}

/** Turns a page of rows into a page of records. */
export function mapPage<T, R>(page: Page<T>, record: (row: T) => R): { items: R[]; next_cursor: string | null } {
  return { items: page.items.map(record), next_cursor: page.next_cursor };
}

/**
 * A page of a list that is in memory and does not change while the process runs.
 *
 * @throws {EstuaryError} 400 `CURSOR_INVALID`
 */
export function pageOf<T>(all: readonly T[], { limit, cursor, order }: PageRequest): Page<T> {
  const items = order === 'desc' ? all.toReversed() : all;
  const start = cursor === undefined ? 0 : Number(cursor);
  if (cursor !== undefined && (!/^[1-9]\d{0,8}$/.test(cursor) || start >= items.length))
    throw badRequest('CURSOR_INVALID', 'cursor is not one that this list gave out');
  const end = start + limit;
  return { items: items.slice(start, end), next_cursor: end < items.length ? String(end) : null };
}
