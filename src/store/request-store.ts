/** The queue of requests. */
import Type from 'typebox';
import { Check } from 'typebox/value';
import { requestEnded } from '../audit/applied-events.ts';
import type { AuditEvent } from '../audit/event.ts';
import { done, type Events, undone } from './calls/calls.ts';
import { storeFailed } from './calls/errors.ts';
import { readSans } from './certificate-store.ts';
import { mayIssue } from './issuance-store.ts';
import { giveBackOtpUse, takeOtpUse } from './otp-store.ts';
import { fold, type Page, type PageRequest } from './page.ts';
import { type Calls, EVERYTHING, lock, quickRead, slowRead, write } from './operation.ts';
import { type Database, given, insertInto, type Operation, PURGED_AT_ONCE, someContains, type Write } from './port.ts';
import { ANSWERED, ENDED, goes, inStatus, mayGo, type RequestStatus } from './request-state.ts';
import { type RescuedRequest, takeRescue } from './rescue-store.ts';

/** Format of a request: CertificationRequest (RFC 2986), or CertReqMsg (RFC 4211) from CMC. */
export type RequestFormat = 'pkcs10' | 'crmf';

export interface RequestRow {
  readonly id: string;
  readonly ca: string;
  readonly operation: string;
  /** RFC 4514. */
  readonly subject: string;
  /** As in {@link CertificateRow}. */
  readonly sans: readonly string[];
  readonly key_type: string;
  /** The requester, for people. */
  readonly requester: string;
  readonly method: string;
  /** Identifies the requester, see auth/identity.ts. */
  readonly requester_id: string;
  /** Issuer's subject of the authenticating certificate, RFC 4514. */
  readonly requester_issuer: string | null;
  /** Its subjectAltNames, as in {@link CertificateRow}. */
  readonly requester_sans: readonly string[];
  /** The names of its certificate, encoded by enrollment/names.ts. */
  readonly names: string;
  readonly status: RequestStatus;
  readonly created_at: number;
  readonly decided_at: number | null;
  /** Administrators who have approved it; the last one may have rejected it. */
  readonly decided_by: readonly Decider[];
  /** Approvals required when it was queued. */
  readonly approvals: number;
  /** Why it was rejected or failed. */
  readonly reason: string | null;
  /** Of its certificate. */
  readonly serial: string | null;
  /** DER of the queued request: exactly what was approved is issued. */
  readonly csr: Buffer;
  readonly format: RequestFormat;
  /** Hex SHA-256 of the SubjectPublicKeyInfo; null if the server generates the key on issuance. */
  readonly spki_sha256: string | null;
  /** The OTP of which it holds one use. */
  readonly otp_id: string | null;
  /** Equal for the same request: a hash of requester, CA, operation, public key (unless generated here) and names. */
  readonly recognition: string;
  /** Time of its status or its submission. */
  readonly changed_at: number;
  /** Who decides now: an administrator here, or a remote CA. */
  readonly decider: 'admin' | 'ca';
  /** The remote CA's ID; null: the outcome of the submission is unknown. */
  readonly reference: string | null;
  /** Since when the working CA does not know it. */
  readonly missing_since: number | null;
  /** As in {@link CertificateRow}. */
  readonly device: string | null;
  readonly device_key: string | null;
  readonly required_device: string | null;
  /** An external service's decision on names and validity when it was queued; null: none. */
  readonly override: RequestOverride | null;
}

/** An administrator who decided. */
export interface Decider {
  /** Identifies the administrator. */
  readonly key: string;
  /** For people. */
  readonly name: string;
}

/** As in `[ca.authorization]`; absent fields stay as requested. */
export interface RequestOverride {
  /** RFC 4514. */
  readonly subject?: string;
  /** As in {@link CertificateRow}. */
  readonly sans?: readonly string[];
  readonly validity_days?: number;
}

