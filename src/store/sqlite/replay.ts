/** Brings a restored database up to what the audit log tells of since: what must not be forgotten. */
import type { AuditRecord } from '../../audit/event.ts';
import type { ParsedRecord } from '../../audit/record.ts';
import { isAuditRecord } from '../../audit/record.ts';
import { isCrlReason } from '../../pki/x509/crl.ts';
import type { Db } from './database.ts';
import { fold } from '../page.ts';
import { statisticsWriter } from './audit-log.ts';

/** How many records of each kind were applied, and what they tell of that is lost. */
export interface Replayed {
  readonly applied: ReadonlyMap<string, number>;
  readonly lost: ReadonlyMap<string, number>;
}

/** The end of a certificate of which the record does not say it. */
const NOT_AFTER_UNKNOWN = 3650 * 86_400_000;

type Count = Map<string, number>;
type Handler = (record: AuditRecord, time: number) => void;

/** Applies records one by one, in the transaction of the caller. */
export function replayer(db: Db): { readonly apply: (record: ParsedRecord) => void; readonly replayed: Replayed } {
  const applied: Count = new Map();
  const lost: Count = new Map();
  const handlers = {
    ...certificateHandlers(db, applied),
    ...tokenHandlers(db, applied),
    ...otherHandlers(db, applied),
  };
  const byType = new Map<string, Handler>(Object.entries(handlers));
  const keep = db.prepare<[ParsedRecord]>(
    'INSERT INTO audit (seq, time, type, line) VALUES (@seq, @time, @type, @line)',
  );
  const count = statisticsWriter(db);
  return {
    apply(parsed) {
      const record: unknown = JSON.parse(parsed.line);
      if (!isAuditRecord(record)) return;
      byType.get(record.type)?.(record, parsed.time);
      const what = record.outcome === 'success' ? LOST[record.type] : undefined;
      if (what !== undefined) add(lost, what);
      keep.run(parsed);
      count([parsed]);
    },
    replayed: { applied, lost },
  };
}

/** What records tell of and do not hold. */
const LOST: Readonly<Record<string, string>> = {
  'certificate.issued': 'certificates issued since, of which only the names, the serial number and the end are known',
  'certificate.imported':
    'certificates taken in since, of which only the names, the serial number and the end are known',
  'otp.created': 'tokens made since: nobody can use them',
  'request.queued': 'requests queued since: their clients have to send them again',
  'request.approved': 'approvals since: the requests wait for a decision again, unless they were issued',
  'device.created': 'devices registered since',
  'device.changed': 'changes of devices since, but for `enabled`',
  'lockout.started': 'lockouts since',
};

const add = (counts: Count, what: string): void => void counts.set(what, (counts.get(what) ?? 0) + 1);

function certificateHandlers(db: Db, applied: Count): Record<string, Handler> {
  const insert = db.prepare<object>(
    `INSERT INTO certificate (ca, label, serial, subject, subject_folded, sans, not_before, not_after, der, fingerprint_sha256, requester, method,
     request_id) VALUES (@ca, @label, @serial, @subject, @subject_folded, @sans, @not_before, @not_after, x'', '', @requester, @method,
     @request_id) ON CONFLICT DO NOTHING`,
  );
  const revoke = db.prepare<object>(
    `UPDATE certificate SET revoked_at = @time, reason = @reason, invalidity_date = @invalidity_date
     WHERE ca = @ca AND serial = @serial AND revoked_at IS NULL`,
  );
  const close = closeReservation(db);
  const endRequest = db.prepare<{ id: string; time: number; reason: string }>(
    `UPDATE request SET status = 'failed', reason = @reason, changed_at = @time
     WHERE id = @id AND status IN ('pending', 'approved')`,
  );
  const know = (record: AuditRecord, time: number): boolean => {
    const { ca, label = null, serial, request_id = '' } = record;
    if (ca === undefined || serial === undefined) return false;
    const subject = record.certificate_subject ?? '';
    const end = record.certificate_not_after;
    return (
      insert.run({
        ca,
        label,
        serial,
        subject,
        subject_folded: fold(subject),
        sans: JSON.stringify(record.certificate_sans ?? []),
        not_before: time,
        not_after: end === undefined ? time + NOT_AFTER_UNKNOWN : Date.parse(end),
        requester: record.subject ?? '',
        method: record.method ?? '',
        request_id,
      }).changes === 1
    );
  };
  return {
    'certificate.issued': (record, time) => {
      if (know(record, time)) add(applied, 'certificates issued');
      const id = record.request_id ?? '';
      close(id);
      endRequest.run({ id, time, reason: 'it was issued before the store was restored; send the request again' });
    },
    'certificate.imported': (record, time) => {
      if (know(record, time)) add(applied, 'certificates taken in');
    },
    // No certificate came of it; whether its use went back, a record of its own says.
    'certificate.failed': (record) => close(record.request_id ?? ''),
    'certificate.revoked': (record, time) => {
      know(record, time);
      const { ca, serial, revocation_reason: reason = '', invalidity_date: since } = record;
      const revocation = {
        ca,
        serial,
        time,
        reason: isCrlReason(reason) ? reason : 'unspecified',
        invalidity_date: since === undefined ? null : Date.parse(since),
      };
      if (revoke.run(revocation).changes === 1) add(applied, 'revocations');
    },
  };
}

