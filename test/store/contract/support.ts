/** What the contract suites of the store share: they know no driver. */
import type { CertificateRow } from '../../../src/store/certificate-store.ts';
import type { Store, StoreOptions } from '../../../src/store/store.ts';
import { certificateRow, reservation } from '../rows.ts';

/** A database of the driver under test. */
export interface TestDatabase {
  /** Opens a store on it, which is closed when the test ends; the stores of several calls share the database. */
  open(now?: () => number, onCommit?: StoreOptions['onCommit']): Promise<Store>;
}

/** A new, empty database, which goes with the test. */
export type NewDatabase = () => TestDatabase;

/** Reserves and records a certificate. */
export async function issue(store: Store, more: Partial<CertificateRow> = {}): Promise<CertificateRow> {
  const intent = reservation({
    ...(more.ca === undefined ? {} : { ca: more.ca }),
    ...(more.label === undefined ? {} : { label: more.label }),
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
