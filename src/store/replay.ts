/**
 * Applies audit records to a store that is behind its audit log (a restored backup): the facts that must not be lost.
 */
import type { AuditEvent, AuditRecord, AuditType } from '../audit/event.ts';
import type { ChainedRecord, ParsedRecord } from '../audit/record.ts';
import { isCrlReason } from '../pki/x509/crl.ts';
import type { AuditHead } from './audit-chain.ts';
import { AUTHORIZED_NAMES, insertCertificate, RELEASE, REVOKE } from './certificate-store.ts';
import { isJwt } from './otp-store.ts';
import type { Database, Operation } from './port.ts';
import { putRescue } from './rescue-store.ts';

/** Per type: applied records, and records with facts that are lost. */
export interface Replayed {
  readonly applied: ReadonlyMap<string, number>;
  readonly lost: ReadonlyMap<string, number>;
}

/** Assumed milliseconds until the expiry of a certificate or a JWT whose record lacks its expiry date. */
const EXPIRY_UNKNOWN = 3650 * 86_400_000;

/** The time in a field; undefined: absent, or no time. */
function timeIn(text: unknown): number | undefined {
  const time = typeof text === 'string' ? Date.parse(text) : Number.NaN;
  return Number.isNaN(time) ? undefined : time;
}

/** Applies a record. @returns what it changed, if anything */
type Handler = (record: AuditRecord, time: number) => Operation<string | undefined>;
type Handlers = Partial<Record<AuditType, Handler>>;

/** Facts that records do not contain. */
const LOST: Readonly<Record<string, string>> = {
  'certificate.issued': 'certificates issued since, except their names, serial numbers, owners and expiry dates',
  'certificate.imported': 'certificates imported since, except their names, serial numbers and expiry dates',
  'otp.created': 'tokens created since: they no longer work',
  'request.queued': 'requests queued since: clients must send them again',
  'request.approved': 'approvals since: requests that are not issued wait for a decision again',
  'device.created': 'devices registered since',
  'device.changed': 'changes of devices since, except `enabled`',
  'lockout.started': 'lockouts since',
  'renewal.started': 'replacement campaigns started since',
};

/** Applies records one by one, in the caller's transaction. */
export function replayer(db: Database): {
  readonly apply: (record: ParsedRecord) => Operation<void>;
  readonly replayed: Replayed;
} {
  const applied = new Map<string, number>();
  const lost = new Map<string, number>();
  const add = (counts: Map<string, number>, what: string | undefined): void => {
    if (what !== undefined) counts.set(what, (counts.get(what) ?? 0) + 1);
  };
  const handlers: Handlers = { ...certificateHandlers(db), ...tokenHandlers(db), ...otherHandlers(db) };
  return {
    *apply({ record, time }) {
      const handler = handlers[record.type];
      if (handler !== undefined) add(applied, yield* handler(record, time));
      if (record.outcome === 'success') add(lost, LOST[record.type]);
    },
    replayed: { applied, lost },
  };
}

