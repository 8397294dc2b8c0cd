/**
 * Who holds certificates, and in which state: derived in the background from the certificates, and from the audit records of what has
 * changed. Any node may derive; the result is the same.
 */
import { hash } from 'node:crypto';
import { OID } from '../pki/der/oids.ts';
import { unlessMalformed } from '../pki/der/der.ts';
import { type Certificate, parseCertificate } from '../pki/x509/certificate.ts';
import { comparableGeneralNames } from '../pki/x509/general-name.ts';
import { comparableName, formatName } from '../pki/x509/name.ts';
import { done, type Events, undone } from './calls/calls.ts';
import type { StoredCertificate } from './certificate-store.ts';
import { DEVICE_ID } from './device-store.ts';
import { derivation, deviceHolder, type FleetRules, NO_HOLDER } from './holder-derivation.ts';
import { type Calls, lock, quickRead, slowRead, write } from './operation.ts';
import type { Database, Operation, Write } from './port.ts';
import { ISSUED } from './renewal-store.ts';
import { requestedWith } from './use-store.ts';

/** A certificate as an audit record of its use names it. */
export interface UsedCertificate {
  readonly serial: string;
  /** RFC 4514. */
  readonly issuer?: string | undefined;
}

/** A certificate that authenticated nobody. */
interface PresentedCertificate {
  readonly serial: string;
  /** Hex SHA-256 of it, and of its ECDSA twin. */
  readonly fingerprints: readonly string[];
}

/** A certificate that was recorded, revoked or released. */
export interface ChangedCertificate {
  readonly serial: string;
  readonly ca: string;
  /** For a certificate that was issued now: what it was requested with. */
  readonly issued?: { readonly with: UsedCertificate | undefined; readonly renews: boolean };
}

export interface Rejection {
  readonly at: number;
  readonly code: string;
  readonly message: string;
}

/** A request that was queued, with the certificate that it was sent with. */
interface QueuedRenewal {
  readonly request_id: string;
  readonly certificate: UsedCertificate;
}

export type RejectedRenewal = Rejection &
  (
    | { readonly certificate: UsedCertificate }
    | { readonly certificate: PresentedCertificate }
    | QueuedRenewal
    /** Key of a device. A failure, but no renewal. */
    | { readonly device_key: string }
  );

/** How far the derivation is, by name. */
export type FleetProgress = ReadonlyMap<string, { readonly upto: number; readonly detail: string | null }>;

export interface FleetChanges {
  readonly certificates?: readonly ChangedCertificate[];
  readonly rejections?: readonly RejectedRenewal[];
  readonly queued?: readonly QueuedRenewal[];
  /** Keys of devices that were added, changed or removed. */
  readonly devices?: readonly string[];
  /** Certificates that expired before were deleted. */
  readonly purgedBefore?: number;
}

/** The next part of the tables that a walk passes. */
export type Walked = 'certificate' | 'device';

/** Holders per call, so that others do not wait long. */
const AT_ONCE = 100;

const BY_ID = `${ISSUED} WHERE serial = ? AND ca = ?`;
const BY_SERIAL = `${ISSUED} WHERE serial = ?`;
const WALK = {
  certificate: `SELECT position, serial, ca, not_after FROM certificate WHERE position > ? ORDER BY position LIMIT ${AT_ONCE}`,
  device: `SELECT position, key FROM device WHERE position > ? ORDER BY position LIMIT ${AT_ONCE}`,
} as const;

type Named = StoredCertificate & { readonly issued_at: number };

// A certificate that is imported may be older than a failure.
const TRACK = `INSERT INTO certificate_use (serial, ca, holder, issued_at, renewed_serial, renewed_ca, first_failed_at)
  VALUES (@serial, @ca, @holder, @issued_at, @renewed_serial, @renewed_ca,
    (SELECT min(first_failed_at) FROM certificate_use WHERE holder = @holder AND first_failed_at >= @issued_at))
  ON CONFLICT (serial, ca) DO UPDATE SET holder = excluded.holder, issued_at = excluded.issued_at,
    renewed_serial = coalesce(certificate_use.renewed_serial, excluded.renewed_serial),
    renewed_ca = coalesce(certificate_use.renewed_ca, excluded.renewed_ca),
    first_failed_at = coalesce(certificate_use.first_failed_at, excluded.first_failed_at)
  RETURNING renewed_serial AS serial, renewed_ca AS ca`;
