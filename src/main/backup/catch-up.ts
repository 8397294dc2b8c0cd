/**
 * Replays the audit log into a store that is behind it: a restored backup, or an older database that the operator
 * accepts.
 */
import { readAuditFile, recordsSince } from '../../audit/missing-records.ts';
import { tokenEvent } from '../../audit/applied-events.ts';
import type { Anchor, AuditEvent } from '../../audit/event.ts';
import type { ParsedRecord } from '../../audit/record.ts';
import type { Progress } from '../commands/progress.ts';
import { assumeUsed, dropCrls, type Replayed, replayer, type ReplaySession } from '../../store/replay.ts';

export interface CatchUpOptions {
  readonly auditFile: string;
  /** `[audit] archive`. */
  readonly archive: string | undefined;
  /** Labels of the CAs. */
  readonly cas: readonly string[];
  /** Increment of the CRL numbers if the used ones are unknown. */
  readonly crlNumbersSkipped: number;
  readonly now: number;
  readonly bar: (what: string) => Progress;
  /** Renames an audit file that does not continue the store's chain. @returns its new name */
  readonly moveAside: (path: string) => string | undefined;
  /** The event that records the outcome. */
  readonly event: (done: CaughtUp) => AuditEvent;
}

export interface CaughtUp extends Replayed {
  /** The store's last audit record before the replay. */
  readonly from: number;
  /** The last replayed record; `from` if none. */
  readonly upTo: number;
  /** Whether the audit file was complete. */
  readonly whole: boolean;
  /** Unused tokens that were revoked because they may have been used. */
  readonly revokedTokens: number;
  readonly moved: readonly string[];
  /** Ends of other nodes' chains in the replayed records that the store lacks. */
  readonly otherNodes: readonly Anchor[];
}

const BATCH = 500;

/**
 * @throws EstuaryError 503 `AUDIT_TAMPERED` if the audit file is broken, from another store or from an earlier version;
 * nothing has changed then
 */
export async function catchUp(session: ReplaySession, options: CatchUpOptions): Promise<CaughtUp> {
  const { auditFile, archive, now, cas, crlNumbersSkipped } = options;
  const { head, db } = session;
  const file = await withBar(options, 'reading the audit log', (bar) => readAuditFile(auditFile, head, bar.update));
  const since =
    file !== undefined && file.last.seq >= head.seq ? recordsSince(auditFile, head, file, archive) : undefined;
  const whole = since?.whole === true;
  const { apply, replayed } = replayer(db);
  const anchors = new Map<string, Anchor>();
  await withBar(options, 'applying the audit log', async (bar) => {
    let batch: ParsedRecord[] = [];
    let n = 0;
    const total = (file?.last.seq ?? 0) - head.seq;
    for (const record of since?.records ?? []) {
      await session.run(apply(record));
      for (const anchor of record.anchors) anchors.set(anchor.node, anchor);
      bar.update(++n, total);
      // If records are missing, the chain continues from the store's own end.
      if (!whole) continue;
      batch.push(record);
      if (batch.length < BATCH) continue;
      await session.adopt(batch);
      batch = [];
    }
    if (batch.length > 0) await session.adopt(batch);
  });
  const tokens = whole ? [] : await session.run(assumeUsed(db, now, cas, crlNumbersSkipped));
  await session.run(dropCrls(db));
  const heads = await session.otherHeads();
  const moved = whole ? undefined : options.moveAside(auditFile);
  const done: CaughtUp = {
    ...replayed,
    from: head.seq,
    upTo: since === undefined ? head.seq : (file?.last.seq ?? head.seq),
    whole,
    revokedTokens: tokens.length,
    moved: moved === undefined ? [] : [moved],
    otherNodes: [...anchors.values()].filter(({ node, seq }) => (heads.get(node) ?? 0) < seq),
  };
  const after =
    whole && file !== undefined
      ? { seq: file.last.seq, hash: file.last.hash, file_start: file.first.seq, file_size: file.size }
      : { seq: head.seq, hash: head.hash, file_start: head.seq + 1, file_size: 0 };
  const revoked = tokens.map((token) => tokenEvent({ type: 'otp.revoked', token }, {}, ': it may have been used'));
  await session.commit(after, [...revoked, options.event(done)], now);
  return done;
}

async function withBar<T>(
  { bar }: Pick<CatchUpOptions, 'bar'>,
  what: string,
  work: (bar: Progress) => T,
): Promise<Awaited<T>> {
  const shown = bar(what);
  try {
    return await work(shown);
  } finally {
    shown.end();
  }
}
