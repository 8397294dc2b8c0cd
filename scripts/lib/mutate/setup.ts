/** In each test file, before it is imported: where the mutants that it reaches are noted, and under which test. */
import './switch.ts';
import { createHash } from 'node:crypto';
import { appendFileSync } from 'node:fs';
import { afterEach, beforeEach, expect } from 'vitest';

const folder = process.env['ESTUARY_MUTANTS_FOLDER'];
if (folder !== undefined) {
  const { testPath = '' } = expect.getState();
  const list = `${folder}/${createHash('sha1').update(testPath).digest('hex')}`;
  appendFileSync(list, `file\t${testPath}\n`);
  process.env['ESTUARY_MUTANTS_REACHED'] = list;
  globalThis.__mutantTest = undefined;
  beforeEach(({ task }) => {
    globalThis.__mutantTest = task.fullTestName;
  });
  afterEach(() => {
    globalThis.__mutantTest = undefined;
  });
}
