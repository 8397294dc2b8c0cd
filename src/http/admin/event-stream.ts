/** The audit log as it grows, for one caller who stays. */
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { AuditRecord } from '../../audit/event.ts';
import { isAuditRecord } from '../../audit/record.ts';
import type { AuditLine } from '../../store/retention-store.ts';

/** Milliseconds between two looks at the store: any process or node may have written. */
const LOOK_EVERY = 1000;
/** Milliseconds between two signs of life, and between two looks at whether the caller may still listen. */
const BEAT_EVERY = 15_000;
/** Milliseconds after which a caller who takes nothing is let go of. */
const PATIENCE = 60_000;
/** Records read at a time. */
const BATCH = 200;

export interface EventStreamOptions {
  /** The records behind one, in order. */
  readonly read: (after: number, limit: number) => Promise<readonly AuditLine[]>;
  /** The number of the record behind which it begins. */
  readonly after: number;
  /** What the caller is shown of a record; undefined: nothing. */
  readonly show: (record: AuditRecord) => object | undefined;
  /** Rejects, or says false, once the caller may not listen any more. */
  readonly mayGoOn: () => Promise<boolean>;
  /** Records after which that is asked at once. */
  readonly mayEnd: (record: AuditRecord) => boolean;
  /** Milliseconds; those above unless a test says otherwise. */
  readonly lookEvery?: number;
  readonly beatEvery?: number;
}

/**
 * Server-sent events (HTML, §9.2), one for each record. At most a batch of records is held: the next is read when the caller has taken the
 * one before. It ends with the caller's right to it, when the store fails, and when nobody takes what it gives.
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
    if (performance.now() - taken > PATIENCE) return void stream.destroy();
    // What is left in it still goes out, and whoever is entitled to it comes back.
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
        // With the place, so that whoever comes back does not go through what was not for it again.
        yield `: alive\nid: ${last}\n\n`;
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

/** JSON has no line end in it. */
const eventOf = (seq: number, shown: object | undefined): string =>
  shown === undefined ? '' : `event: audit\nid: ${seq}\ndata: ${JSON.stringify(shown)}\n\n`;