// The holders of a certificate that was renewed, and of those that were issued in its renewals.
const RELATED = `SELECT holder FROM certificate_use WHERE serial = @serial AND ca = @ca
  UNION ALL SELECT holder FROM (${requestedWith('holder', '@serial', '@ca')}) AS renewals`;
const HELD_BY_DEVICE = `SELECT DISTINCT u.holder FROM certificate AS c
  JOIN certificate_use AS u ON u.serial = c.serial AND u.ca = c.ca WHERE c.device_key = ? AND u.holder IS NOT NULL`;
const FIRST_REJECTED = `UPDATE certificate_use SET first_failed_at = @at
  WHERE holder = @key AND issued_at <= @at AND (first_failed_at IS NULL OR first_failed_at > @at)`;
const REJECTED = `UPDATE holder SET last_failed_at = @at, last_code = @code, last_message = @message
  WHERE key = @key AND (last_failed_at IS NULL OR last_failed_at <= @at)`;
const FAILED = `UPDATE holder SET last_failed_at = @at, last_code = @code, last_message = @message
  WHERE device = @id AND device_key = @key AND (last_failed_at IS NULL OR last_failed_at <= @at)`;
/** What was read for other certificates that are tracked in the same transaction. */
interface Tracked {
  /** What other certificates were requested with, by serial number and issuer. */
  readonly found: Map<string, Named | undefined>;
  /** IDs of renewed certificates whose related holders are among those to derive. */
  readonly related: Set<string>;
}

const certificates = new WeakMap<Named, Certificate | undefined>();

/** The certificate in a row, which is parsed once. */
function parsed(row: Named): Certificate | undefined {
  if (!certificates.has(row))
    certificates.set(
      row,
      row.der.length === 0 ? undefined : unlessMalformed(() => parseCertificate(row.der), undefined),
    );
  return certificates.get(row);
}

/**
 * The key of a certificate's holder. One of a CA, a registration authority or this server has a key that is in no list.
 * @param at where, and for which device
 */
function holderOf(row: Named, { label, ca, device_key }: Pick<Named, 'label' | 'ca' | 'device_key'> = row): string {
  const certificate = parsed(row);
  const names = certificate
    ? [comparableName(certificate.subject), comparableGeneralNames(certificate.subjectAltNames)]
    : [row.subject, row.sans.toLowerCase()];
  const key = hash('sha256', JSON.stringify([label ?? ca, ...names, device_key]), 'base64url');
  const isHeld = row.method !== 'automatic' && certificate?.isCa !== true;
  return isHeld && certificate?.extKeyUsage?.includes(OID.cmcRA) !== true ? key : `${NO_HOLDER}${key}`;
}

export function holderReads(db: Database) {
  return {
    fleetProgress: quickRead(function* (): Operation<FleetProgress> {
      const rows = yield* db.all<{ name: string; upto: number; detail: string | null }>`
        SELECT name, upto, detail FROM fleet_progress`;
      return new Map(rows.map(({ name, ...progress }) => [name, progress]));
    }),
    /** Whether the state of a holder is to be derived. */
    isHolderDue: quickRead(function* (now: number): Operation<boolean> {
      const row = yield* db.get`SELECT 1 AS found FROM holder WHERE next_at IS NOT NULL AND next_at <= ${now} LIMIT 1`;
      return row !== undefined;
    }),
    /** The audit records of a chain after one, of these types. `last`: the last record that was looked at. */
    auditEvents: slowRead(function* (
      node: string,
      after: number,
      types: readonly string[],
      limit: number,
    ): Operation<{ readonly lines: readonly string[]; readonly last: number }> {
      const rows = yield* db.all<{ seq: number; type: string; line: string }>(
        `SELECT seq, type, CASE WHEN type = ANY(@types) THEN line ELSE '' END AS line FROM audit
         WHERE ${db.dialect.auditNode} = @node AND seq > @after ORDER BY seq LIMIT ${limit}`,
        { node, after, types },
      );
      return { lines: rows.flatMap(({ line }) => (line === '' ? [] : [line])), last: rows.at(-1)?.seq ?? after };
    }),
  };
}

const DEVICE_NAMED = `SELECT ${DEVICE_ID} AS id FROM device WHERE key = ?`;

