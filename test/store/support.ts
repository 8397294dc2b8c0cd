import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { openStore } from '../../src/store/sqlite/open.ts';
import type { CertificateRow } from '../../src/store/certificate-store.ts';
import type { Store } from '../../src/store/store.ts';
import { certificateRow, reservation } from './rows.ts';

export { certificateRow, event, otpRow, requestRow, reservation, T0 } from './rows.ts';

export interface Paths {
  readonly folder: string;
  readonly path: string;
  readonly auditFile: string;
}

/** Names for a database and an audit file in a folder that goes with the test. */
export function temporaryPaths(): Paths {
  const folder = mkdtempSync(join(tmpdir(), 'estuary-store-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return { folder, path: join(folder, 'est.db'), auditFile: join(folder, 'audit.log') };
}

/** Opens a store that is closed when the test ends. */
export async function opened(paths: Paths, now?: () => number): Promise<Store> {
  const store = await openStore({ ...paths, ...(now === undefined ? {} : { now }) });
  onTestFinished(() => store.close());
  return store;
}

/** Reserves and records a certificate. */
export async function issue(store: Store, more: Partial<CertificateRow> = {}): Promise<CertificateRow> {
  const intent = reservation({
    ...(more.ca === undefined ? {} : { ca: more.ca }),
    ...(more.serial === undefined ? {} : { serial: more.serial }),
  });
  const result = await store.reserve(intent, []);
  if (result !== 'reserved') throw new Error(result);
  const row = certificateRow(intent, more);
  await store.recordCertificate(row, []);
  return row;
}

/** The types of all audit records, in order. */
export async function auditTypes(store: Store): Promise<string[]> {
  return (await store.listAudit({ limit: 1000 })).items.map((record) => record.type);
}
