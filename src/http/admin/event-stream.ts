/** Streams new audit records to one caller. */
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { AuditRecord } from '../../audit/event.ts';
import { isAuditRecord } from '../../audit/record.ts';
import type { AuditLine } from '../../store/audit-store.ts';

/** Milliseconds between polls of the store, to which other nodes write too. */
const LOOK_EVERY = 1000;
/** Milliseconds between heartbeats, and between checks of the caller's permission. */
const BEAT_EVERY = 15_000;
/** Milliseconds after which a caller that reads nothing is disconnected. */
const MAX_WAIT = 60_000;
/** Records per read. */
const BATCH = 200;

export interface EventStreamOptions {
  /** The records after one, in order. */
  readonly read: (after: number, limit: number) => Promise<readonly AuditLine[]>;
  /** The stream starts after this record. */
  readonly after: number;
  /** The visible part of a record; undefined: none. */
  readonly show: (record: AuditRecord) => object | undefined;
  /** Rejects or returns false once the caller loses permission. */
  readonly mayGoOn: () => Promise<boolean>;
  /** Records after which permission is checked at once. */
  readonly mayEnd: (record: AuditRecord) => boolean;
  /** Milliseconds, for tests. */
  readonly lookEvery?: number;
  readonly beatEvery?: number;
}

/**
 * Server-sent events (HTML §9.2), one per record. Buffers at most one batch of records; reads the next when the caller
 * has read the last. Ends when the caller loses permission, when the store fails, or when nobody reads.
 */
export function eventStream({
  lookEvery = LOOK_EVERY,
  beatEvery = BEAT_EVERY,
  ...options
}: EventStreamOptions): Readable {
  const over = new AbortController();
  let taken = performance.now();
  const stream = Readable.from(texts(), { objectMode: false });
  const beat = setInterval(() => {
    if (performance.now() - taken > MAX_WAIT) return void stream.destroy();
    // Buffered data is still sent; an entitled client reconnects.
    void askAgain();
  }, beatEvery);
  stream.once('close', () => {
    clearInterval(beat);
    over.abort();
  });
  return stream;

  async function askAgain(): Promise<void> {
    if (!(await options.mayGoOn().catch(() => false))) over.abort();
  }

  async function* texts(): AsyncGenerator<string> {
    let last = options.after;
    let beaten = performance.now();
    yield `retry: 3000\nid: ${last}\n\n`;
    while (!over.signal.aborted) {
      taken = performance.now();
      const lines = await options.read(last, BATCH);
      last = lines.at(-1)?.seq ?? last;
      const records = lines.map(({ seq, line }) => ({ seq, record: recordOf(line) }));
      if (records.some(({ record }) => record !== undefined && options.mayEnd(record))) {
        await askAgain();
        if (isAborted(over.signal)) return;
      }
      const text = records.map(({ seq, record }) => eventOf(seq, record && options.show(record))).join('');
      if (text !== '') yield text;
      else if (taken - beaten >= beatEvery) {
        beaten = taken;
        // With the position, so that a client that reconnects skips records that it may not see. An event without data,
        // because scripts in a browser do not see comments.
        yield `: alive\nevent: alive\ndata\nid: ${last}\n\n`;
      }
      if (lines.length < BATCH) await sleep(lookEvery, undefined, { signal: over.signal }).catch(() => undefined);
    }
  }
}

const isAborted = (signal: AbortSignal): boolean => signal.aborted;

function recordOf(line: string): AuditRecord | undefined {
  const record: unknown = JSON.parse(line);
  return isAuditRecord(record) ? record : undefined;
}

/** JSON contains no line end. */
const eventOf = (seq: number, shown: object | undefined): string =>
  shown === undefined ? '' : `event: audit\nid: ${seq}\ndata: ${JSON.stringify(shown)}\n\n`;
