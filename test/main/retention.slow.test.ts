import Database from 'better-sqlite3';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { verifyAudit } from '../../src/store/sqlite/read-audit.ts';
import { createLogger } from '../../src/log.ts';
import { purge } from '../../src/main/retention.ts';
import { event, issue, opened, otpRow, T0, temporaryPaths } from '../store/support.ts';
import { deviceRow } from '../store/rows.ts';

const DAY = 86_400_000;
const MONTH = 30 * DAY;

/** What a month brings, of each kind. */
const MONTHLY = 40;

test('over eight years of virtual time the database stops growing in steady state', { timeout: 300_000 }, async () => {
  const paths = temporaryPaths();
  let now = T0;
  const store = await opened(paths, () => now);
  const options = {
    config: {
      retention: { certificates: 90, tokens: 30, requests: 0, devices: 30, audit: 180 },
      audit: { file: paths.auditFile, archive: join(paths.folder, 'archive') },
      otp: { retry_window: 3600 },
    },
    store,
    log: createLogger('silent'),
    now: () => now,
  };
  const database = new Database(paths.path, { readonly: true });
  const pages: unknown[] = [];
  try {
    for (let month = 0; month < 96; month++) {
      await Promise.all(
        Array.from({ length: MONTHLY }, async (_, n) => {
          const id = `${month}-${n}`;
          const row = deviceRow({ id, not_after: now + MONTH });
          await store.putDevices([{ row, events: [event('device.created')] }], 'create');
          await store.insertOtp(otpRow({ expires_at: now + DAY, uses: n % 2 }), [event('otp.created')]);
          const { serial } = await issue(store, { not_before: now, not_after: now + 6 * MONTH, device_key: row.key });
          const revocation = { ca: 'devices', serial, revoked_at: now, reason: 'superseded', invalidity_date: null };
          if (n % 4 === 0) await store.revokeCertificate(revocation, [event('certificate.revoked')]);
          await store.auditDevice(row.key, [event('certificate.issued', { subject: `CN=device ${id}` })]);
        }),
      );
      const [number, this_update] = [await store.takeCrlNumber('devices'), now];
      await store.saveCrl({ ca: 'devices', number, this_update, next_update: now + DAY, der: Buffer.alloc(99) }, 0, []);
      now += MONTH;
      await purge(options);
      if (month % 12 === 11) pages.push(database.pragma('page_count', { simple: true }));
    }
  } finally {
    database.close();
  }
  // From the second year on as much leaves as comes: what is freed is used again.
  expect(Math.max(...pages.slice(2).map(Number))).toBeLessThanOrEqual(Number(pages[1]) * 1.03);
  expect(await verifyAudit({ storePath: paths.path, auditFile: paths.auditFile })).toMatchObject({
    ok: true,
    ahead: 0,
  });
});
