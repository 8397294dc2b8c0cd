// Exits 0 when node_modules/ holds what package-lock.json asks for, else 1 with the first difference on stderr.
// Packages for other platforms, and optional ones that could not be built here, may be absent, except those named as arguments. Runs on any Node ≥ 20.
import { existsSync, readFileSync } from 'node:fs';

function packages(file) {
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')).packages : {};
}

const needed = new Set(process.argv.slice(2).map((name) => `node_modules/${name}`));
const installed = packages('node_modules/.package-lock.json');

function difference([path, wanted]) {
  if (path === '' || wanted.link) return undefined;
  const present = installed[path];
  if (present === undefined || !existsSync(path)) {
    const dispensable = (wanted.optional || wanted.devOptional) && !needed.has(path);
    return dispensable ? undefined : `${path} is missing`;
  }
  return present.version === wanted.version ? undefined : `${path} is ${present.version}, not ${wanted.version}`;
}

const first = Object.entries(packages('package-lock.json'))
  .map(difference)
  .find((text) => text !== undefined);
if (first !== undefined) {
  console.error(first);
  process.exitCode = 1;
}
