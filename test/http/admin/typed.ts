/** Calls of the admin API with the types of its OpenAPI description (api/admin.d.ts): what a test says of an answer has to be what is described. */
import type { LightMyRequestResponse } from 'fastify';
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

/** What goes into the path, the query and the body. */
interface Sent<O> {
  readonly path?: O extends { parameters: { path: infer Parameters } } ? Parameters : never;
  readonly query?: O extends { parameters: { query?: infer Query } } ? Query : never;
  readonly body?: O extends { requestBody?: infer Body } ? JsonOf<NonNullable<Body>> : never;
}

/** The body of an answer with this status. The server writes it by the schema that the types are made of. */
export function answered<P extends Path, M extends MethodOf<P>, const S extends StatusOf<paths[P][M]>>(
  response: LightMyRequestResponse,
  _method: M,
  _path: P,
  status: S,
): Answer<P, M, S> {
  if (response.statusCode !== status)
    throw new Error(`${response.statusCode} in place of ${String(status)}: ${response.body}`);
  return response.json<Answer<P, M, S>>();
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
