/** A restore that root runs into a data folder of another user, with links and files of root in the way. */
import { spawn } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  lchownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runAny } from '../support/command.ts';
import { Estuary } from '../support/estuary.ts';
import { requires } from '../support/requires.ts';
import { NODE, SERVER, untilListening } from '../support/server-process.ts';

const SERVICE = { uid: 65534, gid: 65534 };

describe.skipIf(!requires('root'))('estuary restore as root', () => {
  let estuary: Estuary;
  const file = (...names: string[]): string => join(estuary.dir, ...names);
  const command = (...args: string[]) => runAny(NODE, [SERVER, ...args, '--config', file('est.toml')]);
  const asService = (...args: string[]) =>
    runAny('setpriv', [
      ...[`--reuid=${SERVICE.uid}`, `--regid=${SERVICE.gid}`, '--clear-groups'],
      ...[NODE, SERVER, ...args, '--config', file('est.toml')],
    ]);
  const give = (path: string): void => {
    lchownSync(path, SERVICE.uid, SERVICE.gid);
    if (!statSync(path).isDirectory()) return;
    for (const name of readdirSync(path)) give(join(path, name));
  };

  beforeAll(async () => {
    estuary = await Estuary.start({ built: true });
    await estuary.admin('POST', '/admin/otp', { client_id: 'device-1' });
    expect(await command('backup', '--to', file('backup'))).toMatchObject({ code: 0 });
    await estuary.server.stop();
    give(estuary.dir);
    chownSync(file('backup'), 0, 0);
    for (const name of readdirSync(file('backup'))) chownSync(file('backup', name), 0, 0);
    mkdirSync(file('outside'));
    for (const name of ['victim', 'other']) writeFileSync(file('outside', name), 'unchanged');
    // In the way: links that lead outside, and what root left.
    renameSync(file('data/est.db'), file('data/former.db'));
    symlinkSync(file('outside/victim'), file('data/est.db'));
    symlinkSync(file('outside/other'), file('data/est.db.restoring'));
    for (const name of ['est.db.lock', 'est.db-wal', 'otp-lookup.key', 'audit.log', 'audit.log.lock'])
      if (existsSync(file('data', name))) {
        chownSync(file('data', name), 0, 0);
        chmodSync(file('data', name), 0o600);
      } else writeFileSync(file('data', name), '', { mode: 0o600 });
    writeFileSync(file('data/otp-lookup.key'), 'k'.repeat(64));
  });
  afterAll(() => estuary.stop());

  test('doctor names the path that the service cannot open, and runs its other checks', async () => {
    const { code, output } = await asService('doctor');
    expect(code).toBe(1);
    expect(output).toMatch(/^failed +(?:file|store): .*data\/est\.db/m);
    expect(output).toMatch(/^ok +ca: devices/m);
    expect(output).toMatch(/^failed +disk: .*data\/est\.db: permission denied/m);
  });

  test('the store belongs to the owner of its folder, and nothing outside changes', async () => {
    expect(await command('restore', '--from', file('backup'))).toMatchObject({ code: 0 });
    expect(statSync(file('data/est.db'))).toMatchObject(SERVICE);
    expect(statSync(file('data/otp-lookup.key'))).toMatchObject(SERVICE);
    expect(readdirSync(file('outside')).toSorted()).toEqual(['other', 'victim']);
    for (const name of ['victim', 'other']) expect(readFileSync(file('outside', name), 'utf8')).toBe('unchanged');
  });

  test('--check warns of a folder that its user cannot write', async () => {
    chmodSync(file('data'), 0o500);
    const { code, output } = await asService('--check');
    chmodSync(file('data'), 0o700);
    for (const key of ['store.path', 'audit.file'])
      expect(output).toContain(`${key}: warning: cannot write to ${file('data')}: permission denied`);
    expect(code).toBe(0);
  });

  test('the service starts as that user', async () => {
    const child = spawn(NODE, [SERVER, '--config', file('est.toml')], {
      ...SERVICE,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const server = await untilListening(child);
    const names = readdirSync(file('data')).filter((name) => !name.includes('.replaced-'));
    expect(names.filter((name) => statSync(file('data', name)).uid !== SERVICE.uid)).toEqual([]);
    await server.stop();
  });
});
