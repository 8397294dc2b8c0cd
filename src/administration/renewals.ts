/** How far a replacement campaign is (docs/guides/renewal.md). */
import type { CertificateSelection, CertificateStore, ListedCertificate } from '../store/certificate-store.ts';
import { allPages, allRows } from '../store/page.ts';
import type { RenewalRow, RenewalStore } from '../store/renewal-store.ts';

/** Certificates of each kind that are named. */
export const NAMED = 100;

type Unreplaced = 'waiting' | 'failed' | 'overdue';

export interface RenewalProgress extends Readonly<Record<Unreplaced, number>> {
  readonly total: number;
  readonly replaced: number;
  /** The first of each. */
  readonly rows: Readonly<Record<Unreplaced, readonly ListedCertificate[]>>;
}

export type ProgressStore = Pick<CertificateStore & RenewalStore, 'listCertificates' | 'listSuccessions'>;

/** How far a campaign is, as far as the holders are derived. @throws what the store throws */
export async function progressOf(store: ProgressStore, row: RenewalRow, now: number): Promise<RenewalProgress> {
  const { selection, begins, due } = row;
  const counts = { replaced: 0, waiting: 0, failed: 0, overdue: 0 };
  const rows: Record<Unreplaced, ListedCertificate[]> = { waiting: [], failed: [], overdue: [] };
  const count = (certificate: ListedCertificate, failed_at: number | null): void => {
    if (certificate.revoked_at !== null || certificate.not_after <= now) return;
    const kind = now > due ? 'overdue' : (failed_at ?? -Infinity) >= begins ? 'failed' : 'waiting';
    counts[kind]++;
    if (rows[kind].length < NAMED) rows[kind].push(certificate);
  };
  for await (const page of allPages((next) => store.listCertificates({ ...selection, ...next }, now))) {
    const known = await store.listSuccessions(page.map(({ serial }) => serial));
    const successions = new Map(known.map((row) => [`${row.ca} ${row.serial}`, row]));
    for (const certificate of page) {
      const succession = successions.get(`${certificate.ca} ${certificate.serial}`);
      if (succession === undefined || succession.issued_at > begins) continue;
      if (succession.replaced === 0) count(certificate, succession.last_failed_at);
      else counts.replaced++;
    }
  }
  const { replaced, waiting, failed, overdue } = counts;
  return { ...counts, total: replaced + waiting + failed + overdue, rows };
}

/** The selected certificates, in pages of the store. @throws what the store throws */
export const everyCertificate = (
  store: Pick<CertificateStore, 'listCertificates'>,
  selection: CertificateSelection,
  now: number,
): AsyncGenerator<ListedCertificate> => allRows((page) => store.listCertificates({ ...selection, ...page }, now));

/** Reports once for each campaign that certificates are overdue. The holders must be derived. @throws what the store throws */
export async function reportOverdue(
  store: ProgressStore & Pick<RenewalStore, 'noteOverdue'>,
  campaigns: readonly RenewalRow[],
  now: number,
): Promise<void> {
  for (const row of campaigns) {
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