export function holderWrites(db: Database) {
  const derive = derivation(db);

  /** A certificate in the store, by what a record of its use says. */
  function* find(used: UsedCertificate): Operation<Named | undefined> {
    const rows = yield* db.all<Named>(BY_SERIAL, used.serial);
    return rows.find((row) => {
      const certificate = parsed(row);
      return used.issuer === undefined || certificate === undefined || formatName(certificate.issuer) === used.issuer;
    });
  }

  /** As {@link find}; a certificate with which an authority requests many is read once. */
  function* findOnce(used: UsedCertificate, { found }: Tracked): Operation<Named | undefined> {
    const id = `${used.serial} ${used.issuer}`;
    if (!found.has(id)) found.set(id, yield* find(used));
    return found.get(id);
  }

  /** Determines the holder of a certificate. @returns its key, and those of others whose states may change */
  function* track(
    { serial, ca, issued }: ChangedCertificate,
    rules: FleetRules,
    tracked: Tracked,
  ): Operation<readonly string[]> {
    const row = yield* db.get<Named>(BY_ID, serial, ca);
    if (row === undefined) return [];
    const holder = holderOf(row);
    const before = issued?.with && (yield* findOnce(issued.with, tracked));
    const isRenewal = before !== undefined && (issued?.renews === true || holderOf(before, row) === holder);
    const renewed = isRenewal ? before : undefined;
    const { issued_at } = row;
    const [renewed_serial, renewed_ca] = [renewed?.serial ?? null, renewed?.ca ?? null];
    const use = { serial, ca, holder, issued_at, renewed_serial, renewed_ca };
    const source = yield* db.get<{ serial: string | null; ca: string }>(TRACK, use);
    if (issued !== undefined && !rules.expected(row.label ?? row.ca)) return [];
    const devices = row.device_key === null ? [] : [deviceHolder(row.device_key)];
    const id = `${source?.serial} ${source?.ca}`;
    if (source === undefined || source.serial === null || tracked.related.has(id)) return [holder, ...devices];
    tracked.related.add(id);
    const related = yield* db.all<{ holder: string | null }>(RELATED, source);
    return [holder, ...related.flatMap((use) => use.holder ?? []), ...devices];
  }

  function* reject(rejection: RejectedRenewal): Operation<readonly string[]> {
    const { at, code, message } = rejection;
    if ('device_key' in rejection) {
      const { device_key: key } = rejection;
      const device = yield* db.get<{ id: string }>(DEVICE_NAMED, key);
      if (device !== undefined) yield* db.run(FAILED, { at, code, message, key, ...device });
      return [];
    }
    const key = yield* 'request_id' in rejection ? queuedHolder(rejection) : rejectedHolder(rejection.certificate);
    if (key === undefined) return [];
    yield* db.run(FIRST_REJECTED, { at, key });
    yield* db.run(REJECTED, { at, code, message, key });
    return [key];
  }

  function* rejectedHolder(certificate: UsedCertificate | PresentedCertificate): Operation<string | undefined> {
    if (!('fingerprints' in certificate)) {
      const row = yield* find(certificate);
      return row && holderOf(row);
    }
    const { serial, fingerprints } = certificate;
    const rows = yield* db.all<Named>(BY_SERIAL, serial);
    const row = rows.find(({ fingerprint_sha256 }) => fingerprints.includes(fingerprint_sha256));
    return row && holderOf(row);
  }

  /** Whose renewal a queued request is; undefined: it is no renewal. */
  function* queuedHolder({ request_id, certificate }: QueuedRenewal): Operation<string | undefined> {
    const row = yield* find(certificate);
    const request = yield* db.get<{ operation: string; subject: string; sans: string }>`
      SELECT operation, subject, sans FROM request WHERE id = ${request_id}`;
    if (row === undefined || request === undefined) return undefined;
    const hasSameNames = request.subject === row.subject && request.sans.toLowerCase() === row.sans.toLowerCase();
    return request.operation === 'simplereenroll' || hasSameNames ? holderOf(row) : undefined;
  }

  function* queue(queued: QueuedRenewal): Operation<readonly string[]> {
    const key = yield* queuedHolder(queued);
    if (key === undefined) return [];
    yield* db.run`UPDATE holder SET request_id = coalesce(request_id || ' ', '') || ${queued.request_id} WHERE key = ${key}`;
    return [key];
  }

  function* changed(changes: FleetChanges, rules: FleetRules, now: number): Operation<void> {
    const keys = new Set<string>();
    const add = (some: readonly string[]): void => some.forEach((key) => keys.add(key));
    const tracked: Tracked = { found: new Map(), related: new Set() };
    for (const certificate of changes.certificates ?? []) add(yield* track(certificate, rules, tracked));
    // What a rejection changes must exist.
    yield* derive([...keys], rules, now);
    keys.clear();
    for (const renewal of changes.queued ?? []) add(yield* queue(renewal));
    for (const device of changes.devices ?? []) {
      const held = yield* db.all<{ holder: string }>(HELD_BY_DEVICE, device);
      add([deviceHolder(device), ...held.map(({ holder }) => holder)]);
    }
    if (changes.devices !== undefined) yield* derive([...keys], rules, now);
    for (const rejection of changes.rejections ?? []) add(yield* reject(rejection));
    if (changes.purgedBefore !== undefined) {
      const gone = yield* db.all<{ key: string }>`SELECT key FROM holder
        WHERE state IS NOT NULL AND state = 'expired' AND ends < ${changes.purgedBefore} AND NOT EXISTS (SELECT 1
          FROM certificate WHERE certificate.serial = holder.serial AND certificate.ca = holder.ca)`;
      add(gone.map(({ key }) => key));
    }
    yield* derive([...keys], rules, now);
  }

  const setProgress = (name: string, upto: number, detail: string | null) =>
    db.run`INSERT INTO fleet_progress (name, upto, detail) VALUES (${name}, ${upto}, ${detail})
      ON CONFLICT (name) DO UPDATE SET upto = excluded.upto, detail = excluded.detail`;

  return {
    /**
     * Applies changes, and notes how far the derivation is. `false`: another node has applied them.
     * @param step the progress, before and after
     */
    applyFleetChanges: write(
      lock.fleet,
      function* (
        changes: FleetChanges,
        rules: FleetRules,
        now: number,
        step?: { readonly name: string; readonly from: number; readonly upto: number },
      ): Write<boolean> {
        if (step !== undefined) {
          const { name, from, upto } = step;
          const row = yield* db.get<{ upto: number }>`SELECT upto FROM fleet_progress WHERE name = ${name}`;
          if ((row?.upto ?? 0) !== from) return undone(false);
          yield* setProgress(name, upto, null);
        }
        yield* changed(changes, rules, now);
        return done(true, []);
      },
    ),
    /** Sets the progress of a name. */
    setFleetProgress: write(lock.fleet, function* (name: string, upto: number, detail: string | null): Write<void> {
      yield* setProgress(name, upto, detail);
      return done(undefined, []);
    }),
    /** Derives the holders of the next rows of a table. `false`: there are no more. */
    walkFleet: write(lock.fleet, function* (table: Walked, rules: FleetRules, now: number): Write<boolean> {
      const progress = yield* db.get<{ upto: number; detail: string | null }>`
        SELECT upto, detail FROM fleet_progress WHERE name = ${table}`;
      if (progress === undefined) return undone(false);
      const rows = yield* db.all<{ position: number; serial: string; ca: string; not_after: number; key: string }>(
        WALK[table],
        progress.upto,
      );
      const last = rows.at(-1);
      if (last === undefined) return undone(false);
      const forgotten = rules.forget === 0 ? -Infinity : now - rules.forget;
      const certificates = rows.filter(({ not_after }) => not_after >= forgotten);
      const devices = rows.map(({ key }) => key);
      yield* changed(table === 'device' ? { devices } : { certificates }, rules, now);
      yield* setProgress(table, last.position, progress.detail);
      return done(true, []);
    }),
    /** Derives holders whose state time may have changed. `false`: there are no more. */
    deriveDueHolders: write(lock.fleet, function* (rules: FleetRules, now: number): Write<boolean> {
      const due = yield* db.all<{ key: string }>`SELECT key FROM holder WHERE next_at IS NOT NULL AND next_at <= ${now}
        ORDER BY next_at LIMIT ${AT_ONCE}`;
      if (due.length === 0) return undone(false);
      const keys = due.map(({ key }) => key);
      yield* derive(keys, rules, now);
      return done(due.length === AT_ONCE, []);
    }),
    /** Notes that the states which these holders entered are reported. */
    reportHolders: write(
      lock.fleet,
      function* (
        reported: readonly { readonly key: string; readonly state: string }[],
        now: number,
        events: Events,
      ): Write<void> {
        for (const { key, state } of reported) {
          yield* db.run(MARK, { key, state: `${state} ` });
          yield* db.run`UPDATE holder SET entered_at = NULL, reported_at = ${now} WHERE key = ${key}`;
        }
        return done(undefined, events);
      },
    ),
  };
}

const MARK = `UPDATE certificate_use SET reported = reported || @state
  WHERE EXISTS (SELECT 1 FROM holder WHERE key = @key AND holder.serial = certificate_use.serial AND holder.ca = certificate_use.ca)`;

/** The holders of certificates. */
export type HolderStore = Calls<ReturnType<typeof holderReads> & ReturnType<typeof holderWrites>>;
