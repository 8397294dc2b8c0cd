/** Lists and counts holders of certificates. */
import { readSans } from './certificate-store.ts';
import type { HolderState } from './holder-state.ts';
import { fold, invalidCursor, type Page, type PageRequest, readCursor } from './page.ts';
import { type Calls, quickRead, slowRead } from './operation.ts';
import { type Database, type Operation } from './port.ts';

/** `ends` of a holder without a certificate: after every certificate's expiry (RFC 5280 §4.1.2.5: the year 9999). */
export const EARLIEST_WITHOUT_END = 253_402_300_800_000;

export interface ListedHolder {
  readonly state: HolderState;
  readonly since: number;
  readonly ca: string | null;
  readonly subject: string | null;
  readonly sans: readonly string[] | null;
  readonly device: string | null;
  readonly serial: string | null;
  readonly not_after: number | null;
  readonly window_end: number | null;
  readonly last_used_at: number | null;
  readonly first_used_at: number | null;
  readonly renewal_info_at: number | null;
  readonly tls_version: 'TLSv1.2' | 'TLSv1.3' | null;
  readonly last_code: string | null;
  readonly last_message: string | null;
  readonly last_failed_at: number | null;
}

/** All given criteria must match. */
export interface HolderFilter extends PageRequest {
  readonly state?: HolderState | undefined;
  /** A label. */
  readonly ca?: string | undefined;
  /** A device's ID. */
  readonly device?: string | undefined;
  /** A part of the subject, ignoring case. */
  readonly subject?: string | undefined;
  readonly expires_before?: number | undefined;
  /** The newest certificate did not authenticate since. */
  readonly seen_before?: number | undefined;
  readonly labels?: readonly string[] | undefined;
}

export interface HolderCount {
  /** Empty: none. */
  readonly label: string;
  readonly state: HolderState;
  readonly n: number;
}

/** How many valid certificates of holders of a label expire within a number of days. */
export interface ExpiringCount {
  readonly label: string;
  readonly day: number;
  readonly week: number;
  readonly month: number;
}

/** A holder that entered a state that is to be reported. */
export interface EnteredHolder extends ListedHolder {
  readonly key: string;
  /** Of the CA whose key signed. */
  readonly issuer: string | null;
}

export interface EnteredCount extends HolderCount {
  readonly first: number;
  readonly last: number;
  readonly reported: number;
}

/** Rows that a page looks at: it may then have fewer items than its limit. */
const LOOKED_AT = 50_000;
const DAY = 86_400_000;
/** Holders that are reported at once. */
const REPORTED_AT_ONCE = 500;

const SHOWN = `h.ends, h.position, h.state, h.since, h.label AS ca, h.subject, h.sans, h.device, h.serial, h.window_end, u.last_used_at,
  u.first_used_at, u.renewal_info_at, u.tls_version, h.last_code, h.last_message, h.last_failed_at`;
const FROM = `FROM holder AS h LEFT JOIN certificate_use AS u ON u.serial = h.serial AND u.ca = h.ca`;

type Stored = Omit<ListedHolder, 'not_after' | 'sans'> & {
  readonly ends: number;
  readonly position: number;
  readonly sans: string;
};

const CONDITIONS = {
  state: 'h.state = @state',
  device: 'h.device = @device',
  expires_before: 'h.ends < @expires_before AND h.serial IS NOT NULL',
} as const;

