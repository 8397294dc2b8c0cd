import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { configReference } from '../../scripts/lib/config-reference.ts';
import { configFolder } from './support.ts';
import { ROOT } from '../support/root.ts';

test('docs/reference/configuration.md is what the schema says (npm run docs:config)', async () => {
  expect(await readFile(join(ROOT, 'docs/reference/configuration.md'), 'utf8')).toBe(configReference());
});

test('the small configuration of docs/reference/configuration.md is accepted', async () => {
  const example = /```toml\n([^]*?)```/.exec(configReference())?.[1] ?? '';
  const folder = await configFolder();
  try {
    expect(await folder.problems(example.replace('<64 hex digits>', 'a'.repeat(64)))).toEqual([]);
  } finally {
    folder.remove();
  }
});

test.each(['server', 'est', 'tls', 'admin', 'otp', 'gssapi', 'serverkeygen', 'publication', 'store', 'audit', 'log'])(
  'the reference has a section for [%s]',
  (section) => {
    expect(configReference()).toContain(`\n## \`[${section}]\`\n`);
  },
);
