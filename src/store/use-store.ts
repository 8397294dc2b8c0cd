/** What was seen of certificates on the EST listener. */
import { hash } from 'node:crypto';
import { done } from './calls/calls.ts';
import { type Calls, lock, quickRead, slowRead, write } from './operation.ts';
import type { Database, Operation, Write } from './port.ts';

/** A connection that a request came over. */
export interface UsedConnection {
  /** null: unknown, because a proxy has it. */
  readonly tls_version: 'TLSv1.2' | 'TLSv1.3' | null;
  /** Whether the path of the request named the label. */
  readonly names_label: boolean;
}

/** The first and the last time that a certificate authenticated since the previous report, and its latest connection. */
export interface CertificateUse extends UsedConnection {
  readonly serial: string;
  /** Hex SHA-256 of the certificate, and of its ECDSA twin. */
  readonly fingerprints: readonly string[];
  readonly first_used_at: number;
  readonly last_used_at: number;
  readonly connected_at: number;
  /** Answers of `cacerts`: the certificates in DER, one after another. */
  readonly chains: readonly Buffer[];
}

/** The request that a certificate was issued for. */
export interface IssuingRequest extends UsedConnection {
  readonly serial: string;
}

/** A request for the renewal information of a certificate. */
export interface RenewalInfoRequest {
  readonly ca: string;
  readonly serial: string;
  readonly at: number;
}

export interface SeenUses {
  readonly uses: readonly CertificateUse[];
  readonly issued: readonly IssuingRequest[];
  readonly renewalInfo: readonly RenewalInfoRequest[];
}

/** What is known of the use of a certificate. Absent facts are null. */
export interface KnownUse extends Pick<UsedConnection, 'tls_version'> {
  /** Key of its holder. */
  readonly holder: string | null;
  /** The certificate with which it was requested, if that was a renewal. */
  readonly renewed_serial: string | null;
  readonly renewed_ca: string | null;
  readonly first_used_at: number | null;
  readonly last_used_at: number | null;
  readonly connected_at: number | null;
  readonly names_label: 0 | 1 | null;
  readonly renewal_info_at: number | null;
}

export const USE_COLUMNS =
  'holder, renewed_serial, renewed_ca, first_used_at, last_used_at, connected_at, tls_version, names_label, renewal_info_at';

type CertificateId = Pick<RenewalInfoRequest, 'serial' | 'ca'>;

// Several nodes see a certificate: the earliest first use and the latest last one count.
const USED = `INSERT INTO certificate_use
    (serial, ca, first_used_at, last_used_at, connected_at, tls_version, names_label)
  VALUES (@serial, @ca, @first_used_at, @last_used_at, @connected_at, @tls_version, @names_label)
  ON CONFLICT (serial, ca) DO UPDATE SET
    first_used_at = CASE WHEN certificate_use.first_used_at < excluded.first_used_at
      THEN certificate_use.first_used_at ELSE excluded.first_used_at END,
    last_used_at = excluded.last_used_at, connected_at = excluded.connected_at,
    tls_version = excluded.tls_version, names_label = excluded.names_label
  WHERE certificate_use.last_used_at IS NULL OR certificate_use.last_used_at <= excluded.last_used_at`;
const USED_EARLIER = `UPDATE certificate_use SET first_used_at = @first_used_at
  WHERE serial = @serial AND ca = @ca AND first_used_at > @first_used_at`;

const ISSUED = `INSERT INTO certificate_use (serial, ca, tls_version, names_label)
  SELECT serial, ca, @tls_version, @names_label FROM certificate WHERE serial = @serial
  ON CONFLICT (serial, ca) DO UPDATE SET tls_version = excluded.tls_version, names_label = excluded.names_label
  WHERE certificate_use.first_used_at IS NULL`;

const INFORMED = `INSERT INTO certificate_use (serial, ca, renewal_info_at) VALUES (@serial, @ca, @at)
  ON CONFLICT (serial, ca) DO UPDATE SET renewal_info_at = excluded.renewal_info_at
  WHERE certificate_use.renewal_info_at IS NULL OR certificate_use.renewal_info_at < excluded.renewal_info_at`;

/**
 * The newest certificates that were requested with one, as a query: each costs the same if one renews thousands of times. A device that
 * has renewed so often without using a newer one is stuck, whatever it did with the older ones.
 */
export const requestedWith = (columns: string, serial: string, ca: string): string =>
  `SELECT ${columns} FROM certificate_use AS requested WHERE requested.renewed_serial = ${serial}
    AND requested.renewed_ca = ${ca} ORDER BY requested.issued_at DESC LIMIT 20`;
const ofOwn = (column: string): string => `(SELECT ${column} FROM certificate_use WHERE serial = @serial AND ca = @ca)`;
/** What a certificate (@serial, @ca) was requested with. */
const REQUESTED_WITH = [ofOwn('renewed_serial'), ofOwn('renewed_ca')] as const;