/** All given criteria must match. */
export interface RequestFilter extends PageRequest {
  readonly status?: RequestStatus | undefined;
  readonly ca?: string | undefined;
  readonly requester?: string | undefined;
  /** A device's ID in any of its entries. */
  readonly device?: string | undefined;
  /** A part of the subject, a subjectAltName, the requester or the device's ID, ignoring case, or the ID. */
  readonly search?: string | undefined;
  /** Only rows of these labels. */
  readonly labels?: readonly string[] | undefined;
}

export interface Decision {
  readonly id: string;
  /** `pending`: approved, with further approvals required. */
  readonly status: 'approved' | 'rejected' | 'pending';
  readonly reason: string | null;
  readonly decided_at: number;
  /** Deciders before and after this decision; if others decided meanwhile, nothing changes. Absent: unchanged. */
  readonly deciders?: { readonly before: readonly Decider[]; readonly after: readonly Decider[] };
}

/** Lifetimes of queued requests, in milliseconds. */
export interface RequestLifetimes {
  /** From queuing to decision, and from approval to issuance. */
  readonly pending_ttl: number;
  /** After that. */
  readonly retention: number;
}

export const REQUEST_COLUMNS =
  'id, ca, operation, subject, sans, key_type, requester, method, requester_id, requester_issuer, requester_sans, names, status, created_at, decided_at, reason, serial, csr, format, spki_sha256, otp_id, recognition, changed_at, decider, reference, missing_since, device, device_key, required_device, override, decided_by, approvals';

export type StoredRequest = Omit<RequestRow, 'sans' | 'requester_sans' | 'override' | 'decided_by'> & {
  readonly decided_by: string;
  readonly sans: string;
  readonly requester_sans: string;
  readonly override: string | null;
};

export const toRequestRow = (stored: StoredRequest): RequestRow => ({
  ...stored,
  sans: readSans(stored.sans, `request ${stored.id}`),
  requester_sans: readSans(stored.requester_sans, `the requester of request ${stored.id}`),
  override: stored.override === null ? null : readOverride(stored.override, stored.id),
  decided_by: readDeciders(stored.decided_by, stored.id),
});

type DecidedRequest = Pick<StoredRequest, 'ca' | 'device_key' | 'required_device' | 'decided_by'> & {
  /** 1: it is pending here. */
  readonly waits: number;
};

const toStoredRequest = (row: RequestRow): StoredRequest => ({
  ...row,
  sans: JSON.stringify(row.sans),
  requester_sans: JSON.stringify(row.requester_sans),
  override: row.override === null ? null : JSON.stringify(row.override),
  decided_by: JSON.stringify(row.decided_by),
});

const DECIDERS = Type.Array(Type.Object({ key: Type.String(), name: Type.String() }));
const OVERRIDE = Type.Object({
  subject: Type.Optional(Type.String()),
  sans: Type.Optional(Type.Array(Type.String())),
  validity_days: Type.Optional(Type.Number()),
});

function readOverride(json: string, id: string): RequestOverride {
  const value: unknown = JSON.parse(json);
  if (Check(OVERRIDE, value)) return value;
  throw storeFailed(`request ${id}: invalid override`);
}

function readDeciders(json: string, id: string): readonly Decider[] {
  const value: unknown = JSON.parse(json);
  if (Check(DECIDERS, value)) return value;
  throw storeFailed(`request ${id}: decided_by is not a list of deciders`);
}

/** Requests expired per transaction, so that others do not wait long. */
const EXPIRED_AT_ONCE = 500;

const BY_ID = `SELECT ${REQUEST_COLUMNS} FROM request WHERE id = ?`;
const NEWEST = `SELECT ${REQUEST_COLUMNS} FROM request WHERE recognition = ?
  AND (${inStatus(ANSWERED)} OR (status = 'failed' AND final = 1)) ORDER BY position DESC LIMIT 1`;

/** A failed or expired request is over: the same request may be queued again, unless it failed permanently. */
export const findNewest = (db: Database, recognition: string): Operation<RequestRow | undefined> =>
  rowOf(db.get<StoredRequest>(NEWEST, recognition));

