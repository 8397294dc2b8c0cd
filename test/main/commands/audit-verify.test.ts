/** `estuary audit verify` with signed checkpoints. */
import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { copyFileSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createLogger } from '../../../src/log.ts';
import { Checkpoints } from '../../../src/main/checkpoints.ts';
import { runCommand } from '../../../src/main/commands/run-command.ts';
import { COMMANDS } from '../../../src/main/commands/table.ts';
import { openStore } from '../../../src/store/sqlite/open.ts';
import { toml } from '../../config/support.ts';
import { temporaryFolder } from '../../support/openssl.ts';
import { textOf } from '../../support/command.ts';

const folder = temporaryFolder();
const { file } = folder;

beforeAll(async () => {
  writeFileSync(file('est.toml'), toml('[audit]\ncheckpoint_interval = 60\ncheckpoint_key = "checkpoint.key"'));
  const { privateKey } = generateKeyPairSync('ed25519');
  writeFileSync(file('checkpoint.key'), privateKey.export({ format: 'pem', type: 'pkcs8' }), { mode: 0o600 });
  writeFileSync(file('checkpoint.pub'), createPublicKey(privateKey).export({ format: 'pem', type: 'spki' }));
  const other = generateKeyPairSync('ed25519').publicKey;
  writeFileSync(file('other.pub'), other.export({ format: 'pem', type: 'spki' }));
  const store = await openStore({ path: file('data/est.db'), auditFile: file('data/audit.log') });
  const checkpoints = new Checkpoints({
    store,
    node: 'node-1',
    log: createLogger('silent'),
    privateKey,
    interval: 60_000,
  });
  await store.audit([{ type: 'admin.access', outcome: 'success' }]);
  await checkpoints.make();
  await store.close();
  copyFileSync(file('data/audit.log'), file('kept.jsonl'));
});
afterAll(() => folder.remove());

async function verify(...args: readonly string[]): Promise<{ code: number; out: string; err: string }> {
  let out = '';
  let err = '';
  const words = ['audit', 'verify', '--config', file('est.toml'), ...args];
  const code = await runCommand({ name: 'estuary', commands: COMMANDS }, words, {
    env: {},
    out: (text) => (out += textOf(text)),
    err: (text) => (err += text),
    now: Date.now,
    signals: { pass: () => undefined, release: () => undefined },
  });
  return { code, out, err };
}

test('looks at signatures with the key of the configuration, or the one that is named', async () => {
  const expected = { code: 0, out: 'the audit log is whole: 2 records; 1 signed checkpoints\n', err: '' };
  expect(await verify()).toEqual(expected);
  expect(await verify('--checkpoint-key', file('checkpoint.pub'))).toEqual(expected);
});

test('another key is found, with exit code 1', async () => {
  const { code, err } = await verify('--checkpoint-key', file('other.pub'));
  expect([code, err]).toEqual([1, 'audit record 2 is broken: the checkpoint in record 2 has another signature\n']);
});

test('holds the log against checkpoints that were kept', async () => {
  expect((await verify('--checkpoint', file('kept.jsonl'))).out).toContain('it agrees with 1 that were kept');
  writeFileSync(file('moved.jsonl'), readFileSync(file('kept.jsonl'), 'utf8').replaceAll('"seq":1,', '"seq":9,'));
  const { code, err } = await verify('--checkpoint', file('moved.jsonl'));
  expect([code, err]).toEqual([1, 'the audit log is broken: the kept checkpoint of record 9 has another signature\n']);
});

test.each([
  [['--checkpoint', 'nowhere'], /--checkpoint: nowhere: ENOENT/],
  [['--checkpoint', file('checkpoint.pub')], /--checkpoint: .*it holds no checkpoint/],
  [['--checkpoint-key', 'nowhere'], /--checkpoint-key: nowhere: ENOENT/],
  [['--checkpoint-key', file('est.toml')], /--checkpoint-key: /],
])('a command line with %j is refused', async (args, message) => {
  const { code, err } = await verify(...args);
  expect(code).toBe(1);
  expect(err).toMatch(message);
});

test('without the key at hand signatures are not looked at', async () => {
  renameSync(file('checkpoint.key'), file('elsewhere.key'));
  expect((await verify()).out).toBe('the audit log is whole: 2 records\n');
});
