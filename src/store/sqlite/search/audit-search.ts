/** Selects audit records, and the index to find them. */
import type { AuditFilter } from '../../audit-store.ts';
import { fold, type Order } from '../../page.ts';
import { type Condition, given } from '../../port.ts';
import type { Db } from '../database.ts';
import { auditField } from '../schema.ts';
import { Statements } from '../statements.ts';
import { searchProgress } from './index-rows.ts';
import {
  directed,
  ListSearch,
  type Parameters,
  type SearchLimits,
  type Source,
  walk,
  type Walked,
  zoneReads,
} from './list-search.ts';
import { hasTrigrams, trigramMatches, windowEnd, withTail } from './trigrams.ts';

interface Row {
  readonly seq: number;
  readonly line: string;
}

/** Subjects that are looked up individually; if there are more, records are scanned in order. */
const SUBJECTS = 500;
/** Records per step along subjects. */
const WINDOW = 50_000;
const OF_SUBJECT = `instr(estuary_fold(${auditField('subject')}), @subject) > 0`;
const AT_LABELS = `coalesce(${auditField('label')}, ${auditField('ca')}) = ANY(@labels)`;
/** The indexes are filled later (index-rows.ts). */
const INDEXED = 'indexed = 1 AND';

function conditions({
  request_id,
  serial,
  type,
  ca,
  subject,
  since,
  until,
  labels,
}: AuditFilter): readonly Condition[] {
  return given([
    { value: request_id, sql: `${auditField('request_id')} = @request_id`, index: 'audit_by_request_id' },
    { value: serial, sql: `${auditField('serial')} = @serial`, index: 'audit_by_serial' },
    { value: type, sql: 'type = @type', index: 'audit_by_type' },
    { value: ca, sql: `${auditField('ca')} = @ca`, index: 'audit_by_ca' },
    { value: since, sql: 'time >= @since' },
    { value: until, sql: 'time <= @until' },
    { value: subject, sql: OF_SUBJECT },
    { value: labels, sql: AT_LABELS },
  ]);
}

const ofIndexed = ({ sql, index }: Condition): Condition =>
  index === undefined ? { sql } : { sql: `${INDEXED} ${sql}`, index };

/** Selects the records after a position, in order. */
export function auditSearch(db: Db, limits: SearchLimits): (filter: AuditFilter, after: number) => Walked<Row> {
  const list = new ListSearch<Row>(db, { table: 'audit', place: 'seq', columns: 'line' }, limits);
  const progress = searchProgress(db);
  const matchOf = trigramMatches(db, 'audit_subject_names');
  const times = zoneReads(db, 'audit.time');
  const statements = new Statements(db);

  /** Along an index, if one leaves fewer than all records. @param upto the last indexed record */
  function indexed(
    asked: readonly Condition[],
    parameters: Parameters & AuditFilter,
    order: Order,
    upto: number,
  ): Source<Row> | undefined {
    const index = list.narrowest(asked, parameters);
    const along = index === undefined ? undefined : list.along(index, asked, parameters, order);
    const { subject } = parameters;
    if (subject === undefined || !hasTrigrams(subject) || list.isNarrow(index, parameters)) return along;
    const found = statements.all<{ subject: string }>`SELECT found.subject FROM audit_subject_names AS names
      CROSS JOIN audit_subject AS found ON found.id = names.rowid
      WHERE audit_subject_names MATCH ${matchOf([['subject', subject]])}
      AND instr(estuary_fold(found.subject), ${subject}) > 0 LIMIT ${SUBJECTS + 1}`;
    if (found.length > SUBJECTS) return along;
    const subjects = found.map((row) => row.subject);
    const others = asked.flatMap(({ sql }) => (sql === OF_SUBJECT ? [] : [sql]));
    return {
      // Without further conditions, no step finds more than fit.
      end: (after) => (others.length === 0 ? undefined : windowEnd(after, WINDOW, order, upto)),
      read: ofSubjects(subjects, others, parameters, order),
    };
  }

  /** Reads the records of some subjects that match the other conditions. */
  function ofSubjects(
    subjects: readonly string[],
    others: readonly string[],
    parameters: Parameters,
    order: Order,
  ): Source<Row>['read'] {
    const { behind, until, far } = directed(order);
    const where = [
      `${INDEXED} ${auditField('subject')} = @subject`,
      `seq ${behind} @after`,
      `seq ${until} @end`,
      ...others,
    ];
    const places = `SELECT seq FROM audit INDEXED BY audit_by_subject WHERE ${where.join(' AND ')}
      ORDER BY seq ${order} LIMIT @take`;
    return (after, end, take) => {
      const found = subjects.flatMap((subject) =>
        statements.all<{ seq: number }>(places, { ...parameters, subject, after, end: end ?? far, take }),
      );
      const nearest = found.map(({ seq }) => seq).sort((a, b) => (order === 'asc' ? a - b : b - a));
      return statements.all(
        `SELECT seq, line FROM audit WHERE seq = ANY(?) ORDER BY seq ${order}`,
        nearest.slice(0, take),
      );
    };
  }

  return (filter, after) => {
    const { order = 'asc', limit, subject, since, until } = filter;
    const asked = conditions(filter);
    const parameters = { ...filter, ...(subject === undefined ? {} : { subject: fold(subject) }) };
    const upto = progress('audit');
    const plain = list.along(undefined, asked, parameters, order);
    const found = indexed(asked.map(ofIndexed), parameters, order, upto);
    return walk(found === undefined ? plain : withTail(upto, found, plain, order), {
      after,
      order,
      take: limit + 1,
      maxWait: limits.maxWait,
      stretches: since === undefined && until === undefined ? undefined : times({ from: since, to: until }),
    });
  };
}