// A holder may be stuck, or no longer be: its newest certificate was requested with the one that was used, or both with a third.
const TO_DERIVE = `UPDATE holder SET next_at = 0 WHERE key IN (${requestedWith('holder', '@serial', '@ca')})
  OR (state = 'stuck' AND key IN (${requestedWith('holder', ...REQUESTED_WITH)}))`;

/** What the certificates of a registered device show. Absent facts are null. */
export interface DeviceUse {
  readonly key: string;
  /** Expiry of the newest one that is not revoked. */
  readonly certificate_not_after: number | null;
  readonly last_used_at: number | null;
}

// The latest certificates: a device has used no older one.
const LATEST = (shown: string): string => `(SELECT ${shown}, certificate.position FROM certificate
  LEFT JOIN certificate_use AS used ON used.serial = certificate.serial AND used.ca = certificate.ca
  WHERE device_key = device.key AND (coalesce(label, certificate.ca) = ANY(@labels) OR @is_limited = 0)
  ORDER BY certificate.position DESC LIMIT 20) AS latest`;
const OF_DEVICES = `SELECT key, (SELECT not_after FROM ${LATEST('not_after, revoked_at, coalesce(certificate.issued_at, not_before) AS since')}
    WHERE revoked_at IS NULL ORDER BY since DESC, position DESC LIMIT 1) AS certificate_not_after,
  (SELECT max(last_used_at) FROM ${LATEST('last_used_at')}) AS last_used_at FROM device WHERE key = ANY(@keys)`;

const IS_STORED = 'SELECT 1 AS found FROM certificate WHERE serial = ? AND ca = ?';

export function useReads(db: Database) {
  return {
    findUse: quickRead((serial: string, ca: string) =>
      db.get<KnownUse>(`SELECT ${USE_COLUMNS} FROM certificate_use WHERE serial = ? AND ca = ?`, serial, ca),
    ),
    /** @param labels only certificates of these; default: all */
    usesOfDevices: slowRead(function* (
      keys: readonly string[],
      labels?: readonly string[],
    ): Operation<ReadonlyMap<string, DeviceUse>> {
      const limits = { labels: labels ?? [], is_limited: labels === undefined ? 0 : 1 };
      const rows = yield* db.all<DeviceUse>(OF_DEVICES, { keys, ...limits });
      return new Map(rows.map((row) => [row.key, row]));
    }),
    /** The answers of `cacerts` that were given over connections with a certificate: certificates in DER, one after another. */
    givenChains: quickRead(function* (serial: string, ca: string): Operation<readonly Buffer[]> {
      const rows = yield* db.all<{ der: Buffer }>`SELECT der FROM given_to JOIN given_chain ON position = chain
        WHERE serial = ${serial} AND ca = ${ca} ORDER BY chain`;
      return rows.map(({ der }) => der);
    }),
  };
}

export function useWrites(db: Database) {
  /** The certificate that was used; undefined: it is not in the store. */
  function* find({ serial, fingerprints }: CertificateUse): Operation<CertificateId | undefined> {
    const rows = yield* db.all<CertificateId & { readonly fingerprint_sha256: string }>`
      SELECT serial, ca, fingerprint_sha256 FROM certificate WHERE serial = ${serial}`;
    return rows.find(({ fingerprint_sha256 }) => fingerprints.includes(fingerprint_sha256));
  }
  function* give({ serial, ca }: CertificateId, der: Buffer): Operation<void> {
    const sha256 = hash('sha256', der, 'hex');
    yield* db.run`INSERT INTO given_chain (sha256, der) SELECT ${sha256}, ${der}
      WHERE NOT EXISTS (SELECT 1 FROM given_chain WHERE sha256 = ${sha256}) ON CONFLICT DO NOTHING`;
    yield* db.run`INSERT INTO given_to (serial, ca, chain) SELECT ${serial}, ${ca}, position FROM given_chain
      WHERE sha256 = ${sha256} ON CONFLICT DO NOTHING`;
  }
  function* use(seen: CertificateUse): Operation<void> {
    const found = yield* find(seen);
    if (found === undefined) return;
    const { ca } = found;
    const row = { ...seen, ca, names_label: seen.names_label ? 1 : 0 };
    if ((yield* db.run(USED, row)) === 0) yield* db.run(USED_EARLIER, row);
    yield* db.run(TO_DERIVE, row);
    for (const chain of seen.chains) yield* give(found, chain);
  }
  return {
    /** Records what a node has seen since its previous report. Unknown certificates are ignored. */
    recordUses: write(lock.fleet, function* ({ uses, issued, renewalInfo }: SeenUses): Write<void> {
      for (const seen of uses) yield* use(seen);
      for (const request of issued) yield* db.run(ISSUED, { ...request, names_label: request.names_label ? 1 : 0 });
      for (const asked of renewalInfo)
        if ((yield* db.get(IS_STORED, asked.serial, asked.ca)) !== undefined) yield* db.run(INFORMED, asked);
      return done(undefined, []);
    }),
  };
}

/** The uses of certificates, which each node reports in the background. */
export type UseStore = Calls<ReturnType<typeof useReads> & ReturnType<typeof useWrites>>;
