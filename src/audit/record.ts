import { hash } from 'node:crypto';
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
function canonicalJson(event: AuditEvent, seq: number, time: string, prev_hash: string): string {
  return JSON.stringify({
    seq,
    time,
    type: event.type,
    outcome: event.outcome,
    subject: bounded(event.subject),
    address: bounded(event.address),
    ca: bounded(event.ca),
    serial: bounded(event.serial),
    request_id: bounded(event.request_id),
    detail: bounded(event.detail),
    prev_hash,
  });
}

function sha256(text: string): string {
  return hash('sha256', text, 'hex');
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
  const canonical = canonicalJson(event, seq, new Date(time).toISOString(), head.hash);
  const digest = sha256(canonical);
  return { seq, type: event.type, time, hash: digest, line: withHash(canonical, digest) };
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
  const { seq, time, type, prev_hash } = record;
  const canonical = canonicalJson(record, seq, time, prev_hash);
  const digest = sha256(canonical);
  if (withHash(canonical, digest) !== line) return undefined;
  return { seq, type, time: Date.parse(time), hash: digest, prev_hash, line };
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
