/** Progress of blocking work. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { ROOT } from '../../support/root.ts';
import { NODE } from '../../support/server-process.ts';
import { removeFolder } from '../../support/folders.ts';
import { until } from '../../support/until.ts';

test('how far a file is that something writes which blocks the thread', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'estuary-growth-'));
  onTestFinished(() => removeFolder(folder));
  const file = join(folder, 'half');
  writeFileSync(file, Buffer.alloc(2_000_000));
  const script = `import { readSync } from 'node:fs';
import { showGrowth } from '${ROOT}/src/main/commands/growth.ts';
const end = showGrowth({ file: '${file}', total: 4_000_000, what: 'copying' }, { err: (text) => process.stderr.write(text) });
readSync(0, Buffer.alloc(1));
await end();`;
  writeFileSync(join(folder, 'blocking.mjs'), script);
  const child = spawn(NODE, [join(folder, 'blocking.mjs')], { stdio: ['pipe', 'ignore', 'pipe'] });
  const closed = once(child, 'close');
  let output = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (output += text));
  // Its thread is blocked until its standard input ends.
  await until('a line of progress', () => output.includes('\n'));
  child.stdin.end();
  await closed;
  expect(output).toMatch(/^copying: 50 %, 2 of 4 MB, about \d+ s left\n$/);
});
