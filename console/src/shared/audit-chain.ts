/** Verifies the chain of the audit log in the browser. It uses only the records. */
import { call } from '../api/client.ts';
import type { AuditRecord, Page } from '../api/types.ts';
import { hashOf } from './audit-hash.ts';

/** Records per call. */
const PAGE = 1000;

export interface ChainState {
  readonly checked: number;
  readonly first?: number;
  readonly last?: number;
  /** The first mismatch, if any. */
  readonly problem?: string;
  readonly isDone: boolean;
}

/** From the oldest record of the store to the newest. @param report is called after each page */
export async function verifyChain(report: (state: ChainState) => void, signal: AbortSignal): Promise<void> {
  let cursor: string | undefined;
  // Each node of a shared store has its own chain.
  const ends = new Map<string | undefined, AuditRecord>();
  let state: ChainState = { checked: 0, isDone: false };
  do {
    const page: Page<AuditRecord> = await call('/admin/audit', { query: { limit: PAGE, cursor }, signal });
    for (const record of page.items) {
      const problem = await problemOf(record, ends.get(record.node));
      if (problem !== undefined) {
        report({ ...state, problem, isDone: true });
        return;
      }
      ends.set(record.node, record);
      state = { checked: state.checked + 1, first: state.first ?? record.seq, last: record.seq, isDone: false };
    }
    report(state);
    cursor = page.next_cursor ?? undefined;
  } while (cursor !== undefined && !signal.aborted);
  report({ ...state, isDone: true });
}

async function problemOf(record: AuditRecord, before: AuditRecord | undefined): Promise<string | undefined> {
  if ((await hashOf(record)) !== record.hash) return `Record ${record.seq} does not match its hash.`;
  if (before === undefined) return undefined;
  if (record.seq !== before.seq + 1) return `Records are missing between ${before.seq} and ${record.seq}.`;
  return record.prev_hash === before.hash ? undefined : `Record ${record.seq} does not follow record ${before.seq}.`;
}
