/** Progress of blocking work. */
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { runAny } from '../../support/command.ts';
import { ROOT } from '../../support/root.ts';
import { NODE } from '../../support/server-process.ts';
import { removeFolder } from '../../support/folders.ts';

test('how far a file is that something writes which blocks the thread', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'estuary-growth-'));
  onTestFinished(() => removeFolder(folder));
  const file = join(folder, 'half');
  writeFileSync(file, Buffer.alloc(2_000_000));
  const script = `import { showGrowth } from '${ROOT}/src/main/commands/growth.ts';
const end = showGrowth({ file: '${file}', total: 4_000_000, what: 'copying' }, { err: (text) => process.stderr.write(text) });
Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20_000);
await end();`;
  writeFileSync(join(folder, 'blocking.mjs'), script);
  expect((await runAny(NODE, [join(folder, 'blocking.mjs')])).output).toMatch(
    /^(copying: 50 %, 2 of 4 MB, about \d+ s left\n)+$/,
  );
});
