/** The README's status table: a row stands only when a test proves it. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ROOT } from './support/root.ts';

const README = readFileSync(join(ROOT, 'README.md'), 'utf8');

interface Row {
  readonly feature: string;
  readonly proof: string;
}

function statusRows(): Row[] {
  const section = README.split(/^## /m).find((part) => part.startsWith('Status')) ?? '';
  const lines = section
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .slice(2);
  return lines.map((line) => {
    const [feature = '', proof = ''] = line
      .split('|')
      .slice(1)
      .map((cell) => cell.trim());
    return { feature, proof };
  });
}

/** `` `test/a.test.ts` `` or `` `test/a.test.ts` "words of a test's name" `` */
const PROOF = /`([^`]+)`(?: "([^"]+)")?/g;

const rows = statusRows();

describe("the README's status table", () => {
  test('has a row for each feature, none twice', () => {
    expect(rows.length).toBeGreaterThan(40);
    expect(new Set(rows.map((row) => row.feature)).size).toBe(rows.length);
  });

  test.each(rows.filter((row) => row.proof !== 'not built yet'))('$feature: $proof', ({ proof }) => {
    const proofs = [...proof.matchAll(PROOF)];
    expect(proofs.length).toBeGreaterThan(0);
    // Nothing but proofs, separated by commas: no "partly", no "soon".
    expect(proof.replace(PROOF, '').replace(/[, ]/g, '')).toBe('');
    for (const [, file = '', name] of proofs) {
      expect(existsSync(join(ROOT, file)), `${file} exists`).toBe(true);
      const text = readFileSync(join(ROOT, file), 'utf8');
      expect(text, `${file} holds tests`).toMatch(/^ *(test|it)\b/m);
      if (name !== undefined) expect(text).toContain(name);
    }
  });
});

describe('every link of the documentation', () => {
  const docs = existsSync(join(ROOT, 'docs')) ? readdirSync(join(ROOT, 'docs')).map((name) => `docs/${name}`) : [];
  const pages = ['README.md', ...docs.filter((name) => name.endsWith('.md'))];

  test.each(pages)('in %s leads somewhere', (page) => {
    const text = readFileSync(join(ROOT, page), 'utf8');
    const targets = [...text.matchAll(/\]\(([^)#]+)(?:#[^)]*)?\)/g)].map((match) => match[1] ?? '');
    const local = targets.filter((target) => !/^[a-z]+:/.test(target));
    expect(local.filter((target) => !existsSync(join(ROOT, page, '..', target)))).toEqual([]);
  });
});
