/** Common to all lists: ordered pages, or the whole selection as CSV. */
import { type TSchema, Type } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { badRequest } from '../../errors.ts';
import type { Order, Page, PageRequest } from '../../store/page.ts';
import { sendCsv, wantsCsv } from './bulk/bulk.ts';
import { reportCells } from './bulk/columns.ts';
import { DEFAULT_LIMIT, listOf, oneOf, pageQuery } from './schemas.ts';

/** Rows per page when reading a whole selection. */
const ROWS = 500;

/** Query parameters of every list, in addition to its filters. */
export const listQuery = {
  order: Type.Optional(oneOf(['asc', 'desc'], { description: 'Oldest first, unless `desc`.' })),
  ...pageQuery,
};

/** The response of a list that is also available as CSV. */
export const listAnswer = <T extends TSchema>(item: T, description: string) => ({
  description,
  content: {
    'application/json': { schema: listOf(item, description) },
    'text/csv': { schema: Type.Any({ description: 'The whole selection with a header line (RFC 4180).' }) },
  },
});

interface ListQuery {
  readonly order?: Order | undefined;
  readonly limit?: number | undefined;
  readonly cursor?: string | undefined;
}

interface List<Row, Shown extends object> {
  readonly page: (request: PageRequest) => Promise<Page<Row>>;
  readonly record: (row: Row) => Shown;
  /** Of the CSV table: the fields of a record. */
  readonly header: readonly string[];
}

/** A page or, with `Accept: text/csv`, the whole selection as a stream. */
export async function answerList<Row, Shown extends object>(
  request: FastifyRequest,
  reply: FastifyReply,
  query: ListQuery,
  { page, record, header }: List<Row, Shown>,
) {
  reply.header('vary', 'accept');
  if (!wantsCsv(request)) return mapPage(await page(pageRequest(query)), record);
  const { order } = query;
  return sendCsv(
    reply,
    header,
    everything((one) => page({ ...one, order }), record),
    reportCells,
  );
}

export async function* everything<Row, Shown>(
  page: (request: Omit<PageRequest, 'order'>) => Promise<Page<Row>>,
  record: (row: Row) => Shown,
): AsyncGenerator<Shown> {
  let cursor: string | undefined;
  do {
    const { items, next_cursor } = await page({ limit: ROWS, cursor });
    for (const row of items) yield record(row);
    cursor = next_cursor ?? undefined;
  } while (cursor !== undefined);
}

export function pageRequest(query: {
  limit?: number | undefined;
  cursor?: string | undefined;
  order?: Order | undefined;
}): PageRequest {
  return { limit: query.limit ?? DEFAULT_LIMIT, cursor: query.cursor, order: query.order };
}

export function mapPage<T, R>(page: Page<T>, record: (row: T) => R): { items: R[]; next_cursor: string | null } {
  return { items: page.items.map(record), next_cursor: page.next_cursor };
}

/**
 * A page of a list in memory that does not change while the process runs.
 * @throws {EstuaryError} 400 `CURSOR_INVALID`
 */
export function pageOf<T>(all: readonly T[], { limit, cursor, order }: PageRequest): Page<T> {
  const items = order === 'desc' ? all.toReversed() : all;
  const start = cursor === undefined ? 0 : Number(cursor);
  if (cursor !== undefined && (!/^[1-9]\d{0,8}$/.test(cursor) || start >= items.length))
    throw badRequest('CURSOR_INVALID', 'cursor does not belong to this list');
  const end = start + limit;
  return { items: items.slice(start, end), next_cursor: end < items.length ? String(end) : null };
}
