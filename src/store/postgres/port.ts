/** The operations' port on PostgreSQL (asynchronous). */
import type { CertificateFilter, CertificateStatus, ListedCertificate } from '../certificate-store.ts';
import { fold, type Page, readPosition, toPage, withoutPosition } from '../page.ts';
import { LISTED_COLUMNS, type StoredCertificate, toCertificateRow } from '../certificate-store.ts';
import type { Database, Dialect, List, Listed, Operation, Results, Statement } from '../port.ts';
import { atLabels, given, LABEL, run } from '../port.ts';
import type { Queries } from './queries.ts';

const DIALECT: Dialect = {
  forUpdate: 'FOR UPDATE',
  forShare: 'FOR SHARE',
  auditNode: 'node',
  skipLocked: 'FOR UPDATE SKIP LOCKED',
  // The planner chooses.
  indexedBy: () => '',
  oneOf: (expression, parameter) => `${expression} = ANY(${parameter})`,
  among: (table, _key, selection) => `ctid = ANY(ARRAY(SELECT ctid FROM ${table} ${selection} FOR UPDATE SKIP LOCKED))`,
  deviceEvents: 'SELECT line FROM audit WHERE device_key = @key ORDER BY position DESC LIMIT @limit',
  contains: (expression, parameter) => `strpos(lower(${expression}), ${parameter}) > 0`,
  keysOf: (column) => `json_each_text(${column}::json) AS attribute (key, value)`,
  nameColumns: {
    subject_folded: ({ subject }) => fold(subject),
    sans_folded: ({ sans }) => fold(sans.join('\n')),
  },
};

export class PostgresPort implements Database {
  readonly dialect = DIALECT;
  readonly #queries: Queries;

  constructor(queries: Queries) {
    this.#queries = queries;
  }

  prepare<Parameters extends readonly unknown[] | object, Row = never>(sql: string): Statement<Parameters, Row> {
    const statement = this.#queries.prepare<Parameters, Row>(sql);
    return {
      all: (...parameters) => answer(() => statement.all(...parameters)),
      get: (...parameters) => answer(() => statement.get(...parameters)),
      run: (...parameters) => answer(() => statement.run(...parameters)),
    };
  }

  together<const Operations extends readonly Operation<unknown>[]>(
    operations: Operations,
  ): Operation<Results<Operations>> {
    return answer(() => Promise.all(operations.map(run)) as Promise<Results<Operations>>);
  }

  /** The planner has an index for each filter. */
  list<Row extends object>({ name, table, columns }: Listed): List<Row> {
    const prepare = this.prepare.bind(this);
    return function* (conditions, parameters, page, item) {
      const { order = 'asc', limit } = page;
      const after = readPosition(name, page);
      const where = [`position ${order === 'asc' ? '>' : '<'} @after`, ...conditions.map(({ sql }) => sql)];
      const rows = yield* prepare<object, Row & { position: number }>(
        `SELECT position, ${columns} FROM ${table} WHERE ${where.join(' AND ')} ORDER BY position ${order} LIMIT @take`,
      ).all({ ...parameters, after, take: limit + 1 });
      const place = (row: { position: number }): number => row.position;
      // Without its position, the row has exactly the columns.
      return toPage(name, rows, limit, place, (row) => item(withoutPosition(row) as Row));
    };
  }
}

/** An operation that waits for one response, with which its runner resumes it. */
function* answer<T>(ask: () => Promise<T>): Operation<T> {
  return (yield ask()) as T;
}

/** A LIKE pattern for a substring, ignoring case. */
export const partPattern = (part: string): string => `%${fold(part).replaceAll(/[\\%_]/g, String.raw`\$&`)}%`;

const STATUSES: Readonly<Record<CertificateStatus, string>> = {
  revoked: 'revoked_at IS NOT NULL',
  valid: 'revoked_at IS NULL AND not_after >= @now',
  expired: 'revoked_at IS NULL AND not_after < @now',
};

/** Trigram indexes find substrings of names. */
export function certificateList(db: Database) {
  const list = db.list<Omit<StoredCertificate, 'der'>>({
    name: 'certificate',
    table: 'certificate',
    columns: LISTED_COLUMNS,
  });
  return {
    listCertificates(filter: CertificateFilter, now: number): Operation<Page<ListedCertificate>> {
      const { device_key, device, requester, ca, label, status, subject, san, serial, issued_after, expires_before } =
        filter;
      const permitted = atLabels(LABEL, filter.labels);
      const conditions = [
        ...permitted.conditions,
        ...given([
          { value: serial, sql: 'serial = @serial' },
          { value: device_key, sql: 'device_key = @device_key' },
          { value: device, sql: 'device = @device' },
          { value: requester, sql: 'requester = @requester' },
          { value: label, sql: 'label = @label' },
          { value: ca, sql: 'ca = @ca' },
          { value: expires_before, sql: 'not_after < @expires_before' },
          { value: issued_after, sql: 'coalesce(issued_at, not_before) > @issued_after' },
          { value: subject, sql: 'subject_folded LIKE @subject' },
          // Each name is a line, so a substring with a line feed matches none.
          { value: san, sql: san?.includes('\n') === true ? 'false' : 'sans_folded LIKE @san' },
        ]),
        ...(status === undefined ? [] : [{ sql: STATUSES[status] }]),
      ];
      const parameters = {
        ...filter,
        ...permitted.parameters,
        now,
        ...(subject === undefined ? {} : { subject: partPattern(subject) }),
        ...(san === undefined ? {} : { san: partPattern(san) }),
      };
      return list(conditions, parameters, filter, toCertificateRow);
    },
  };
}