function* rowOf(stored: Operation<StoredRequest | undefined>): Operation<RequestRow | undefined> {
  const row = yield* stored;
  return row === undefined ? undefined : toRequestRow(row);
}

export function requestReads(db: Database) {
  const list = db.list<StoredRequest>({ name: 'request', table: 'request', columns: REQUEST_COLUMNS });
  return {
    /** The newest pending, approved, issued or rejected request with this recognition. */
    findRequest: quickRead((recognition: string) => findNewest(db, recognition)),
    getRequest: quickRead((id: string) => rowOf(db.get<StoredRequest>(BY_ID, id))),
    /** In order of arrival. */
    listRequests: slowRead((filter: RequestFilter): Operation<Page<RequestRow>> => {
      const { device, requester, status, ca, search, labels } = filter;
      const found = someContains(db.dialect, ['subject', 'sans', 'requester', 'device'], 'id = @search');
      const conditions = given([
        { value: device, sql: 'device = @device', index: 'request_by_device_id' },
        { value: requester, sql: 'requester = @requester', index: 'request_by_requester' },
        { value: status, sql: 'status = @status', index: 'request_in_status' },
        { value: ca, sql: 'ca = @ca', index: 'request_by_ca' },
        { value: labels, sql: 'ca = ANY(@labels)' },
        { value: search, sql: found },
      ]);
      return list(conditions, { ...filter, search: fold(search) }, filter, toRequestRow);
    }),
  };
}

const ADD = insertInto('request', REQUEST_COLUMNS);

export const insertRequest = (db: Database, row: RequestRow): Operation<number> => db.run(ADD, toStoredRequest(row));

const DECIDED = `SELECT ca, device_key, required_device, decided_by, CASE WHEN ${mayGo('approve')} THEN 1 ELSE 0 END AS waits
  FROM request WHERE id = ? FOR UPDATE`;
const DECIDE = `UPDATE request SET status = @status, reason = @reason, decided_by = @decided_by,
  decided_at = CASE @status WHEN 'pending' THEN decided_at ELSE @decided_at END,
  changed_at = CASE @status WHEN 'pending' THEN changed_at ELSE @decided_at END
  WHERE id = @id AND ${mayGo('approve')}`;
const FAIL = `UPDATE request SET ${goes('refuse')}, reason = @reason, changed_at = @now WHERE id = @id AND ${mayGo('refuse')}
  RETURNING otp_id, ca`;
const DUE = `SELECT id FROM request WHERE ${mayGo('expire')} AND changed_at <= @before
  ORDER BY position LIMIT ${EXPIRED_AT_ONCE} FOR UPDATE SKIP LOCKED`;
const EXPIRE = `UPDATE request SET ${goes('expire')}, changed_at = @now WHERE id = ANY(@ids) AND ${mayGo('expire')}
  RETURNING id, ca, requester, decided_at`;

export const newRequest = ({ id, recognition, otp_id, device_key }: RequestRow) => [
  ...lock.request(id),
  ...lock.recognition(recognition),
  ...lock.token(otp_id),
  ...lock.deviceOf(device_key),
];
const queued = (row: RequestRow, _supersedes: string | null, _events: Events, rescued?: RescuedRequest) => [
  ...newRequest(row),
  ...lock.rescued(rescued),
];
const decided = ({ id }: Decision) => lock.ending(id);

