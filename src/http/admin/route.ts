/** Defines a call of the admin API. What follows from its path and body for every call is here. */
import { type Static, type TProperties, type TSchema, Type } from '@fastify/type-provider-typebox';
import type { FastifyContextConfig, FastifyReply, FastifyRequest } from 'fastify';
import type { AdminApp } from './dependencies.ts';
import { errorResponses, type ErrorStatus, strictObject } from './schemas.ts';

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
