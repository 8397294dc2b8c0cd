/** Issue 16.5: `estuary doctor` beside a running server. */
import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runAny } from '../../support/command.ts';
import { Estuary } from '../../support/estuary.ts';
import { NODE, SERVER } from '../../support/server-process.ts';

let estuary: Estuary;
beforeAll(async () => {
  estuary = await Estuary.start();
}, 120_000);
afterAll(() => estuary.stop());

const doctor = (...more: string[]) =>
  runAny(NODE, [SERVER, 'doctor', '--config', join(estuary.dir, 'est.toml'), ...more]);

test('issue 16.5: finds nothing wrong with a server in order, and what is wrong with its database', async () => {
  const good = await doctor('--json');
  expect(JSON.parse(good.stdout.toString('utf8'))).toMatchObject({ ok: true });
  expect(good.code).toBe(0);
  chmodSync(join(estuary.dir, 'data/est.db'), 0o644);
  const bad = await doctor();
  expect(bad.output).toMatch(/^failed +permissions: .*est\.db/m);
  expect(bad.code).toBe(1);
});