/** Writes to queued requests; issuance-store.ts claims them and records their certificates. */
export function requestWrites(db: Database) {
  const over = `WHERE ${inStatus(ENDED)} AND changed_at <= ? LIMIT ${PURGED_AT_ONCE}`;
  const purge = `DELETE FROM request WHERE ${db.dialect.among('request', 'position', over)}`;
  return {
    /**
     * Takes the OTP use (if any) and queues a `pending` request. If {@link findRequest} finds one other than
     * `supersedes`, returns that one, and nothing changes.
     */
    queueRequest: write(
      queued,
      function* (
        row: RequestRow,
        supersedes: string | null,
        events: Events,
        rescued?: RescuedRequest,
      ): Write<'queued' | 'otp-unusable' | 'device-refused' | 'rescue-over' | RequestRow> {
        const { id, otp_id, recognition, device_key, required_device, ca, created_at } = row;
        const [known, may] = yield* db.together([
          findNewest(db, recognition),
          mayIssue(db, required_device, ca, created_at),
        ]);
        if (known !== undefined && known.id !== supersedes) return undone(known);
        if (!may) return undone('device-refused');
        if ((yield* takeRescue(db, id, rescued, created_at)) !== 'taken') return undone('rescue-over');
        // The lookup above found an identical request in progress: it is in the queue.
        const repeatable = { recognition, retry_window: 0 };
        const wanted = { otp_id, request_id: id, now: created_at };
        if ((yield* takeOtpUse(db, wanted, repeatable)) !== 'taken') return undone('otp-unusable');
        yield* insertRequest(db, row);
        return done('queued', events, device_key);
      },
    ),
    /**
     * Decides a pending request of this server, or counts an approval. The events are committed with `decided` only.
     * `device-refused`: its device may no longer have a certificate. `overtaken`: another administrator decided
     * meanwhile.
     */
    decideRequest: write(decided, function* ({ deciders, ...decision }: Decision, events: Events): Write<
      'decided' | 'not-pending' | 'device-refused' | 'overtaken' | 'unknown'
    > {
      const row = yield* db.get<DecidedRequest>(DECIDED, decision.id);
      if (row === undefined) return undone('unknown');
      const { ca, device_key, required_device, waits } = row;
      if (waits === 0) return undone('not-pending');
      if (deciders !== undefined && row.decided_by !== JSON.stringify(deciders.before)) return undone('overtaken');
      if (decision.status !== 'rejected' && !(yield* mayIssue(db, required_device, ca, decision.decided_at)))
        return undone('device-refused');
      const decided_by = deciders === undefined ? row.decided_by : JSON.stringify(deciders.after);
      return (yield* db.run(DECIDE, { ...decision, decided_by })) === 1
        ? done('decided', events, device_key)
        : undone('not-pending');
    }),
    /**
     * Ends an approved request that the CA permanently rejects; returns its OTP use. `false`: it is not approved, or its
     * issuance is in progress; nothing changed.
     */
    failRequest: write(
      lock.ending,
      function* (id: string, reason: string, now: number, events: Events): Write<boolean> {
        const ended = yield* db.get<Ended>(FAIL, { id, reason, now });
        if (ended === undefined) return undone(false);
        return done(true, [...events, ...(yield* giveBackOtpUse(db, ended.otp_id, ended.ca, id))]);
      },
    ),
    /**
     * Ends requests older than `pending_ttl` (audited as `request.expired`); deletes a batch that ended longer ago than
     * `retention` (retention-store.ts). Does not return OTP uses.
     */
    expireRequests: write(EVERYTHING, function* ({ pending_ttl, retention }: RequestLifetimes, now: number): Write<{
      expired: number;
      purged: number;
    }> {
      // Lock, then check again: a process may have begun to issue one.
      const rows = yield* db.all<{ id: string }>(DUE, { before: now - pending_ttl });
      const ids = rows.map(({ id }) => id);
      const expired = ids.length === 0 ? [] : yield* db.all<Expired>(EXPIRE, { ids, now });
      const purged = yield* db.run(purge, now - retention);
      return done({ expired: expired.length, purged }, expired.map(expiredEvent));
    }),
  };
}

/** What the return of its OTP use needs. */
export type Ended = Pick<RequestRow, 'otp_id' | 'ca'>;

type Expired = Pick<RequestRow, 'id' | 'ca' | 'requester' | 'decided_at'>;

function expiredEvent({ id, ca, requester, decided_at }: Expired): AuditEvent {
  const detail = decided_at === null ? 'nobody decided in time' : 'approved, but not collected in time';
  return requestEnded('request.expired', { subject: requester, ca, request_id: id }, detail);
}

export type RequestStore = Calls<ReturnType<typeof requestReads> & ReturnType<typeof requestWrites>>;
