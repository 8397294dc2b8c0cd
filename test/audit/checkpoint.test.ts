/** Signed checkpoints of the audit log, and what they detect. */
import Database from 'better-sqlite3';
import { createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { CheckpointKey, exportedCheckpoints } from '../../src/audit/checkpoint.ts';
import type { Checkpoint } from '../../src/audit/event.ts';
import { chain, GENESIS_HASH, parseLine, type ChainHead } from '../../src/audit/record.ts';
import type { AuditVerdict } from '../../src/audit/chain-check.ts';
import { verifyAudit, type VerifyOptions } from '../../src/store/sqlite/read-audit.ts';
import { createLogger } from '../../src/log.ts';
import { checkpointing } from '../../src/main/node-tasks.ts';
import { openStore } from '../../src/store/sqlite/open.ts';
import { event, type Paths, temporaryPaths } from '../store/support.ts';

const privateKey = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
const keyOf = (key: KeyObject): CheckpointKey =>
  new CheckpointKey(createPublicKey(key).export({ format: 'der', type: 'spki' }));
const key = keyOf(privateKey);

interface Written extends Paths {
  /** The checkpoints that were made, in their order. */
  readonly checkpoints: readonly Checkpoint[];
}

/** A closed store with three records, a checkpoint, two records, a checkpoint, and one more. */
async function written(): Promise<Written> {
  const paths = temporaryPaths();
  const store = await openStore(paths);
  const log = createLogger('silent');
  const checkpoint = checkpointing(store, 'node-1', log, privateKey);
  for (const count of [3, 2]) {
    for (let n = 0; n < count; n++) await store.audit([event('auth.otp', { subject: `CN=device-${n}` })]);
    await checkpoint();
    await checkpoint();
  }
  await store.audit([event('admin.access')]);
  await store.close();
  return { ...paths, checkpoints: exportedCheckpoints(readFileSync(paths.auditFile, 'utf8')) };
}

const verify = (paths: Paths, more: Partial<VerifyOptions> = {}): Promise<AuditVerdict> =>
  verifyAudit({ storePath: paths.path, auditFile: paths.auditFile, key, ...more });

/** Rewrites the whole chain in store and file, as an attacker without the key could. */
function rewrite(paths: Paths, change: (line: string) => string | undefined): void {
  let head: ChainHead = { seq: 0, hash: GENESIS_HASH };
  const records = readFileSync(paths.auditFile, 'utf8')
    .trimEnd()
    .split('\n')
    .flatMap((line) => {
      const changed = change(line);
      if (changed === undefined) return [];
      const { time, ...fields } = JSON.parse(changed) as Parameters<typeof chain>[1] & { time: string };
      const record = chain(head, fields, Date.parse(time));
      head = record;
      return [record];
    });
  const file = records.map(({ line }) => `${line}\n`).join('');
  writeFileSync(paths.auditFile, file);
  const db = new Database(paths.path);
  db.exec('DELETE FROM audit');
  const insert = db.prepare('INSERT INTO audit (seq, time, type, line) VALUES (?, ?, ?, ?)');
  for (const { seq, time, type, line } of records) insert.run(seq, time, type, line);
  db.prepare('UPDATE audit_head SET seq = ?, hash = ?, file_size = ?').run(head.seq, head.hash, file.length);
  db.close();
}

describe('checkpoints', () => {
  test('are made of the newest record, once, and verify with their key', async () => {
    const log = await written();
    expect(log.checkpoints.map(({ seq }) => seq)).toEqual([3, 6]);
    await expect(verify(log)).resolves.toMatchObject({ ok: true, records: 8, checkpoints: 2 });
    await expect(verify(log, { kept: log.checkpoints })).resolves.toMatchObject({ ok: true, kept: 2 });
    await expect(verify(log, { key: undefined })).resolves.not.toHaveProperty('checkpoints');
  });

  test('of another key are found', async () => {
    const log = await written();
    const other = keyOf(generateKeyPairSync('ed25519').privateKey);
    await expect(verify(log, { key: other })).resolves.toMatchObject({ ok: false, seq: 4 });
  });

  test.each<[string, (line: string) => string | undefined]>([
    ['with a changed record before it', (line) => line.replace('CN=device-1', 'CN=nobody')],
    ['without a record before it', (line) => (line.includes('CN=device-0') ? undefined : line)],
  ])('do not fit a chain that was written anew %s', async (_, change) => {
    const log = await written();
    rewrite(log, change);
    await expect(verify(log, { key: undefined })).resolves.toMatchObject({ ok: false });
  });

  test.each<[string, (line: string) => string | undefined]>([
    ['written anew without its checkpoints', (line) => (line.includes('"checkpoint"') ? undefined : line)],
    ['cut behind the first record', (line) => (line.startsWith('{"seq":1,') ? line : undefined)],
  ])('that were kept elsewhere find a chain that was %s', async (_, change) => {
    const log = await written();
    rewrite(log, (line) => change(line)?.replace('CN=device-1', 'CN=nobody'));
    await expect(verify(log)).resolves.toMatchObject({ ok: true, checkpoints: 0 });
    await expect(verify(log, { kept: log.checkpoints })).resolves.toMatchObject({ ok: false });
  });

  test('that were kept elsewhere are checked themselves', async () => {
    const log = await written();
    const kept = log.checkpoints.map((checkpoint) => ({ ...checkpoint, seq: checkpoint.seq + 1 }));
    await expect(verify(log, { kept })).resolves.toMatchObject({ ok: false, seq: null });
  });

  test('are found among lines of the log and of the audit file, and nowhere else', () => {
    const checkpoint = { seq: 1, hash: 'a', signature: 'b' };
    const lines = ['', 'no JSON with "checkpoint"', JSON.stringify({ level: 30, checkpoint }), '{"checkpoint":1}'];
    expect(exportedCheckpoints(lines.join('\n'))).toEqual([checkpoint]);
    expect(() => exportedCheckpoints('{}')).toThrow('it contains no checkpoint');
  });

  test('stand in the record as they were signed', async () => {
    const log = await written();
    const lines = readFileSync(log.auditFile, 'utf8').trimEnd().split('\n');
    expect(parseLine(lines[3] ?? '')).toMatchObject({ type: 'audit.checkpoint', checkpoint: log.checkpoints[0] });
  });
});
