/** Selects certificates, and the index to find them. */
import {
  certificateConditions,
  type CertificateFilter,
  LISTED_COLUMNS,
  type ListedCertificate,
  type NameSearch,
  type StoredCertificate,
  toCertificateRow,
} from '../../certificate-store.ts';
import { fold, type Order, type Page, pageByPosition, readPosition } from '../../page.ts';
import { slowRead } from '../../operation.ts';
import { type Condition, result } from '../../port.ts';
import type { Db } from '../database.ts';
import { Statements } from '../statements.ts';
import { searchProgress } from './index-rows.ts';
import {
  directed,
  ListSearch,
  type Parameters,
  SEARCH_LIMITS,
  type SearchLimits,
  type Source,
  walk,
  zoneReads,
} from './list-search.ts';
import { hasTrigrams, trigramMatches, withTail } from './trigrams.ts';

/** How the names of a certificate contain a part. */
const NAMES: NameSearch = {
  subject: 'instr(subject_folded, @subject) > 0',
  san: 'EXISTS (SELECT 1 FROM json_each(sans) WHERE instr(estuary_fold(value), @san) > 0)',
  part: fold,
};

type Row = Omit<StoredCertificate, 'der'> & { readonly position: number };

const COLUMNS = LISTED_COLUMNS.replaceAll(/\w+/g, 'certificate.$&');

export function certificateList(db: Db, limits: SearchLimits = SEARCH_LIMITS) {
  const list = new ListSearch<Row>(db, { table: 'certificate', place: 'position', columns: LISTED_COLUMNS }, limits);
  const statements = new Statements(db);
  const progress = searchProgress(db);
  const matchOf = trigramMatches(db, 'certificate_names');
  const ends = zoneReads(db, 'certificate.end');
  const issues = zoneReads(db, 'certificate.issue');

  function source(asked: readonly Condition[], parameters: Parameters & CertificateFilter, order: Order): Source<Row> {
    if (parameters.serial !== undefined)
      return list.among('SELECT position FROM certificate WHERE serial = @serial', asked, parameters, order);
    const index = list.narrowest(asked, parameters);
    const plain = list.along(index, asked, parameters, order);
    const { subject, san } = parameters;
    const parts = [['subject', subject] as const, ['sans', san] as const].flatMap(([column, part]) =>
      part !== undefined && hasTrigrams(part) ? [[column, part] as const] : [],
    );
    if (parts.length === 0 || list.isNarrow(index, parameters)) return plain;
    return withTail(
      progress('certificate'),
      named(asked, { ...parameters, match: matchOf(parts) }, order),
      plain,
      order,
    );
  }

  /** Certificates whose names have the trigrams and that match the other conditions. */
  function named(asked: readonly Condition[], parameters: Parameters, order: Order): Source<Row> {
    const { behind, until, far } = directed(order);
    const matching = `certificate_names MATCH @match AND names.rowid ${behind} @after`;
    const nth = `SELECT names.rowid AS place FROM certificate_names AS names WHERE ${matching}
      ORDER BY names.rowid ${order} LIMIT 1 OFFSET ${limits.step - 1}`;
    const rows = `SELECT certificate.position${parameters['counts'] === true ? '' : `, ${COLUMNS}`} FROM certificate_names AS names
      CROSS JOIN certificate ON certificate.position = names.rowid
      WHERE ${matching} AND names.rowid ${until} @end
      AND ${asked.map(inCertificate).join(' AND ')} ORDER BY names.rowid ${order} LIMIT @take`;
    return {
      end: (after) => statements.get<{ place: number }>(nth, { ...parameters, after })?.place,
      read: (after, end, take) => statements.all(rows, { ...parameters, after, end: end ?? far, take }),
    };
  }

  function stretches({ status, expires_before, issued_after }: CertificateFilter, now: number) {
    const to = status === 'expired' ? Math.min(now, expires_before ?? now) : expires_before;
    if (to !== undefined || status === 'valid') return ends({ from: status === 'valid' ? now : undefined, to });
    return issued_after === undefined ? undefined : issues({ from: issued_after });
  }

  return {
    /** In order. @param now for their status */
    listCertificates: slowRead((filter: CertificateFilter, now: number) => {
      const { order = 'asc', limit } = filter;
      const { conditions, parameters } = certificateConditions(filter, now, NAMES);
      const found = walk(source(conditions, parameters, order), {
        after: readPosition('certificate', filter),
        order,
        take: limit + 1,
        maxWait: limits.maxWait,
        stretches: stretches(filter, now),
      });
      return result<Page<ListedCertificate>>(pageByPosition('certificate', found, filter, toCertificateRow));
    }),
  };
}

/** `sans` is a column of the index too. */
const inCertificate = ({ sql }: Condition): string => sql.replace('json_each(sans)', 'json_each(certificate.sans)');
