/** Which paths exist and what they take, for 404 and 405: Fastify answers both with 404. */

/** The methods of each path pattern. */
export type RouteTable = Map<string, { readonly pattern: RegExp; readonly methods: Set<string> }>;

/** Notes a route as Fastify's `onRoute` hook tells of it. */
export function recordRoute(table: RouteTable, route: { url: string; method: string | readonly string[] }): void {
  const known = table.get(route.url) ?? { pattern: toPattern(route.url), methods: new Set<string>() };
  for (const method of typeof route.method === 'string' ? [route.method] : route.method) known.methods.add(method);
  table.set(route.url, known);
}

/** The methods that a request's path takes, sorted; none when it is unknown. */
export function allowedMethods(table: RouteTable, url: string): string[] {
  const path = pathOf(url);
  const methods = [...table.values()]
    .filter(({ pattern }) => pattern.test(path))
    .flatMap((route) => [...route.methods]);
  return [...new Set(methods)].sort();
}

/** Whether a request's path is /admin or below, however it is written. */
export function isAdminPath(url: string): boolean {
  return /^\/+admin(?:\/|$)/i.test(pathOf(url));
}

function toPattern(url: string): RegExp {
  const segments = url
    .split('/')
    .map((segment) => (segment.startsWith(':') ? '[^/]+' : segment.replaceAll('.', '\\.')));
  return new RegExp(`^${segments.join('/')}$`);
}

/** The path without query, each segment decoded as far as it can be; an encoded slash stays in its segment. */
function pathOf(url: string): string {
  const path = url.split(/[?#]/, 1)[0] ?? '';
  return path
    .split('/')
    .map((segment) => decode(segment).replaceAll('/', '%2F'))
    .join('/');
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