function certificateHandlers(db: Database): Handlers {
  const insert = insertCertificate(db);
  function* know(record: AuditRecord, time: number, issued_at: number | null): Operation<boolean> {
    const { ca, label = null, serial, subject: who = '', certificate_not_after: end } = record;
    if (ca === undefined || serial === undefined) return false;
    const row = {
      ca,
      label,
      serial,
      subject: record.certificate_subject ?? '',
      sans: record.certificate_sans ?? [],
      not_before: time,
      not_after: timeIn(end) ?? time + EXPIRY_UNKNOWN,
      der: Buffer.alloc(0),
      fingerprint_sha256: '',
      requester: record.requester ?? who,
      method: record.method ?? '',
      request_id: record.request_id ?? '',
      device: record.device ?? null,
      device_key: record.device_key ?? null,
      required_device: record.device_required === true ? (record.device_key ?? null) : null,
      key_identifier: null,
      archived_key_id: null,
      revocation_challenge: null,
      revoked_at: null,
      reason: null,
      invalidity_date: null,
    };
    return yield* insert(row, issued_at);
  }
  const revoked: Handler = function* (record, time) {
    yield* know(record, time, null);
    const { ca, serial, revocation_reason: reason = '', invalidity_date: since } = record;
    const revocation = {
      ca,
      serial,
      revoked_at: time,
      reason: isCrlReason(reason) ? reason : 'unspecified',
      invalidity_date: timeIn(since) ?? null,
    };
    return (yield* db.get(REVOKE, revocation)) === undefined ? undefined : 'revocations';
  };
  return {
    *'certificate.issued'(record, time) {
      const isNew = yield* know(record, time, time);
      const { ca = '', serial = '', authorized_names: names } = record;
      // A longer value was cut.
      if (isNew && names?.endsWith(']') === true) yield* db.run(AUTHORIZED_NAMES, { serial, ca, names });
      const id = record.request_id ?? '';
      const reason = 'it was issued before the store was restored. Send the request again.';
      yield* closeReservation(db, id);
      yield* db.run`UPDATE request SET status = 'failed', reason = ${reason}, changed_at = ${time}
        WHERE id = ${id} AND status IN ('pending', 'approved')`;
      return isNew ? 'certificates issued' : undefined;
    },
    *'certificate.imported'(record, time) {
      return (yield* know(record, time, null)) ? 'certificates imported' : undefined;
    },
    // If its token got the use back, a record of type otp.returned follows.
    *'certificate.failed'(record) {
      yield* closeReservation(db, record.request_id ?? '');
      return undefined;
    },
    'certificate.revoked': revoked,
    'certificate.held': revoked,
    *'certificate.released'(record, time) {
      yield* know(record, time, null);
      const released = yield* db.get(RELEASE, record.ca ?? '', record.serial ?? '');
      return released === undefined ? undefined : 'releases of held certificates';
    },
    *'certificate.rescued'(record, time) {
      yield* know(record, time, null);
      const { ca = '', serial = '', rescue_until = '', reason = null, subject: created_by = '' } = record;
      yield* putRescue(db, { ca, serial, until: Date.parse(rescue_until), reason, created_at: time, created_by });
      return 'passes for one more renewal';
    },
    // That of an administrator names an operation.
    *'certificate.rescue_ended'({ ca = '', serial = '', request_id = '', operation }) {
      const ended = yield* operation === undefined
        ? db.run`UPDATE rescue SET request_id = ${request_id} WHERE serial = ${serial} AND ca = ${ca}`
        : db.run`DELETE FROM rescue WHERE serial = ${serial} AND ca = ${ca}`;
      return ended === 0 ? undefined : 'ended passes for one more renewal';
    },
  };
}

const closeReservation = (db: Database, request_id: string): Operation<number> =>
  db.run`DELETE FROM reservation WHERE request_id = ${request_id}`;

function tokenHandlers(db: Database): Handlers {
  return {
    *'otp.used'({ token: id = '', subject: client_id = '' }, time) {
      let changes = yield* db.run`UPDATE otp SET uses = uses + 1 WHERE id = ${id} AND uses < max_uses`;
      // The store knows a single-use JWT from its first use on. Its expiry is not in the record.
      if (changes === 0 && isJwt(id))
        changes = yield* db.run`INSERT INTO otp (id, lookup, hash, client_id, created_at, expires_at, max_uses, uses)
          VALUES (${id}, ${id}, '', ${client_id}, ${time}, ${time + EXPIRY_UNKNOWN}, 1, 1) ON CONFLICT DO NOTHING`;
      return changes === 1 ? 'uses of tokens' : undefined;
    },
    *'otp.returned'({ token = '', request_id = '' }) {
      const returned = yield* db.run`UPDATE otp SET uses = uses - 1 WHERE id = ${token} AND uses > 0`;
      yield* db.run`DELETE FROM otp_use WHERE request_id = ${request_id}`;
      yield* closeReservation(db, request_id);
      return returned === 1 ? 'uses of tokens that were given back' : undefined;
    },
    *'otp.changed'({ token = '', token_expires_at }) {
      const end = timeIn(token_expires_at);
      if (end === undefined) return undefined;
      const changes = yield* db.run`UPDATE otp SET expires_at = ${end} WHERE id = ${token}`;
      return changes === 1 ? 'changes of tokens' : undefined;
    },
    *'otp.revoked'({ token = '' }, time) {
      const changes = yield* db.run`UPDATE otp SET revoked_at = ${time} WHERE id = ${token} AND revoked_at IS NULL`;
      return changes === 1 ? 'revocations of tokens' : undefined;
    },
  };
}

