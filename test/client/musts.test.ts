/** docs/reference/client-conformance.md ties each of RFC 7030's MUSTs for clients to a test. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ROOT } from '../support/root.ts';

const page = readFileSync(join(ROOT, 'docs/reference/client-conformance.md'), 'utf8');
const section = page.split(/^## /m).find((part) => part.startsWith("RFC 7030's MUSTs")) ?? '';
const rows = section
  .split('\n')
  .filter((line) => line.startsWith('|'))
  .slice(2)
  .map((line) => line.split('|').map((cell) => cell.trim()));

describe("RFC 7030's MUSTs for clients", () => {
  test('stand in the table', () => expect(rows.length).toBeGreaterThan(20));

  test.each(rows.map(([, paragraph = '', must = '', proof = '']) => ({ paragraph, must, proof })))(
    '§$paragraph: $must',
    ({ proof }) => {
      const proofs = [...proof.matchAll(/`([^`]+)` "([^"]+)"/g)];
      expect(proofs.length).toBeGreaterThan(0);
      for (const [, file = '', name = ''] of proofs) expect(readFileSync(join(ROOT, file), 'utf8')).toContain(name);
    },
  );
});
