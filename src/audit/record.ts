import { hash } from 'node:crypto';
import type { Anchor, ArchivedRange, AuditEvent, AuditRecord, Checkpoint } from './event.ts';
import { HASHED_FIELDS, type HashedField } from './hashed-fields.ts';

/** `prev_hash` of the first record. */
export const GENESIS_HASH = '0'.repeat(64);

/** The last record of a chain: what the next record needs. */
export interface ChainHead {
  /** 0 for an empty chain. */
  readonly seq: number;
  readonly hash: string;
}

/** A record as the audit file and the store contain it. */
export interface ChainedRecord {
  readonly seq: number;
  readonly type: string;
  readonly time: number;
  readonly hash: string;
  /** One line of JSON, without a line end. */
  readonly line: string;
  /** Absent if the record was read back. */
  readonly event?: AuditEvent;
}

/** Maximum length of a field: a record does not store a requester's 60 kB subject. */
const MAX_FIELD = 2048;

/** A long text or list is truncated, with `…` at its end; an empty list is omitted. */
function bounded(value: unknown): unknown {
  if (typeof value === 'string') return value.length <= MAX_FIELD ? value : `${value.slice(0, MAX_FIELD)}…`;
  return Array.isArray(value) && value.every((item) => typeof item === 'string') ? boundedList(value) : value;
}

function boundedList(values: readonly string[]): readonly string[] | undefined {
  if (values.length === 0) return undefined;
  let length = 0;
  const kept = values.findIndex((value) => (length += value.length) > MAX_FIELD);
  return kept === -1 ? values : [...values.slice(0, kept), '…'];
}

/** The fields that the commit adds to an event. */
interface Place {
  readonly seq: number;
  /** ISO 8601. */
  readonly time: string;
  readonly node: string | undefined;
  readonly stored: number | undefined;
  readonly prev_hash: string;
}

/**
 * The canonical JSON that is hashed: fields in the order of HASHED_FIELDS, absent ones omitted, no white space. It is
 * what JSON.stringify makes of an object with these fields.
 */
function canonicalJson(event: AuditEvent, place: Place): string {
  const all: Readonly<Partial<Record<HashedField, unknown>>> = { ...event, ...place };
  let text = '';
  for (const field of HASHED_FIELDS) {
    const value = bounded(all[field]);
    if (value !== undefined) text += `,"${field}":${JSON.stringify(value)}`;
  }
  return `{${text.slice(1)}}`;
}

function sha256(text: string): string {
  return hash('sha256', text, 'hex');
}

function withHash(canonical: string, hash: string): string {
  return `${canonical.slice(0, -1)},"hash":"${hash}"}`;
}

/** Characters that {@link withHash} substitutes for the closing brace. */
const HASH_LENGTH = withHash('}', GENESIS_HASH).length;

/**
 * Makes an event the next record of a chain.
 * @param node the name of this node
 * @param stored for a transaction's first record: the store's last record before the transaction
 */
export function chain(head: ChainHead, event: AuditEvent, time: number, node?: string, stored?: number): ChainedRecord {
  const seq = head.seq + 1;
  const place = { seq, time: new Date(time).toISOString(), node, stored, prev_hash: head.hash };
  const canonical = canonicalJson(event, place);
  const digest = sha256(canonical);
  return { seq, type: event.type, time, hash: digest, line: withHash(canonical, digest), event };
}

/** A parsed record with a valid hash, though not necessarily the next of a chain. */
export interface ParsedRecord extends ChainedRecord {
  readonly prev_hash: string;
  readonly archived: ArchivedRange | undefined;
  readonly checkpoint: Checkpoint | undefined;
  /** Ends of other nodes' chains. */
  readonly anchors: readonly Anchor[];
  readonly node: string | undefined;
  readonly record: AuditRecord;
}

/**
 * Parses a line that {@link chain} wrote, in any version; the fields depend on the version. The line must be canonical
 * JSON to the byte and end with a matching hash.
 * @returns undefined for anything else
 */
export function parseLine(line: string): ParsedRecord | undefined {
  let record: unknown;
  try {
    record = JSON.parse(line);
  } catch {
    return undefined;
  }
  if (!isAuditRecord(record) || JSON.stringify(record) !== line) return undefined;
  const { seq, time, type, node, prev_hash, archived, checkpoint: sealed, anchors: told } = record;
  const canonical = `${line.slice(0, -HASH_LENGTH)}}`;
  const digest = sha256(canonical);
  if (withHash(canonical, digest) !== line) return undefined;
  const range = isArchivedRange(archived) ? archived : undefined;
  const checkpoint = isCheckpoint(sealed) ? sealed : undefined;
  const anchors = Array.isArray(told) ? told.filter(isAnchor) : [];
  return {
    seq,
    type,
    time: Date.parse(time),
    hash: digest,
    prev_hash,
    archived: range,
    checkpoint,
    anchors,
    node: typeof node === 'string' ? node : undefined,
    record,
    line,
  };
}

function isArchivedRange(value: unknown): value is ArchivedRange {
  if (typeof value !== 'object' || value === null) return false;
  const { first, last, hash } = value as Record<keyof ArchivedRange, unknown>;
  return Number.isSafeInteger(first) && Number.isSafeInteger(last) && typeof hash === 'string';
}

function isAnchor(value: unknown): value is Anchor {
  if (typeof value !== 'object' || value === null) return false;
  const { node, seq, hash } = value as Record<keyof Anchor, unknown>;
  return typeof node === 'string' && Number.isSafeInteger(seq) && typeof hash === 'string';
}

export function isCheckpoint(value: unknown): value is Checkpoint {
  if (typeof value !== 'object' || value === null) return false;
  const { seq, hash, signature } = value as Record<keyof Checkpoint, unknown>;
  return Number.isSafeInteger(seq) && typeof hash === 'string' && typeof signature === 'string';
}

export interface StoredLine {
  readonly seq: number;
  /** One line of JSON, as in the audit file. */
  readonly line: string;
}

/** Inclusive; absent bounds are open. */
export interface TimeRange {
  readonly since?: number | undefined;
  readonly until?: number | undefined;
}

/** Whether a value has the fields of every record; does not check the hash. */
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

export function follows(head: ChainHead, record: ParsedRecord): boolean {
  return record.seq === head.seq + 1 && record.prev_hash === head.hash;
}

/** The end of the chain, as stored. */
export interface StoredHead extends ChainHead {
  readonly file_start: number;
  readonly file_size: number;
}

export interface StoredRecord {
  readonly seq: number;
  readonly time: number;
  readonly type: string;
  readonly line: string;
}

/** The first error found; used only inside the verification. */
export class Broken extends Error {
  readonly seq: number | null;
  constructor(seq: number | null, problem: string) {
    super(problem);
    this.seq = seq;
  }
}

/** An error in the file; a concurrent rotation or write may be the cause. */
export class BrokenFile extends Broken {}

/** A record with an intact line whose search columns differ. */
export const changedSearch = (seq: number, what: string): Broken =>
  new Broken(seq, `record ${seq} in the store was changed: its column "${what}" differs from the record`);
