/**
 * Defines a call of the admin API, and a list: ordered pages, or the whole selection as CSV. What follows from path and
 * body for every call is here.
 */
import { type Static, type TObject, type TProperties, type TSchema, Type } from '@fastify/type-provider-typebox';
import type { FastifyContextConfig, FastifyReply, FastifyRequest } from 'fastify';
import type { AdminApp, AdminDependencies } from './dependencies.ts';
import {
  DEFAULT_LIMIT,
  errorResponses,
  type ErrorStatus,
  flag,
  listOf,
  oneOf,
  pageQuery,
  strictObject,
} from './schemas.ts';
import { badRequest } from '../../errors.ts';
import { allRows, type Order, type Page, type PageRequest, type Total } from '../../store/page.ts';
import { sendCsv, wantsCsv } from './bulk/bulk.ts';
import { reportCells } from './bulk/columns.ts';

type Params<Url extends string> = Url extends `${string}:${infer Name}/${string}`
  ? Readonly<Record<Name, string>>
  : Url extends `${string}:${infer Name}`
    ? Readonly<Record<Name, string>>
    : unknown;

export type Query<Parts extends TProperties> = Static<ReturnType<typeof strictObject<Parts>>>;

/** The rules of a call (`access`, `labels` …), its description, and its handler. */
export interface Call<Url extends string, Parts extends TProperties, Body> extends FastifyContextConfig {
  /** Method and path. */
  readonly call: `${'GET' | 'POST' | 'PATCH' | 'DELETE'} ${Url}`;
  /** Default: the second segment of the path. */
  readonly tag?: string;
  readonly summary: string;
  readonly description?: string;
  /** Describes the parameter of the path. */
  readonly param?: string;
  readonly query?: Parts;
  readonly body?: Body;
  /** Without a body, it is `{}`. */
  readonly optionalBody?: true;
  /** The successful responses. */
  readonly response: Readonly<Record<number, object>>;
  /** Errors that do not follow from the path (404) and the body (413, 415). */
  readonly errors?: readonly ErrorStatus[];
  readonly exposeHeadRoute?: boolean;
  readonly handler: Handler<
    FastifyRequest<{
      Params: Params<Url>;
      Querystring: Query<Parts>;
      Body: Body extends TSchema ? Static<Body> : unknown;
    }>
  >;
}

/** Of a method, so that the handler of any call is one of {@link AnyCall}. */
type Handler<Request> = { handle(request: Request, reply: FastifyReply): unknown }['handle'];

type AnyCall = Omit<Call<string, TProperties, unknown>, 'handler'> & { readonly handler: Handler<FastifyRequest> };

export const route: <Url extends string, Parts extends TProperties = TProperties, Body = undefined>(
  app: AdminApp,
  call: Call<Url, Parts, Body>,
) => void = register;

const NOT_FOUND = [404] as const;
const BODY = [413, 415] as const;

/** Descriptions of parameters that have one meaning. */
const PARAMS: Readonly<Record<string, string>> = { serial: 'Hex.' };

function withBody(request: FastifyRequest, _reply: FastifyReply, done: () => void): void {
  const given: unknown = request.body;
  if (given === undefined) request.body = {};
  done();
}

function register(app: AdminApp, { call, handler, exposeHeadRoute = true, ...more }: AnyCall): void {
  const { tag, summary, description, param, query = {}, body, optionalBody, response, errors = [], ...config } = more;
  const [method = '', url = ''] = call.split(' ');
  const [, , segment = ''] = url.split('/');
  const [, name] = /:(\w+)/.exec(url) ?? [];
  const about = param ?? PARAMS[name ?? ''];
  app.route({
    method,
    url,
    exposeHeadRoute,
    config,
    schema: {
      summary,
      ...(description === undefined ? {} : { description }),
      tags: [tag ?? segment],
      ...(config.access === 'public' ? { security: [] } : {}),
      ...(name === undefined
        ? {}
        : { params: Type.Object({ [name]: Type.String(about === undefined ? {} : { description: about }) }) }),
      querystring: strictObject(query),
      ...(body === undefined ? {} : { body }),
      response: {
        ...response,
        ...errorResponses(
          400,
          ...(name === undefined ? [] : NOT_FOUND),
          ...(body === undefined ? [] : BODY),
          ...errors,
        ),
      },
    },
    ...(optionalBody === true ? { preValidation: withBody } : {}),
    handler: (request, reply) => handler(request, reply),
  });
}

/** Up to which a list is counted, so that no page of a long one costs much. */
const COUNTED = 10_000;

/** Query parameters of every list, in addition to its filters. */
export const listQuery = {
  order: Type.Optional(oneOf(['asc', 'desc'], { description: 'Oldest first, unless `desc`.' })),
  total: flag(`true: also counts the records that match, up to ${COUNTED.toLocaleString('en')}.`),
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
  /** As CSV; default: the fields of a record, for a spreadsheet. */
  table?(request: FastifyRequest<{ Querystring: Query<Filters & typeof listQuery> }>): Promise<Table>;
}

interface Table {
  readonly header: readonly string[];
  readonly cells: typeof reportCells;
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
  { filters, item, sorted: description, table, ...call }: AnyList,
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
      if (!wantsCsv(request)) {
        const { items, ...rest } = await pageAndTotal(request.query, page);
        return { items: items.map(record), ...rest };
      }
      const all = allRows((query) => page({ ...query, order: request.query.order }));
      const { header, cells } = (await table?.(request)) ?? {
        header: Object.keys(item.properties),
        cells: reportCells,
      };
      return sendCsv(reply, header, all, (row) => cells(header, record(row)));
    },
  });
}

interface PageQuery {
  readonly limit?: number | undefined;
  readonly cursor?: string | undefined;
  readonly order?: Order | undefined;
  readonly total?: 'true' | 'false' | undefined;
}

/** A page, and what the request asks for in addition. */
async function pageAndTotal<Row>(
  query: PageQuery,
  read: (page: PageRequest) => Promise<Page<Row>>,
): Promise<Page<Row>> {
  const page = await read(pageRequest(query));
  if (query.total !== 'true') return page;
  const isWhole = query.cursor === undefined && page.next_cursor === null;
  const { total } = isWhole
    ? { total: { count: page.items.length, exact: true } satisfies Total }
    : await read({ limit: COUNTED, counts: true, cursor: undefined });
  return total === undefined ? page : { ...page, total };
}

export function pageRequest(query: PageQuery): PageRequest {
  return { limit: query.limit ?? DEFAULT_LIMIT, cursor: query.cursor, order: query.order };
}

/**
 * A page of a list in memory that does not change while the process runs.
 * @throws {EstuaryError} 400 `CURSOR_INVALID`
 */
export function pageOf<T>(all: readonly T[], query: PageQuery): Page<T> {
  const { limit, cursor, order } = pageRequest(query);
  const items = order === 'desc' ? all.toReversed() : all;
  const start = cursor === undefined ? 0 : Number(cursor);
  if (cursor !== undefined && (!/^[1-9]\d{0,8}$/.test(cursor) || start >= items.length))
    throw badRequest('CURSOR_INVALID', 'cursor does not belong to this list');
  const end = start + limit;
  return {
    items: items.slice(start, end),
    next_cursor: end < items.length ? String(end) : null,
    ...(query.total === 'true' ? { total: { count: items.length, exact: true } } : {}),
  };
}
