/** The short form of what `scripts/test --nightly` does with a million certificates: that it goes through, not what it takes. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ROOT } from '../../support/root.ts';

test('scripts/bench search measures all lists, an enrollment, CRLs and a start of the server', async () => {
  const options = ['search', '--certificates', '2000', '--tokens', '200', '--devices', '200', '--records', '10000'];
  // It exits with 1 where something was slow, which is not asked for here.
  const output = await new Promise<string>((resolve) => {
    execFile(join(ROOT, 'scripts/bench'), options, { timeout: 280_000 }, (_error, stdout, stderr) =>
      resolve(`${stdout}\n${stderr}`),
    );
  });
  for (const row of [
    'the indexes of audit records',
    'all names indexed behind',
    'audit request_id=',
    'an enrollment',
    'the next CRL',
  ])
    expect(output).toContain(row);
  expect(output).toMatch(/^the server started /m);
});
