/**
 * Host names are looked up by threads of Node's pool (getaddrinfo, which reads the hosts file), and a name whose DNS does
 * not answer holds one for many seconds. Equal lookups share one thread, so a dependency holds at most one for each of
 * its hosts.
 */
import dns from 'node:dns';
import { syncBuiltinESMExports } from 'node:module';
import { promisify } from 'node:util';

type Done = (...answer: readonly unknown[]) => void;
type Lookup = (...all: readonly unknown[]) => unknown;

/** @returns a lookup that calls `lookup` once for all equal ones in progress */
export function sharedLookup(lookup: Lookup): (host: string, ...rest: readonly unknown[]) => unknown {
  const underWay = new Map<string, Done[]>();
  return (host, ...rest) => {
    const done = rest.at(-1);
    const given = rest.length > 1 ? rest[0] : {};
    const options = typeof given === 'number' ? { family: given } : given;
    // Node's own errors for wrong arguments.
    if (typeof host !== 'string' || typeof done !== 'function' || typeof options !== 'object' || options === null)
      return lookup(host, ...rest);
    const answered = done as Done;
    const key = JSON.stringify([host.toLowerCase(), Object.entries(options).sort()]);
    const waiting = underWay.get(key);
    if (waiting !== undefined) {
      waiting.push(answered);
      return {};
    }
    underWay.set(key, [answered]);
    return lookup(host, options, (...answer: readonly unknown[]) => {
      const all = underWay.get(key) ?? [];
      underWay.delete(key);
      for (const done of all) done(...answer);
    });
  };
}

/** For all connections of this process, whichever library opens them. */
export function shareLookups(): void {
  const { lookup } = dns;
  const shared = sharedLookup((...all): unknown => Reflect.apply(lookup, dns, all));
  Object.defineProperty(shared, promisify.custom, { value: Reflect.get(lookup, promisify.custom) });
  Object.assign(dns, { lookup: shared });
  syncBuiltinESMExports();
}
