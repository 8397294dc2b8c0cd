/** Calls of the admin API with the types of its OpenAPI description (api/admin.d.ts): what a test says of an answer has to be what is described. */
import type { LightMyRequestResponse } from 'fastify';
import { expect } from 'vitest';
import type { components, paths } from '../../../api/admin.d.ts';
import type { AdminFixture } from './support.ts';

/** The records by their names. */
export type Schemas = components['schemas'];

type Path = keyof paths;
type MethodOf<P extends Path> = {
  [M in keyof paths[P]]: paths[P][M] extends { responses: object } ? M : never;
}[keyof paths[P]];
type StatusOf<O> = O extends { responses: infer R } ? keyof R : never;
type JsonOf<T> = T extends { content: { 'application/json': infer Body } } ? Body : never;

/** What a call answers with a status. */
export type Answer<P extends Path, M extends MethodOf<P>, S extends StatusOf<paths[P][M]>> = paths[P][M] extends {
  responses: Record<S, infer Response>;
}
  ? JsonOf<Response>
  : never;

type Segments<T extends string> = T extends `${infer First}/${infer Rest}` ? [First, ...Segments<Rest>] : [T];
/** As {@link Segments}, a parameter as any text. */
type Pattern<T extends string> = T extends `${infer First}/${infer Rest}`
  ? [...Pattern<First>, ...Pattern<Rest>]
  : [T extends `{${string}}` ? string : T];
type WithoutQuery<Url extends string> = Url extends `${infer P}?${string}` ? P : Url;
type Matching<P extends string> = {
  [K in Path]: Segments<P> extends Pattern<K> ? K : never;
}[Path];
/** The described path of a URL, as far as its type tells it. */
type PathOf<Url extends string> = WithoutQuery<Url> extends Path ? WithoutQuery<Url> : Matching<WithoutQuery<Url>>;
type SuccessOf<O> = O extends { responses: infer R } ? { [S in keyof R & (200 | 201)]: JsonOf<R[S]> } : never;

/** The body of a successful answer to a call; `unknown` where the URL's type does not tell which call it is. */
export type BodyOf<Method extends string, Url extends string> = Url extends string
  ? [PathOf<Url>] extends [never]
    ? unknown
    : Lowercase<Method> extends MethodOf<PathOf<Url>>
      ? SuccessOf<paths[PathOf<Url>][Lowercase<Method>]>[keyof SuccessOf<paths[PathOf<Url>][Lowercase<Method>]>]
      : unknown
  : never;

/** An answer whose body is as described. */
export interface Answered<Body> extends Omit<LightMyRequestResponse, 'json'> {
  readonly json: () => Body;
}

/** Some of a value, as `toMatchObject` takes it. */
type Part<T> = T extends readonly (infer Item)[]
  ? readonly Part<Item>[]
  : T extends object
    ? { readonly [K in keyof T]?: Part<T[K]> }
    : T;

/** The body has these fields, as they are described. */
export const expectBody = <Body>(answer: Pick<Answered<Body>, 'json'>, expected: Part<NoInfer<Body>>): void =>
  expect(answer.json()).toMatchObject(Object(expected));

/** The body is this, as it is described. */
export const expectWholeBody = <Body>(answer: Pick<Answered<Body>, 'json'>, expected: NoInfer<Body>): void =>
  expect(answer.json()).toEqual(expected);

/** What goes into the path, the query and the body. */
interface Sent<O> {
  readonly path?: O extends { parameters: { path: infer Parameters } } ? Parameters : never;
  readonly query?: O extends { parameters: { query?: infer Query } } ? Query : never;
  readonly body?: O extends { requestBody?: infer Body } ? JsonOf<NonNullable<Body>> : never;
}

/** The body of an answer with this status. The server writes it by the schema that the types are made of. */
export function answered<P extends Path, M extends MethodOf<P>, const S extends StatusOf<paths[P][M]>>(
  response: Answered<unknown>,
  _method: M,
  _path: P,
  status: S,
): Answer<P, M, S> {
  if (response.statusCode !== status)
    throw new Error(`${response.statusCode} in place of ${String(status)}: ${response.body}`);
  return response.json() as Answer<P, M, S>;
}

/** Makes a call as the fixture's administrator; the body of its answer. */
export async function ask<P extends Path, M extends MethodOf<P>, const S extends StatusOf<paths[P][M]>>(
  { call }: Pick<AdminFixture, 'call'>,
  method: M,
  path: P,
  status: S,
  sent: Sent<paths[P][M]> = {},
): Promise<Answer<P, M, S>> {
  const response = await call(String(method).toUpperCase(), urlOf(path, sent.path ?? {}, sent.query ?? {}), sent.body);
  return answered(response, method, path, status);
}

function urlOf(path: string, parameters: object, query: object): string {
  const texts = (of: object): [string, string][] => Object.entries(of).map(([name, value]) => [name, String(value)]);
  const values = new Map(texts(parameters));
  const search = new URLSearchParams(texts(query)).toString();
  const url = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(values.get(name) ?? ''));
  return search === '' ? url : `${url}?${search}`;
}
