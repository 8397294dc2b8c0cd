/** `scripts/test --nightly`: its list of steps, and their results. And what the scripts show of a step that takes long. */
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runAny } from './support/command.ts';
import { ROOT } from './support/root.ts';
import { removeFolder } from './support/folders.ts';

test('every step of the nightly run has a time limit, a unique name, and a command whose files exist', () => {
  const lines = readFileSync(join(ROOT, 'scripts/nightly-steps'), 'utf8').split('\n');
  const steps = lines.filter((line) => line !== '' && !line.startsWith('#'));
  expect(steps.filter((step) => !/^\d+[smh] [^:]+: \S/.test(step))).toEqual([]);
  const names = steps.map((step) => step.replace(/^\S+ ([^:]+):.*$/, '$1'));
  expect(new Set(names).size).toBe(names.length);
  const files = steps.flatMap((step) => [...step.matchAll(/\b(?:scripts|test)\/[\w./-]+/g)].map(([file]) => file));
  expect(files.filter((file) => !existsSync(join(ROOT, file)))).toEqual([]);
});

test('a step that fails or hangs does not stop those after it, and the run has failed', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'estuary-nightly-'));
  try {
    const list = join(folder, 'steps');
    const steps = [
      '120s good one: echo said',
      '# a comment',
      '120s bad: echo why; exit 3',
      '1s hangs: sleep 60',
      '120s last: true',
    ];
    writeFileSync(list, `${steps.join('\n')}\n`);
    const script = `set -euo pipefail; root=$0; failed=(); . "$root/scripts/lib/nightly.sh"
      run_nightly "$1" "$2"; summarize_nightly; printf 'FAILED: %s\\n' "\${failed[@]}"`;
    const { output, code } = await runAny('bash', ['-c', script, ROOT, list, folder]);
    expect(code).toBe(0);
    expect(output).toMatch(
      /good one +\d+ s {2}passed.*\n.*bad +\d+ s {2}failed with 3.*\n.*hangs +\d+ s {2}not done in 1s.*\n.*last +\d+ s {2}passed/,
    );
    expect(output).toContain('FAILED: bad\nFAILED: hangs\n');
    expect(readFileSync(join(folder, 'good-one.log'), 'utf8')).toBe('said\n');
  } finally {
    removeFolder(folder);
  }
});

test('a step that takes long shows that it still runs, how far it is, and its log; its exit code is kept', async () => {
  const script = `set -euo pipefail; root=$0; . "$root/scripts/lib/prepare.sh"; progress_interval=0.05
    counted() { echo "Copying: 3 of 7"; }
    quick() { found=here; }
    watched Quick '' quick; echo "found: $found"
    slow() { cat "$fifo"; return 3; }
    fifo=$(mktemp -u); mkfifo "$fifo"
    { { watched counted /a/log slow || echo "exit code $?"; } 2>&1 | { read -r line; echo "$line"; echo >"$fifo"; cat; }; }
    rm "$fifo"`;
  const { output, code } = await runAny('bash', ['-c', script, ROOT]);
  expect(output).toMatch(/^found: here\n# Copying: 3 of 7 … 0:0\d, log: \/a\/log\n/);
  expect(output).toContain('exit code 3\n');
  expect(code).toBe(0);
});
