/** A lost lookup key is reported by the command, before a start and by --check; the key of sha256-hmac is created. */
import { renameSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runAny, type CommandResult } from '../support/command.ts';
import { makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { Estuary, section } from '../support/estuary.ts';
import { NODE, SERVER } from '../support/server-process.ts';

let estuary: Estuary;
let token: string;
const wire = onTheWire(simpleCsr(makeKey(), 'device-1'));
const estuaryCommand = (...args: string[]): Promise<CommandResult> =>
  runAny(NODE, [SERVER, '--config', join(estuary.dir, 'est.toml'), ...args]);

beforeAll(async () => {
  estuary = await Estuary.start();
  ({ token } = await estuary.otp());
  await estuary.server.stop();
});
afterAll(() => estuary.stop());

test('without the key --check and a start refuse with one line that says what to do; with it the token works', async () => {
  const file = join(estuary.dir, 'data/otp-lookup.key');
  renameSync(file, `${file}.kept`);
  for (const [expected, ...args] of [[2, '--check'], [1]] as const) {
    const { code, output } = await estuaryCommand(...args);
    expect(code).toBe(expected);
    expect(output).toContain(
      `est.toml: otp.lookup_key: ${file} is missing, and some valid tokens need the previous key`,
    );
    expect(output).not.toContain(token);
  }
  renameSync(`${file}.kept`, file);
  expect((await estuaryCommand('--check')).code).toBe(0);
  await estuary.restart();
  expect((await estuary.enroll(wire, { password: token })).status).toBe(200);
});

test('the way out: with otp.enabled = false the server starts, and the tokens can be revoked', async () => {
  const { id } = await estuary.otp();
  await estuary.server.stop();
  const file = join(estuary.dir, 'data/otp-lookup.key');
  renameSync(file, `${file}.kept`);
  const enable = (enabled: boolean): void =>
    estuary.reconfigure((config) => {
      section(config, 'otp')['enabled'] = enabled;
    });
  enable(false);
  await estuary.restart();
  expect((await estuary.admin('DELETE', `/admin/otp/${id}`)).status).toBe(204);
  await estuary.server.stop();
  enable(true);
  await estuary.restart();
  const fresh = await estuary.otp();
  expect((await estuary.enroll(wire, { password: fresh.token })).status).toBe(200);
});

test('sha256-hmac without a key: a SQLite store gets one next to it, for its owner only, and keeps it', async () => {
  await estuary.server.stop();
  estuary.reconfigure((config) => {
    const otp = section(config, 'otp');
    delete otp['hmac_key_file'];
    otp['hash_algorithm'] = 'sha256-hmac';
  });
  await estuary.restart();
  const file = statSync(join(estuary.dir, 'data/otp-hmac.key'));
  expect([file.mode & 0o777, file.size]).toEqual([0o600, 32]);
  const { token: kept } = await estuary.otp();
  await estuary.server.stop();
  await estuary.restart();
  expect((await estuary.enroll(wire, { password: kept })).status).toBe(200);
});
