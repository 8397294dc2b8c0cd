/** How far a replacement campaign is (docs/guides/renewal.md). */
import type { AuditFilter, AuditStore } from '../store/audit-store.ts';
import type { CertificateSelection, CertificateStore, ListedCertificate } from '../store/certificate-store.ts';
import { allRows } from '../store/page.ts';
import type { RenewalRow, RenewalStore } from '../store/renewal-store.ts';

/** Overdue certificates that are named. */
export const REPORTED = 100;

export interface RenewalProgress {
  readonly total: number;
  readonly replaced: number;
  readonly waiting: number;
  readonly failed: number;
  readonly overdue: number;
  /** The first of them. */
  readonly overdueRows: readonly ListedCertificate[];
}

export type ProgressStore = Pick<CertificateStore & AuditStore, 'listCertificates' | 'listAudit'>;

/** Reads the certificates that were issued since, and then those that are meant. @throws what the store throws */
export async function progressOf(store: ProgressStore, row: RenewalRow, now: number): Promise<RenewalProgress> {
  const { selection, begins, due } = row;
  const { ca, label, labels } = selection;
  const [newer, later] = [new Set<string>(), new Set<string>()];
  for await (const one of everyCertificate(store, { ca, label, labels, issued_after: begins }, now)) {
    later.add(`${one.ca} ${one.serial}`);
    if (one.revoked_at === null) for (const key of identities(one)) newer.add(key);
  }
  const failures = await failedSince(store, { ca, labels, since: begins });
  let [replaced, waiting, failed, overdue] = [0, 0, 0, 0];
  const overdueRows: ListedCertificate[] = [];
  for await (const one of everyCertificate(store, selection, now)) {
    if (later.has(`${one.ca} ${one.serial}`)) continue;
    if (identities(one).some((key) => newer.has(key))) replaced++;
    else if (one.revoked_at !== null || one.not_after <= now) continue;
    else if (now > due) {
      overdue++;
      if (overdueRows.length < REPORTED) overdueRows.push(one);
    } else if (failures.has(one.subject)) failed++;
    else waiting++;
  }
  return { total: replaced + waiting + failed + overdue, replaced, waiting, failed, overdue, overdueRows };
}

/** The selected certificates, in pages of the store. @throws what the store throws */
export const everyCertificate = (
  store: Pick<CertificateStore, 'listCertificates'>,
  selection: CertificateSelection,
  now: number,
): AsyncGenerator<ListedCertificate> => allRows((page) => store.listCertificates({ ...selection, ...page }, now));

/** What a certificate and its replacement have in common: their names, or their device. */
export function identities({ ca, subject, sans, device_key }: ListedCertificate): readonly string[] {
  const names = JSON.stringify([ca, subject, ...sans.map((san) => san.toLowerCase()).sort()]);
  return device_key === null ? [names] : [names, JSON.stringify([ca, device_key])];
}

/** The subjects of requests that were rejected, or failed, at the same CA and labels. */
async function failedSince(
  store: ProgressStore,
  where: Pick<AuditFilter, 'ca' | 'labels' | 'since'>,
): Promise<ReadonlySet<string>> {
  const subjects = new Set<string>();
  for (const type of ['certificate.denied', 'certificate.failed'] as const)
    for await (const { subject } of allRows((page) => store.listAudit({ ...where, type, ...page })))
      if (subject !== undefined) subjects.add(subject);
  return subjects;
}

/** Reports once for each campaign that certificates are overdue. @throws what the store throws */
export async function reportOverdue(store: ProgressStore & RenewalStore, now: number): Promise<void> {
  for (const row of await store.listRenewals()) {
    if (row.overdue_at !== null || now <= row.due) continue;
    const { overdue } = await progressOf(store, row, now);
    const { id, selection } = row;
    const ca = selection.ca === undefined ? {} : { ca: selection.ca };
    const detail = `${overdue} certificates of campaign ${id} are overdue`;
    await store.noteOverdue(
      id,
      now,
      overdue === 0 ? [] : [{ ...ca, type: 'renewal.overdue', outcome: 'failure', detail }],
    );
  }
}
