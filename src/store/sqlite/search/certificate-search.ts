/** Selects certificates, and the index to find them. */
import { fold, NEWEST, type Order, type Page, readPosition, toPage, withoutPosition } from '../../page.ts';
import {
  certificateConditions,
  type CertificateFilter,
  LISTED_COLUMNS,
  type ListedCertificate,
  type NameSearch,
  type StoredCertificate,
  toCertificateRow,
} from '../../certificate-store.ts';
import type { Db } from '../database.ts';
import { searchProgress } from './index-rows.ts';
import type { Condition } from '../../port.ts';
import { ListSearch, type Parameters } from './table-search.ts';
import { hasTrigrams, trigramMatches, withTail } from './trigrams.ts';
import { SEARCH_LIMITS, type SearchLimits, type Source, type Stretch, walk, type Walked, zoneReads } from './walk.ts';

/** How the names of a certificate contain a part. */
const NAMES: NameSearch = {
  subject: 'instr(subject_folded, @subject) > 0',
  san: 'EXISTS (SELECT 1 FROM json_each(sans) WHERE instr(estuary_fold(value), @san) > 0)',
  part: fold,
};

/** @typeParam Row with its `position` */
export class CertificateSearch<Row> {
  readonly #db: Db;
  readonly #columns: string;
  readonly #list: ListSearch<Row>;
  readonly #progress: (list: 'certificate') => number;
  readonly #match;
  readonly #ends;
  readonly #issues;

  constructor(db: Db, columns: string, limits: SearchLimits) {
    db.function('estuary_fold', { deterministic: true }, fold);
    this.#db = db;
    this.#columns = columns.replaceAll(/\w+/g, 'certificate.$&');
    this.#list = new ListSearch(db, { table: 'certificate', place: 'position', columns }, limits);
    this.#progress = searchProgress(db);
    this.#match = trigramMatches(db, 'certificate_names');
    this.#ends = zoneReads(db, 'certificate.end');
    this.#issues = zoneReads(db, 'certificate.issue');
  }

  /** Certificates after a position, in order. @param now for their status */
  find(filter: CertificateFilter, now: number, after: number): Walked<Row> {
    const { order = 'asc', limit } = filter;
    const { conditions, parameters } = certificateConditions(filter, now, NAMES);
    return walk(this.#source(conditions, parameters, order), {
      after,
      order,
      take: limit + 1,
      maxWait: this.#list.limits.maxWait,
      stretches: this.#stretches(filter, now),
    });
  }

  #source(asked: readonly Condition[], parameters: Parameters & CertificateFilter, order: Order): Source<Row> {
    const { table } = this.#list;
    const all = asked.map(({ sql }) => sql);
    if (parameters.serial !== undefined)
      return table.among('SELECT position FROM certificate WHERE serial = @serial', all, parameters, order);
    const index = this.#list.narrowest(asked, parameters);
    const plain = this.#list.along(index, asked, parameters, order);
    const { subject, san } = parameters;
    const parts = [['subject', subject] as const, ['sans', san] as const].flatMap(([column, part]) =>
      part !== undefined && hasTrigrams(part) ? [[column, part] as const] : [],
    );
    if (parts.length === 0 || this.#list.isNarrow(index, parameters)) return plain;
    const upto = this.#progress('certificate');
    const match = this.#match(parts);
    return withTail(upto, this.#named(all, { ...parameters, match }, order), plain, order);
  }

  /** Certificates whose names have the trigrams and that match the other conditions. */
  #named(asked: readonly string[], parameters: Parameters, order: Order): Source<Row> {
    const [behind, until] = order === 'asc' ? ['>', '<='] : ['<', '>='];
    const matching = `certificate_names MATCH @match AND names.rowid ${behind} @after`;
    const nth = this.#db
      .prepare<[object], number>(
        `SELECT names.rowid FROM certificate_names AS names WHERE ${matching}
         ORDER BY names.rowid ${order} LIMIT 1 OFFSET ${this.#list.limits.step - 1}`,
      )
      .pluck();
    const rows = this.#db.prepare(
      `SELECT certificate.position, ${this.#columns} FROM certificate_names AS names
       CROSS JOIN certificate ON certificate.position = names.rowid
       WHERE ${matching} AND names.rowid ${until} @end
       AND ${asked.map(inCertificate).join(' AND ')} ORDER BY names.rowid ${order} LIMIT @take`,
    );
    const far = order === 'asc' ? NEWEST : 0;
    return {
      end: (after) => nth.get({ ...parameters, after }),
      read: (after, end, take) => rows.all({ ...parameters, after, end: end ?? far, take }) as readonly Row[],
    };
  }

  #stretches({ status, expires_before, issued_after }: CertificateFilter, now: number): readonly Stretch[] | undefined {
    const to = status === 'expired' ? Math.min(now, expires_before ?? now) : expires_before;
    if (to !== undefined || status === 'valid') return this.#ends({ from: status === 'valid' ? now : undefined, to });
    return issued_after === undefined ? undefined : this.#issues({ from: issued_after });
  }
}

/** `sans` is a column of the index too. */
const inCertificate = (sql: string): string => sql.replace('json_each(sans)', 'json_each(certificate.sans)');

export function certificateList(db: Db, limits: SearchLimits = SEARCH_LIMITS) {
  const search = new CertificateSearch<Omit<StoredCertificate, 'der'> & { position: number }>(
    db,
    LISTED_COLUMNS,
    limits,
  );
  return {
    listCertificates(filter: CertificateFilter, now: number): Page<ListedCertificate> {
      const { rows, stopped } = search.find(filter, now, readPosition('certificate', filter));
      const place = (row: { position: number }): number => row.position;
      const item = (row: (typeof rows)[number]): ListedCertificate => toCertificateRow(withoutPosition(row));
      return toPage('certificate', rows, filter.limit, place, item, stopped);
    },
  };
}
