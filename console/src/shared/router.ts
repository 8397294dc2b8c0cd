/** The route is in the fragment after `#`, which browsers do not send. Every state is a link. */
import { computed, signal } from '@preact/signals';

const hash = signal(location.hash);
addEventListener('hashchange', () => {
  hash.value = location.hash;
});

interface Route {
  /** The parts of the path, decoded. */
  readonly path: readonly string[];
  readonly query: Readonly<Record<string, string>>;
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export const route = computed<Route>(() => {
  const [path = '', query = ''] = hash.value.replace(/^#\/?/, '').split(/\?(.*)/s);
  return {
    path: path
      .split('/')
      .filter((part) => part !== '')
      .map(decode),
    query: Object.fromEntries(new URLSearchParams(query)),
  };
});

type Parameters = Readonly<Record<string, string | undefined>>;

/** A link within the console. */
export function link(path: readonly string[], query: Parameters = {}): string {
  const given = Object.entries(query).filter((entry): entry is [string, string] => (entry[1] ?? '') !== '');
  const search = new URLSearchParams(given).toString();
  return `#/${path.map((part) => encodeURIComponent(part)).join('/')}${search === '' ? '' : `?${search}`}`;
}

export function go(path: readonly string[], query: Parameters = {}): void {
  location.hash = link(path, query);
}

/** Changes parameters of the current link. The Back button undoes a change of filters. */
export function setQuery(change: Parameters): void {
  go(route.value.path, { ...route.value.query, ...change });
}
