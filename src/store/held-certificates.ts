/** Holders with all their certificates: for retiring a CA, and for the effect of a change. */
import type { Calls } from './operation.ts';
import { slowRead } from './operation.ts';
import type { Database, Operation } from './port.ts';
import { type CertificateRow, readSans } from './certificate-store.ts';
import type { HolderState } from './holder-state.ts';

/** A certificate of a holder that is not revoked. */
export interface HeldCertificate extends Pick<CertificateRow, 'serial' | 'ca' | 'not_after' | 'der'> {
  readonly issued_at: number;
  readonly first_used_at: number | null;
  readonly last_used_at: number | null;
  readonly renewal_info_at: number | null;
  readonly tls_version: 'TLSv1.2' | 'TLSv1.3' | null;
  /** 0 or 1: whether the last request named the label. */
  readonly names_label: number | null;
  /** When a later certificate of the holder, or one in a renewal with this one, was first issued. */
  readonly replaced_at: number | null;
}

export interface HolderRow {
  readonly position: number;
  readonly label: string;
  readonly device: string | null;
  readonly subject: string;
  readonly sans: readonly string[];
  /** null: in no list. */
  readonly state: HolderState | null;
  readonly since: number | null;
  /** End of the renewal window of the newest certificate. */
  readonly window_end: number | null;
  readonly last_code: string | null;
  readonly last_message: string | null;
  readonly last_failed_at: number | null;
  /** The newest first. */
  readonly certificates: readonly [HeldCertificate, ...HeldCertificate[]];
  /** Which answers of cacerts it was given. */
  readonly chains: readonly number[];
}

export interface HolderPage {
  readonly holders: readonly HolderRow[];
  /** Position of the next page; null: none. */
  readonly next: number | null;
}

/** Holders per call. */
const PAGE = 500;

type StoredHolder = Omit<HolderRow, 'sans' | 'certificates' | 'chains'> & {
  readonly key: string;
  readonly sans: string;
};
type StoredUse = Omit<HeldCertificate, 'replaced_at'> & { readonly holder: string; readonly renewed_at: number | null };

const HOLDERS = `SELECT position, key, label, device, subject, sans, state, since, window_end, last_code, last_message, last_failed_at
  FROM holder
  WHERE position > @after AND serial IS NOT NULL AND label IS NOT NULL`;
const CERTIFICATES = `SELECT holder, used.serial, used.ca, not_after, der, used.issued_at, first_used_at, last_used_at, renewal_info_at,
    tls_version, names_label, (SELECT min(later.issued_at) FROM certificate_use AS later
      WHERE later.renewed_serial = used.serial AND later.renewed_ca = used.ca) AS renewed_at
  FROM certificate_use AS used JOIN certificate ON certificate.serial = used.serial AND certificate.ca = used.ca
  WHERE holder = ANY(@keys) AND revoked_at IS NULL ORDER BY used.issued_at DESC, certificate.position DESC`;
const GIVEN = `SELECT DISTINCT holder, chain FROM given_to
  JOIN certificate_use AS used ON used.serial = given_to.serial AND used.ca = given_to.ca WHERE holder = ANY(@keys)`;

export function heldCertificateReads(db: Database) {
  return {
    /** Holders with a certificate that is not revoked, at one label or at all. @param after 0, or `next` of the previous page */
    listHeldCertificates: slowRead(function* (after: number, label?: string): Operation<HolderPage> {
      const where = label === undefined ? HOLDERS : `${HOLDERS} AND label = @label`;
      const holders = yield* db.all<StoredHolder>(`${where} ORDER BY position LIMIT ${PAGE}`, { after, label });
      const keys = holders.map(({ key }) => key);
      const certificates = Map.groupBy(yield* db.all<StoredUse>(CERTIFICATES, { keys }), ({ holder }) => holder);
      const given = yield* db.all<{ holder: string; chain: number }>(GIVEN, { keys });
      const chains = Map.groupBy(given, ({ holder }) => holder);
      return {
        holders: holders.flatMap(({ key, ...row }) => {
          const [newest, ...older] = withReplacements(certificates.get(key) ?? []);
          const sans = readSans(row.sans, `holder ${key}`);
          const ofHolder = (chains.get(key) ?? []).map(({ chain }) => chain);
          return newest === undefined ? [] : [{ ...row, sans, certificates: [newest, ...older], chains: ofHolder }];
        }),
        next: holders.length < PAGE ? null : (holders.at(-1)?.position ?? null),
      };
    }),
    /** The answers of cacerts by their number: certificates, one after another. */
    listGivenChains: slowRead(
      () => db.all<{ position: number; der: Buffer }>`SELECT position, der FROM given_chain ORDER BY position`,
    ),
  };
}

/** @param uses the newest first */
function withReplacements(uses: readonly StoredUse[]): HeldCertificate[] {
  let later: number | null = null;
  return uses.map(({ renewed_at, ...use }) => {
    const replaced_at = later === null || (renewed_at !== null && renewed_at < later) ? renewed_at : later;
    later = use.issued_at;
    return { ...use, replaced_at };
  });
}

export type HeldCertificateStore = Calls<ReturnType<typeof heldCertificateReads>>;