export function holderLists(db: Database) {
  const FILTERS = {
    ca: 'h.label = @ca',
    labels: 'h.label = ANY(@labels)',
    subject: db.dialect.contains('h.subject', '@subject'),
    seen_before: '(u.last_used_at IS NULL OR u.last_used_at < @seen_before)',
  } as const;
  const given = (conditions: Readonly<Record<string, string>>, filter: HolderFilter): string =>
    Object.entries(conditions)
      .filter(([name]) => Reflect.get(filter, name) !== undefined)
      .map(([, sql]) => ` AND ${sql}`)
      .join('');
  return {
    /** By the expiry of the newest certificate; holders without one come last. A page may be partial. */
    listHolders: slowRead(function* (filter: HolderFilter): Operation<Page<ListedHolder>> {
      const { limit, order = 'asc' } = filter;
      const [ends, place] = readPlace(filter);
      const parameters = { ...filter, subject: fold(filter.subject), ends, place, upto_ends: 0, upto_place: 0 };
      const after = `h.state IS NOT NULL AND (h.ends, h.position) ${order === 'asc' ? '>' : '<'} (@ends, @place)`;
      const range = `${after}${given(CONDITIONS, filter)}`;
      const sorted = `ORDER BY h.ends ${order}, h.position ${order}`;
      const further = given(FILTERS, filter);
      const stop =
        further === ''
          ? undefined
          : yield* db.get<Place>(
              `SELECT h.ends, h.position FROM holder AS h WHERE ${range} ${sorted} LIMIT 1 OFFSET ${LOOKED_AT}`,
              parameters,
            );
      const upto =
        stop === undefined
          ? ''
          : ` AND (h.ends, h.position) ${order === 'asc' ? '<=' : '>='} (@upto_ends, @upto_place)`;
      const rows = yield* db.all<Stored>(
        `SELECT ${filter.counts ? 'h.ends, h.position' : SHOWN} ${FROM} WHERE ${range}${further}${upto} ${sorted} LIMIT @take`,
        { ...parameters, take: limit + 1, ...(stop && { upto_ends: stop.ends, upto_place: stop.position }) },
      );
      const shown = rows.slice(0, limit);
      const end = rows.length > limit ? shown.at(-1) : stop;
      if (filter.counts)
        return { items: [], next_cursor: null, total: { count: shown.length, exact: end === undefined } };
      return { items: shown.map(toListed), next_cursor: end === undefined ? null : cursorOf(end) };
    }),
    countHolders: quickRead(() => db.all<HolderCount>('SELECT label, state, n FROM holder_count WHERE n <> 0')),
    /** Counts valid holders by the expiry of their newest certificate. */
    countExpiringHolders: slowRead((now: number) =>
      db.all<ExpiringCount>(
        `SELECT coalesce(label, '') AS label, count(CASE WHEN ends < @day THEN 1 END) AS day,
           count(CASE WHEN ends < @week THEN 1 END) AS week, count(*) AS month
         FROM holder WHERE state IS NOT NULL AND ends >= @now AND ends < @month GROUP BY 1`,
        { now, day: now + DAY, week: now + 7 * DAY, month: now + 30 * DAY },
      ),
    ),
    /** Holders that entered states that are not reported yet. `reported`: how many were reported since a time. */
    countEnteredHolders: slowRead((since: number) =>
      db.all<EnteredCount>(
        `SELECT coalesce(label, '') AS label, state, count(entered_at) AS n, min(entered_at) AS first, max(entered_at) AS last,
           count(CASE WHEN reported_at > @since THEN 1 END) AS reported
         FROM holder WHERE (entered_at IS NOT NULL OR (reported_at IS NOT NULL AND reported_at > @since)) AND state IS NOT NULL
         GROUP BY 1, 2 HAVING count(entered_at) > 0`,
        { since },
      ),
    ),
    /** The first of these holders. */
    listEnteredHolders: slowRead(function* (label: string, state: HolderState): Operation<readonly EnteredHolder[]> {
      const rows = yield* db.all<Stored & Pick<EnteredHolder, 'key' | 'issuer'>>(
        `SELECT ${SHOWN}, h.key, h.ca AS issuer ${FROM} WHERE h.entered_at IS NOT NULL AND h.state = @state
         AND coalesce(h.label, '') = @label ORDER BY h.entered_at, h.position LIMIT ${REPORTED_AT_ONCE}`,
        { label, state },
      );
      return rows.map((row) => ({ ...toListed(row), key: row.key, issuer: row.issuer }));
    }),
  };
}

interface Place {
  readonly ends: number;
  readonly position: number;
}

const cursorOf = ({ ends, position }: Place): string =>
  Buffer.from(`fleet:${ends}-${position}`, 'utf8').toString('base64url');

function readPlace(page: PageRequest): readonly [ends: number, position: number] {
  const key = readCursor('fleet', page);
  if (key === undefined) return page.order === 'desc' ? [Number.MAX_SAFE_INTEGER, 0] : [-1e15, 0];
  const [, ends, position] = /^(-?\d{1,15})-(\d{1,15})$/.exec(key) ?? [];
  if (ends === undefined || position === undefined) throw invalidCursor();
  return [Number(ends), Number(position)];
}

function toListed(row: Stored): ListedHolder {
  const { state, since, ca, subject, device, serial, window_end, last_used_at, first_used_at, renewal_info_at } = row;
  const { tls_version, last_code, last_message, last_failed_at } = row;
  return {
    ...{ state, since, ca, subject },
    sans: serial === null ? null : readSans(row.sans, `holder ${row.position}`),
    ...{ device, serial, not_after: serial === null ? null : row.ends, window_end, last_used_at, first_used_at },
    ...{ renewal_info_at, tls_version, last_code, last_message, last_failed_at },
  };
}

export type HolderListStore = Calls<ReturnType<typeof holderLists>>;
