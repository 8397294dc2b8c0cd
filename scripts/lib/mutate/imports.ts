/** Which files a file imports, directly or not. */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

const direct = new Map<string, readonly string[]>();

function importsOf(file: string): readonly string[] {
  let found = direct.get(file);
  if (found === undefined) {
    const text = readFileSync(file, 'utf8');
    found = [...text.matchAll(/(?:from|import)\s*\(?\s*'(\.[^']+)'/g)]
      .map(([, path = '']) => resolve(dirname(file), path))
      .filter((path) => existsSync(path) && path.endsWith('.ts'));
    direct.set(file, found);
  }
  return found;
}

export function reachableFrom(file: string): ReadonlySet<string> {
  const seen = new Set<string>();
  const open = [file];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (seen.has(next)) continue;
    seen.add(next);
    open.push(...importsOf(next));
  }
  return seen;
}
