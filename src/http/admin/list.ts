/** Common to all lists: ordered pages, or the whole selection as CSV. */
import { type TObject, type TProperties, Type } from '@fastify/type-provider-typebox';
import type { FastifyRequest } from 'fastify';
import { badRequest } from '../../errors.ts';
import type { Order, Page, PageRequest } from '../../store/page.ts';
import { sendCsv, wantsCsv } from './bulk/bulk.ts';
import { reportCells } from './bulk/columns.ts';
import type { AdminApp, AdminDependencies } from './dependencies.ts';
import { type Call, type Query, route } from './route.ts';
import { DEFAULT_LIMIT, listOf, oneOf, pageQuery } from './schemas.ts';

/** Rows per page when reading a whole selection. */
const ROWS = 500;

/** Query parameters of every list, in addition to its filters. */
export const listQuery = {
  order: Type.Optional(oneOf(['asc', 'desc'], { description: 'Oldest first, unless `desc`.' })),
  ...pageQuery,
};

interface List<Filters extends TProperties, Row, Shown extends object> extends Omit<
  Call<string, Filters, undefined>,
  'query' | 'response' | 'handler'
> {
  readonly filters: Filters;
  readonly item: TObject;
  /** Describes the order of the records. */
  readonly sorted: string;
  page(
    request: FastifyRequest<{ Querystring: Query<Filters & typeof listQuery> }>,
    now: number,
  ): (page: PageRequest) => Promise<Page<Row>>;
  record(row: Row, now: number): Shown;
}

type AnyList = Omit<List<typeof listQuery, unknown, object>, 'filters'> & { readonly filters: TProperties };

/** A call that lists records: a page or, with `Accept: text/csv`, the whole selection as a stream. */
export const listRoute: <Filters extends TProperties, Row, Shown extends object>(
  app: AdminApp,
  deps: Pick<AdminDependencies, 'now'>,
  list: List<Filters, Row, Shown>,
) => void = registerList;

function registerList(
  app: AdminApp,
  { now }: Pick<AdminDependencies, 'now'>,
  { filters, item, sorted: description, ...call }: AnyList,
): void {
  route(app, {
    description: 'With `Accept: text/csv`, the whole selection as a table.',
    ...call,
    query: { ...filters, ...listQuery },
    response: {
      200: {
        description,
        content: {
          'application/json': { schema: listOf(item, description) },
          'text/csv': { schema: Type.Any({ description: 'The whole selection with a header line (RFC 4180).' }) },
        },
      },
    },
    handler: async (request, reply) => {
      const at = now();
      const page = call.page(request, at);
      const record = (row: unknown): object => call.record(row, at);
      reply.header('vary', 'accept');
      if (!wantsCsv(request)) return mapPage(await page(pageRequest(request.query)), record);
      const all = everything((one) => page({ ...one, order: request.query.order }), record);
      return sendCsv(reply, Object.keys(item.properties), all, reportCells);
    },
  });
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
