/** The front door: README is short, every page is reachable, and every link of the documentation leads somewhere. */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ROOT } from './support/root.ts';

const read = (page: string): string => readFileSync(join(ROOT, page), 'utf8');
const PAGES = [
  ...globSync('*.md', { cwd: ROOT }),
  ...globSync(['docs/**/*.md', 'examples/**/*.md'], { cwd: ROOT }),
].sort();

/** The files that a page links to, relative to the repository. */
const linksOf = (page: string): string[] =>
  [...read(page).matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)]
    .map(([, target = '']) => target)
    .filter((target) => !/^[a-z]+:/.test(target))
    .map((target) => join(dirname(page), target));

describe('README', () => {
  test('has at most 150 lines', () => {
    expect(read('README.md').split('\n').length - 1).toBeLessThanOrEqual(150);
  });
});

describe('the documentation', () => {
  test.each(PAGES)('every link in %s leads to a file', (page) => {
    expect(linksOf(page).filter((target) => !existsSync(join(ROOT, target)))).toEqual([]);
  });

  test('docs/README.md or README.md links to every page of docs/', () => {
    const linked = new Set([...linksOf('README.md'), ...linksOf('docs/README.md')]);
    const pages = PAGES.filter((page) => page.startsWith('docs/') && page !== 'docs/README.md');
    expect(pages.filter((page) => !linked.has(page))).toEqual([]);
  });
});