function otherHandlers(db: Database): Handlers {
  const ended = (status: 'rejected' | 'expired'): Handler =>
    function* ({ request_id: id = '', reason = null }, time) {
      const changes = yield* db.run`UPDATE request
        SET status = ${status}, reason = ${reason}, decided_at = ${time}, changed_at = ${time}
        WHERE id = ${id} AND status IN ('pending', 'approved')`;
      return changes === 1 ? `requests ${status}` : undefined;
    };
  return {
    *'device.changed'({ device_key: key, device_enabled: enabled }, time) {
      if (key === undefined || enabled === undefined) return undefined;
      const changes =
        yield* db.run`UPDATE device SET enabled = ${enabled ? 1 : 0}, changed_at = ${time} WHERE key = ${key}`;
      if (changes === 0) return undefined;
      return enabled ? 'devices enabled' : 'devices disabled';
    },
    *'device.deleted'({ device_key = '' }) {
      return (yield* db.run`DELETE FROM device WHERE key = ${device_key}`) === 1 ? 'devices deleted' : undefined;
    },
    'request.rejected': ended('rejected'),
    'request.expired': ended('expired'),
    *'renewal.ended'({ detail: id = '' }) {
      return (yield* db.run`DELETE FROM renewal WHERE id = ${id}`) === 1 ? 'replacement campaigns ended' : undefined;
    },
    *'crl.issued'({ ca, crl_number: taken }) {
      if (ca === undefined || taken === undefined || !Number.isSafeInteger(taken)) return undefined;
      yield* db.run`INSERT INTO crl (ca, last_number) VALUES (${ca}, ${taken}) ON CONFLICT (ca)
        DO UPDATE SET last_number = excluded.last_number WHERE crl.last_number < excluded.last_number`;
      return 'CRL numbers';
    },
  };
}

export interface RevokedToken {
  readonly id: string;
  readonly client_id: string;
  readonly ca: string | null;
}

/**
 * For a store whose later changes are unknown: what may have been used counts as used.
 * @param cas labels whose CRL numbers advance, in addition to those in the store
 * @param skip by how much they advance
 * @returns the unused tokens, which are revoked
 */
export function* assumeUsed(
  db: Database,
  now: number,
  cas: readonly string[],
  skip: number,
): Operation<readonly RevokedToken[]> {
  const tokens = yield* db.all<RevokedToken>`UPDATE otp SET revoked_at = ${now}
    WHERE revoked_at IS NULL AND uses < max_uses AND expires_at > ${now} RETURNING id, client_id, ca`;
  // The next start would close the reservations and return uses. Administrators who signed out must not be signed in
  // again.
  for (const table of ['reservation', 'session']) yield* db.run(`DELETE FROM ${table}`);
  const known = yield* db.all<{ ca: string }>`SELECT ca FROM crl`;
  for (const ca of new Set([...cas, ...known.map((row) => row.ca)]))
    yield* db.run`INSERT INTO crl (ca, last_number) VALUES (${ca}, ${skip})
      ON CONFLICT (ca) DO UPDATE SET last_number = crl.last_number + excluded.last_number`;
  return tokens;
}

/** The CRLs of a restored store are old and lack later revocations. */
export const dropCrls = (db: Database): Operation<number> =>
  db.run`UPDATE crl SET number = NULL, this_update = NULL, next_update = NULL, der = NULL`;

/** Replays records into a store in one exclusive transaction. */
export interface ReplaySession {
  /** The end of this node's chain in the store. */
  readonly head: AuditHead;
  readonly db: Database;
  /** The last records of the other nodes' chains in the store, by node. */
  otherHeads(): Promise<ReadonlyMap<string, number>>;
  run<T>(operation: Operation<T>): Promise<T>;
  /** Stores records that the audit file has. */
  adopt(records: readonly ChainedRecord[]): Promise<void>;
  /** Continues the chain after a record, adds events and commits. @throws as AuditChain.begin */
  commit(after: AuditHead, events: readonly AuditEvent[], time: number): Promise<void>;
  /** Ends it; without {@link commit}, nothing has changed. */
  close(): Promise<void>;
}
