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

/**
 * The canonical JSON that is hashed: fields in the order of HASHED_FIELDS, absent ones omitted, no white space. It is
 * what JSON.stringify makes of an object with these fields.
 */
function canonicalJson(all: Readonly<Partial<Record<HashedField, unknown>>>): string {
  let text = '';
  for (const field of HASHED_FIELDS) {
    const value = bounded(all[field]);
    if (value !== undefined) text += `,"${field}":${JSON.stringify(value)}`;
  }
  return `{${text.slice(1)}}`;
}

const sha256 = (text: string): string => hash('sha256', text, 'hex');

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
  const canonical = canonicalJson({ ...event, ...place });
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
  return {
    seq,
    type,
    time: Date.parse(time),
    hash: digest,
    prev_hash,
    archived: isArchivedRange(archived) ? archived : undefined,
    checkpoint: isCheckpoint(sealed) ? sealed : undefined,
    anchors: Array.isArray(told) ? told.filter(isAnchor) : [],
    node: typeof node === 'string' ? node : undefined,
    record,
    line,
  };
}

/** Whether a value is an object with whole numbers and texts under these names. */
function hasFields(value: unknown, numbers: readonly string[], texts: readonly string[]): boolean {
  if (typeof value !== 'object' || value === null) return false;
  const at = (name: string): unknown => Reflect.get(value, name);
  return numbers.every((name) => Number.isSafeInteger(at(name))) && texts.every((name) => typeof at(name) === 'string');
}

const isArchivedRange = (value: unknown): value is ArchivedRange => hasFields(value, ['first', 'last'], ['hash']);

const isAnchor = (value: unknown): value is Anchor => hasFields(value, ['seq'], ['node', 'hash']);

export const isCheckpoint = (value: unknown): value is Checkpoint => hasFields(value, ['seq'], ['hash', 'signature']);

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
export const isAuditRecord = (value: unknown): value is AuditRecord =>
  hasFields(value, ['seq'], ['time', 'type', 'hash', 'prev_hash']) &&
  !Number.isNaN(Date.parse((value as AuditRecord).time));

export function follows(head: ChainHead, record: ParsedRecord): boolean {
  return record.seq === head.seq + 1 && record.prev_hash === head.hash;
}

/** The end of the chain, as stored. */
export interface StoredHead extends ChainHead {
  readonly file_start: number;
  readonly file_size: number;
}

export type StoredRecord = Pick<ChainedRecord, 'seq' | 'time' | 'type' | 'line'>;

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
