/** Selects audit records, and the index to find them. */
import type { AuditFilter } from '../../audit-store.ts';
import { fold, NEWEST, type Order } from '../../page.ts';
import type { Db } from '../database.ts';
import { searchProgress } from './index-rows.ts';
import { atLabels, type Condition, given, LABEL } from '../../port.ts';
import { ListSearch, type Parameters } from './table-search.ts';
import { hasTrigrams, trigramMatches, windowEnd, withTail } from './trigrams.ts';
import { type SearchLimits, type Source, walk, type Walked, zoneReads } from './walk.ts';

interface Row {
  readonly seq: number;
  readonly line: string;
}

/** Subjects that are looked up individually; if there are more, records are scanned in order. */
const SUBJECTS = 500;
/** Records per step along subjects. */
const WINDOW = 50_000;
const OF_SUBJECT = 'instr(estuary_fold(subject), @subject) > 0';
/** The indexes are filled later (index-rows.ts). */
const INDEXED = 'indexed = 1 AND';

function conditions(filter: AuditFilter): readonly Condition[] {
  const { request_id, serial, type, ca, subject, since, until, labels } = filter;
  const asked = given([
    { value: request_id, sql: 'request_id = @request_id', index: 'audit_by_request' },
    { value: serial, sql: 'serial = @serial', index: 'audit_by_serial' },
    { value: type, sql: 'type = @type', index: 'audit_by_type' },
    { value: ca, sql: 'ca = @ca', index: 'audit_by_ca' },
    { value: since, sql: 'time >= @since' },
    { value: until, sql: 'time <= @until' },
    { value: subject, sql: OF_SUBJECT },
  ]);
  return [...asked, ...atLabels(LABEL, labels).conditions];
}

const ofIndexed = ({ sql, index }: Condition): Condition =>
  index === undefined ? { sql } : { sql: `${INDEXED} ${sql}`, index };

export class AuditSearch {
  readonly #db: Db;
  readonly #list: ListSearch<Row>;
  readonly #progress: (list: 'audit') => number;
  readonly #match;
  readonly #times;
  readonly #subjects;

  constructor(db: Db, limits: SearchLimits) {
    db.function('estuary_fold', { deterministic: true }, fold);
    this.#db = db;
    this.#list = new ListSearch(db, { table: 'audit', place: 'seq', columns: 'line' }, limits);
    this.#progress = searchProgress(db);
    this.#match = trigramMatches(db, 'audit_subject_names');
    this.#times = zoneReads(db, 'audit.time');
    this.#subjects = db
      .prepare<{ match: string; subject: string }, string>(
        `SELECT found.subject FROM audit_subject_names AS names CROSS JOIN audit_subject AS found ON found.id = names.rowid
         WHERE audit_subject_names MATCH @match AND instr(estuary_fold(found.subject), @subject) > 0 LIMIT ${SUBJECTS + 1}`,
      )
      .pluck();
  }

  /** Records after a position, in order. */
  find(filter: AuditFilter, after: number): Walked<Row> {
    const { order = 'asc', limit, subject, since, until, labels } = filter;
    const { parameters: permitted } = atLabels(LABEL, labels);
    const parameters = { ...filter, ...permitted, ...(subject === undefined ? {} : { subject: fold(subject) }) };
    return walk(this.#source(conditions(filter), parameters, order), {
      after,
      order,
      take: limit + 1,
      maxWait: this.#list.limits.maxWait,
      stretches: since === undefined && until === undefined ? undefined : this.#times({ from: since, to: until }),
    });
  }

  #source(asked: readonly Condition[], parameters: Parameters & AuditFilter, order: Order): Source<Row> {
    const upto = this.#progress('audit');
    const plain = this.#list.along({ name: undefined }, asked, parameters, order);
    const found = this.#found(asked.map(ofIndexed), parameters, { order, upto });
    return found === undefined ? plain : withTail(upto, found, plain, order);
  }

  /** Along an index, if one leaves fewer than all records. */
  #found(
    asked: readonly Condition[],
    parameters: Parameters & AuditFilter,
    { order, upto }: { readonly order: Order; readonly upto: number },
  ): Source<Row> | undefined {
    const index = this.#list.narrowest(asked, parameters);
    const along = index.name === undefined ? undefined : this.#list.along(index, asked, parameters, order);
    const { subject } = parameters;
    if (subject === undefined || !hasTrigrams(subject) || this.#list.isNarrow(index, parameters)) return along;
    const subjects = this.#subjects.all({ match: this.#match([['subject', subject]]), subject });
    if (subjects.length > SUBJECTS) return along;
    const others = asked.flatMap(({ sql }) => (sql === OF_SUBJECT ? [] : [sql]));
    return this.#ofSubjects(subjects, others, parameters, { order, upto });
  }

  /** The records of some subjects that match the other conditions. */
  #ofSubjects(
    subjects: readonly string[],
    others: readonly string[],
    parameters: Parameters,
    { order, upto }: { readonly order: Order; readonly upto: number },
  ): Source<Row> {
    const [behind, until] = order === 'asc' ? ['>', '<='] : ['<', '>='];
    const conditions = [`${INDEXED} subject = @one`, `seq ${behind} @after`, `seq ${until} @end`, ...others];
    const places = this.#db
      .prepare<[object], number>(
        `SELECT seq FROM audit INDEXED BY audit_by_subject WHERE ${conditions.join(' AND ')} ORDER BY seq ${order} LIMIT @take`,
      )
      .pluck();
    const records = this.#db.prepare<[string], Row>(
      `SELECT seq, line FROM audit WHERE seq IN (SELECT value FROM json_each(?)) ORDER BY seq ${order}`,
    );
    const far = order === 'asc' ? NEWEST : 0;
    return {
      // Without further conditions, no step finds more than fit.
      end: (after) => (others.length === 0 ? undefined : windowEnd(after, WINDOW, order, upto)),
      read: (after, end, take) => {
        const found = subjects.flatMap((one) => places.all({ ...parameters, one, after, end: end ?? far, take }));
        const nearest = found.sort((a, b) => (order === 'asc' ? a - b : b - a)).slice(0, take);
        return records.all(JSON.stringify(nearest));
      },
    };
  }
}
