/** Deletes old data from the store at start and hourly: certificates, tokens, devices and audit records. */
import { setTimeout as delay } from 'node:timers/promises';
import { ArchiveFile } from '../audit/file.ts';
import type { Config } from '../config/schema.ts';
import { type ChainHead, follows, GENESIS_HASH, parseLine } from '../audit/record.ts';
import { unavailable } from '../errors.ts';
import type { Logger } from '../log.ts';
import type { RetentionStore } from '../store/retention-store.ts';
import { type Part, recurring, reporting } from './part.ts';
import type { AuditLine } from '../store/audit-store.ts';
import { PURGED_AT_ONCE } from '../store/port.ts';

export interface RetentionOptions {
  readonly config: Pick<Config, 'retention'> & {
    readonly audit: Pick<Config['audit'], 'archive'>;
    readonly otp: Pick<Config['otp'], 'retry_window'>;
  };
  readonly store: RetentionStore;
  readonly log: Logger;
  readonly now: () => number;
}

interface Run {
  readonly signal?: AbortSignal;
  /** Milliseconds beyond the limit that the oldest audit record must have before any is archived. */
  readonly slack?: number;
}

const HOUR = 3_600_000;
const DAY = 86_400_000;
/** Milliseconds between two batches, for other users of the store. */
const BREATH = 20;
/** Maximum records per archive file. */
const MAX_FILE = 100_000;

/** Runs the purge at start and hourly. Stopping waits for the batch in progress. */
export const retention = (options: RetentionOptions): Part =>
  recurring(HOUR, ({ isFirst, stopped: signal }) =>
    // One archive file per day, not per hour.
    purge(options, { signal, slack: isFirst ? 0 : DAY }).catch(reporting(options.log, 'cannot delete expired records')),
  );

/** Deletes all expired data once. @throws errors of the store or the archive's file system; the rest stays */
export async function purge(options: RetentionOptions, { signal, slack = 0 }: Run = {}): Promise<void> {
  const { config, store, log, now } = options;
  const { certificates, tokens, devices, audit } = config.retention;
  const before = (days: number): number => now() - days * DAY;
  const gone: Record<string, number> = {};
  if (certificates > 0)
    gone['certificates'] = await inBatches(() => store.purgeCertificates(before(certificates), now()), signal);
  if (tokens > 0) gone['tokens'] = await purgeTokens(options, signal);
  if (devices > 0) gone['devices'] = await inBatches(() => store.purgeDevices(before(devices)), signal);
  if (audit > 0 && config.audit.archive !== undefined) {
    const [oldest] = await store.auditLines((await store.lastArchived())?.last ?? 0, 1);
    if (oldest !== undefined && oldest.time < before(audit) - slack)
      await archiveAudit(options, config.audit.archive, before(audit), signal);
    gone['audit'] = await inBatches(() => store.purgeArchived(), signal);
  }
  if (Object.values(gone).some((count) => count > 0)) log.info(gone, 'deleted expired records');
}

async function inBatches(batch: () => Promise<number>, signal: AbortSignal | undefined): Promise<number> {
  let all = 0;
  while (!isAborted(signal)) {
    const count = await batch();
    all += count;
    if (count < PURGED_AT_ONCE) break;
    await delay(BREATH);
  }
  return all;
}

const isAborted = (signal: AbortSignal | undefined): boolean => signal?.aborted ?? false;

async function purgeTokens({ config, store, now }: RetentionOptions, signal?: AbortSignal): Promise<number> {
  const days = config.retention.tokens * DAY;
  const ended = now() - days;
  // A used token must be known while its request may be repeated (`otp.retry_window`).
  const since = { ended, used: now() - Math.max(days, config.otp.retry_window * 1000) };
  let all = 0;
  for (let after: number | null = 0; after !== null && !isAborted(signal);) {
    const { ids, next } = await store.findOverTokens(since, after);
    for (let at = 0; at < ids.length && !isAborted(signal); at += PURGED_AT_ONCE) {
      all += await store.purgeTokens(ids.slice(at, at + PURGED_AT_ONCE), since);
      await delay(BREATH);
    }
    after = next;
  }
  return all;
}

/**
 * Archives the records before a time. The file is on disk before a record says so, and only then are records deleted.
 * After a crash it repeats.
 */
async function archiveAudit(
  { store, log }: RetentionOptions,
  folder: string,
  before: number,
  signal?: AbortSignal,
): Promise<void> {
  for (let whole = true; whole && !isAborted(signal);) {
    const archived = await store.lastArchived();
    const start = archived === undefined ? { seq: 0, hash: GENESIS_HASH } : { seq: archived.last, hash: archived.hash };
    const exported = await exportRun(store, folder, start, before);
    if (exported === undefined) return;
    const { last, path } = exported;
    const first = start.seq + 1;
    await store.noteArchived(
      { first, last: last.seq, hash: last.hash },
      `records ${first} to ${last.seq} are in ${path}`,
    );
    log.info({ first, last: last.seq, path }, 'audit records archived');
    whole = last.seq - start.seq >= MAX_FILE;
  }
}

/**
 * @param start the record before the first
 * @returns the file's last record; undefined without any
 * @throws EstuaryError 503 `AUDIT_TAMPERED` if the records are not a chain; they stay
 */
async function exportRun(
  store: RetentionStore,
  folder: string,
  start: ChainHead,
  before: number,
): Promise<{ readonly last: ChainHead; readonly path: string } | undefined> {
  let lines = await old(store, start.seq, before);
  if (lines.length === 0) return undefined;
  const file = new ArchiveFile(folder);
  try {
    let last = start;
    while (lines.length > 0) {
      for (const line of lines) last = next(last, line);
      file.append(lines.map(({ line }) => line));
      lines = last.seq - start.seq < MAX_FILE ? await old(store, last.seq, before) : [];
    }
    return { last, path: file.finish(start.seq + 1, last.seq) };
  } finally {
    file.close();
  }
}

/** The records after one, up to the first that is too young. */
async function old(store: RetentionStore, after: number, before: number): Promise<readonly AuditLine[]> {
  const lines = await store.auditLines(after, PURGED_AT_ONCE);
  const young = lines.findIndex(({ time }) => time >= before);
  return young === -1 ? lines : lines.slice(0, young);
}

function next(head: ChainHead, { seq, line }: AuditLine): ChainHead {
  const record = parseLine(line);
  if (record !== undefined && follows(head, record)) return record;
  throw unavailable('AUDIT_TAMPERED', 'the audit log differs from the store', {
    detail: `record ${seq} in the store does not follow record ${head.seq}; nothing was archived, run "audit verify"`,
  });
}
