/** README is short, every page is reachable, and every link of the documentation resolves. */
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

/** As GitHub makes them of headings. */
const anchorsOf = (page: string): string[] =>
  [...read(page).matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  );

describe('README', () => {
  test('has at most 150 lines', () => {
    expect(read('README.md').split('\n').length - 1).toBeLessThanOrEqual(150);
  });
});

describe('the documentation', () => {
  test.each(PAGES)('every link in %s leads to a file', (page) => {
    expect(linksOf(page).filter((target) => !existsSync(join(ROOT, target)))).toEqual([]);
  });

  test.each(PAGES)('every code block in %s ends where its list item does', (page) => {
    const fences = [...read(page).matchAll(/^( *)```/gm)].map(([, indentation]) => indentation);
    expect(fences.filter((_, index) => index % 2 === 0)).toEqual(fences.filter((_, index) => index % 2 === 1));
  });

  test.each(PAGES)('every link in %s to a heading leads to one', (page) => {
    const links = [...read(page).matchAll(/\]\(([^)#\s:]*\.md)?#([^)\s]+)\)/g)];
    const missing = links.filter(([, target, anchor = '']) => {
      const file = target === undefined ? page : join(dirname(page), target);
      return !anchorsOf(file).includes(anchor);
    });
    expect(missing.map(([link]) => link)).toEqual([]);
  });

  test('docs/README.md or README.md links to every page of docs/', () => {
    const linked = new Set([...linksOf('README.md'), ...linksOf('docs/README.md')]);
    const pages = PAGES.filter((page) => page.startsWith('docs/') && page !== 'docs/README.md');
    expect(pages.filter((page) => !linked.has(page))).toEqual([]);
  });
});
