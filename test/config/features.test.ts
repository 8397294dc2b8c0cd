import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { MISSING_FEATURES } from '../../src/config/features.ts';
import { configFolder, toml } from './support.ts';
import type { ConfigFolder } from './support.ts';

let folder: ConfigFolder;
beforeAll(async () => {
  folder = await configFolder();
});
afterAll(() => folder.remove());

/** A configuration that asks for the feature of a row. */
function asking(key: string, value: string | boolean): string {
  const [section = '', ...rest] = key.split('.');
  const name = rest.join('.');
  if (section !== 'ca') return toml(`[${section}]\n${name === '' ? '' : `${name} = ${JSON.stringify(value)}`}`);
  return toml().replace(
    'driver = "file"',
    name === 'driver' ? `driver = "${value}"` : `driver = "file"\n${name} = ${JSON.stringify(value)}`,
  );
}

describe('issue 2.3: a feature that is not there yet is refused with a clear sentence', () => {
  test.each(MISSING_FEATURES)('$key: $feature', async ({ key, value, feature, allowed }) => {
    const lines = await folder.problems(asking(key, value ?? true));
    const path = key.replace(/^ca\./, 'ca[0].');
    const line = lines.find((one) => one.startsWith(`est.toml: ${path}: `));
    expect(line).toContain(`${feature} is not part of this version (${allowed})`);
  });

  test('the switch of a missing feature may be off', async () => {
    const off =
      '[est]\nfullcmc = false\nserverkeygen = false\n[gssapi]\nenabled = false\n[publication]\nenabled = false';
    expect(await folder.problems(toml(off))).toEqual([]);
  });
});