function closeReservation(db: Db): (request_id: string) => void {
  const close = db.prepare<[string]>('DELETE FROM reservation WHERE request_id = ?');
  return (request_id) => void close.run(request_id);
}

function tokenHandlers(db: Db, applied: Count): Record<string, Handler> {
  const use = db.prepare<[string]>('UPDATE otp SET uses = uses + 1 WHERE id = ? AND uses < max_uses');
  const giveBack = db.prepare<[string]>('UPDATE otp SET uses = uses - 1 WHERE id = ? AND uses > 0');
  const forget = db.prepare<[string]>('DELETE FROM otp_use WHERE request_id = ?');
  const revoke = db.prepare<[number, string]>('UPDATE otp SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL');
  const change = db.prepare<[number, string]>('UPDATE otp SET expires_at = ? WHERE id = ?');
  const close = closeReservation(db);
  const token = ({ detail = '' }: AuditRecord): string => /^token (\S+)/.exec(detail)?.[1] ?? '';
  return {
    'otp.used': (record) => {
      if (use.run(token(record)).changes === 1) add(applied, 'uses of tokens');
    },
    'otp.returned': (record) => {
      if (giveBack.run(token(record)).changes === 1) add(applied, 'uses of tokens that were given back');
      forget.run(record.request_id ?? '');
      close(record.request_id ?? '');
    },
    'otp.changed': (record) => {
      const [, until = ''] = / until (\S+)$/.exec(record.detail ?? '') ?? [];
      const end = Date.parse(until);
      if (!Number.isNaN(end) && change.run(end, token(record)).changes === 1) add(applied, 'changes of tokens');
    },
    'otp.revoked': (record, time) => {
      if (revoke.run(time, token(record)).changes === 1) add(applied, 'revocations of tokens');
    },
  };
}

function otherHandlers(db: Db, applied: Count): Record<string, Handler> {
  const enable = db.prepare<{ id: string; enabled: number; time: number }>(
    'UPDATE device SET enabled = @enabled, changed_at = @time WHERE id = @id',
  );
  const remove = db.prepare<[string], { key: string }>('DELETE FROM device WHERE id = ? RETURNING key');
  const isDevice = db.prepare<[string], { id: string }>('SELECT id FROM device WHERE id = ?');
  const end = db.prepare<{ id: string; status: string; reason: string | null; time: number }>(
    `UPDATE request SET status = @status, reason = @reason, decided_at = @time, changed_at = @time
     WHERE id = @id AND status IN ('pending', 'approved')`,
  );
  const number = db.prepare<[string, number]>(
    `INSERT INTO crl (ca, last_number) VALUES (?, ?)
     ON CONFLICT (ca) DO UPDATE SET last_number = max(last_number, excluded.last_number)`,
  );
  /** An id may hold a colon, so the longest that is one. */
  const device = (detail = ''): { id: string; what: string } | undefined => {
    const text = detail.slice('device '.length);
    for (let at = text.length; at > 0; at = text.lastIndexOf(': ', at - 1)) {
      const id = text.slice(0, at);
      if (isDevice.get(id) !== undefined) return { id, what: text.slice(at) };
    }
    return undefined;
  };
  const setEnabled: Handler = ({ detail }, time) => {
    const known = device(detail);
    const [, state] = /\benabled (true|false)\b/.exec(known?.what ?? '') ?? [];
    if (known === undefined || state === undefined) return;
    enable.run({ id: known.id, enabled: state === 'true' ? 1 : 0, time });
    add(applied, state === 'true' ? 'devices enabled' : 'devices disabled');
  };
  const ended =
    (status: string): Handler =>
    ({ request_id = '', detail = null }, time) => {
      if (end.run({ id: request_id, status, reason: detail, time }).changes === 1) add(applied, `requests ${status}`);
    };
  return {
    'device.changed': setEnabled,
    'device.deleted': ({ detail }) => {
      const known = device(detail);
      if (known !== undefined && remove.get(known.id) !== undefined) add(applied, 'devices deleted');
    },
    'request.rejected': ended('rejected'),
    'request.expired': ended('expired'),
    'crl.issued': ({ ca, detail = '' }) => {
      const [, taken] = /^number (\d+)/.exec(detail) ?? [];
      if (ca === undefined || taken === undefined) return;
      number.run(ca, Number(taken));
      add(applied, 'CRL numbers');
    },
  };
}
