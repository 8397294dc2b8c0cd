import { createHash } from 'node:crypto';
import type { AuditEvent, AuditRecord } from './event.ts';

/** `prev_hash` of the very first record. */
export const GENESIS_HASH = '0'.repeat(64);

/** The last record of a chain, all that the next one needs to know of it. */
export interface ChainHead {
  /** 0: there is no record yet. */
  readonly seq: number;
  readonly hash: string;
}

/** A record in the form in which the audit file and the store keep it. */
export interface ChainedRecord {
  readonly seq: number;
  readonly type: string;
  /** Milliseconds since the epoch. */
  readonly time: number;
  readonly hash: string;
  /** One line of JSON, without a line end. */
  readonly line: string;
}

/** Longest value of a field: a record tells what happened, it does not carry a requester's 60 kB subject. */
const MAX_FIELD = 2048;

function bounded(value: string | undefined): string | undefined {
  return value === undefined || value.length <= MAX_FIELD ? value : `${value.slice(0, MAX_FIELD)}…`;
}

/** The canonical JSON that is hashed: these fields in this order, absent ones left out, no white space. */
function canonicalJson(record: Omit<AuditRecord, 'hash'>): string {
  return JSON.stringify({
    seq: record.seq,
    time: record.time,
    type: record.type,
    outcome: record.outcome,
    subject: record.subject,
    address: record.address,
    ca: record.ca,
    serial: record.serial,
    request_id: record.request_id,
    detail: record.detail,
    prev_hash: record.prev_hash,
  });
}

function sha256(text: string): string {
  return createHash('sha256').update(text, 'utf8').digest('hex');
}

function withHash(canonical: string, hash: string): string {
  return `${canonical.slice(0, -1)},"hash":"${hash}"}`;
}

/**
 * Makes an event the next record of a chain.
 *
 * @param time milliseconds since the epoch
 */
export function chain(head: ChainHead, event: AuditEvent, time: number): ChainedRecord {
  const seq = head.seq + 1;
  const canonical = canonicalJson({
    seq,
    time: new Date(time).toISOString(),
    type: event.type,
    outcome: event.outcome,
    ...bound(event),
    prev_hash: head.hash,
  });
  const hash = sha256(canonical);
  return { seq, type: event.type, time, hash, line: withHash(canonical, hash) };
}

function bound(event: AuditEvent): Omit<AuditEvent, 'type' | 'outcome'> {
  const fields: Record<string, string> = {};
  for (const name of ['subject', 'address', 'ca', 'serial', 'request_id', 'detail'] as const) {
    const value = bounded(event[name]);
    if (value !== undefined) fields[name] = value;
  }
  return fields;
}

/** A line read back: a record whose own hash fits, though not necessarily the next of any chain. */
export interface ParsedRecord extends ChainedRecord {
  readonly prev_hash: string;
}

/**
 * Reads a line that {@link chain} wrote. The line must be canonical to the byte and its hash must fit.
 *
 * @returns undefined for anything else
 */
export function parseLine(line: string): ParsedRecord | undefined {
  let record: unknown;
  try {
    record = JSON.parse(line);
  } catch {
    return undefined;
  }
  if (!isAuditRecord(record)) return undefined;
  const canonical = canonicalJson(record);
  const hash = sha256(canonical);
  if (record.hash !== hash || withHash(canonical, hash) !== line) return undefined;
  const time = Date.parse(record.time);
  return { seq: record.seq, type: record.type, time, hash, prev_hash: record.prev_hash, line };
}

/** Whether a value has what every record has; says nothing of its hash. */
export function isAuditRecord(value: unknown): value is AuditRecord {
  if (typeof value !== 'object' || value === null) return false;
  const { seq, time, type, hash, prev_hash } = value as Record<keyof AuditRecord, unknown>;
  return (
    Number.isSafeInteger(seq) &&
    typeof time === 'string' &&
    !Number.isNaN(Date.parse(time)) &&
    typeof type === 'string' &&
    typeof hash === 'string' &&
    typeof prev_hash === 'string'
  );
}

/** Whether `record` is the one that follows `head`. */
export function follows(head: ChainHead, record: ParsedRecord): boolean {
  return record.seq === head.seq + 1 && record.prev_hash === head.hash;
}
