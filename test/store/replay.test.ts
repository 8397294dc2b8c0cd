/** Facts of audit records that a restore cannot use cost nothing but themselves. */
import { expect, test } from 'vitest';
import { chain, type ParsedRecord, parseLine } from '../../src/audit/record.ts';
import type { AuditEvent } from '../../src/audit/event.ts';
import { runAtOnce } from '../../src/store/port.ts';
import { replayer } from '../../src/store/replay.ts';
import { openWritable } from '../../src/store/sqlite/database.ts';
import { SqlitePort } from '../../src/store/sqlite/port.ts';
import { temporaryFolder } from '../support/openssl.ts';
import { T0 } from './rows.ts';

function record(event: AuditEvent): ParsedRecord {
  const parsed = parseLine(chain({ seq: 0, hash: '0'.repeat(64) }, event, T0).line);
  if (parsed === undefined) throw new Error('not a record');
  return parsed;
}

test('a restore ignores malformed times, and numbers that are not whole', () => {
  const db = openWritable(temporaryFolder().file('est.db'));
  const { apply, replayed } = replayer(new SqlitePort(db));
  const certificate = { ca: 'devices', serial: '0a', certificate_not_after: 'never' };
  const success = { outcome: 'success' } as const;
  for (const event of [
    { ...success, ...certificate, type: 'certificate.issued' },
    { ...success, ...certificate, type: 'certificate.revoked', revocation_reason: 'x', invalidity_date: '1e400' },
    { ...success, type: 'otp.changed', token: 't', token_expires_at: '' },
    { ...success, type: 'crl.issued', ca: 'devices', crl_number: 1.5 },
  ] satisfies AuditEvent[])
    runAtOnce(apply(record(event)));
  expect(Object.fromEntries(replayed.applied)).toEqual({ 'certificates issued': 1, revocations: 1 });
  const kept = db.prepare('SELECT not_after, invalidity_date, reason FROM certificate').get();
  expect(kept).toEqual({ not_after: T0 + 3650 * 86_400_000, invalidity_date: null, reason: 'unspecified' });
  expect(db.prepare('SELECT * FROM crl').all()).toEqual([]);
  db.close();
});
