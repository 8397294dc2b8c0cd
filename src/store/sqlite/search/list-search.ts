/** A list with filters that are compared with the whole value, each with its index. */
import type { Condition } from '../../operations/port.ts';
import type { Order, PageRequest } from '../../page.ts';
import type { Db } from '../database.ts';
import { TableSearch, type Index, type Listed, type Parameters } from './table-search.ts';
import { type SearchLimits, SEARCH_LIMITS, type Source, type Stretch, walk, type Walked } from './walk.ts';

/** Finds rows of one table, in order. @typeParam Row with the place that its list is ordered by */
export class ListSearch<Row> {
  readonly table: TableSearch<Row>;
  readonly limits: SearchLimits;

  constructor(db: Db, listed: Listed, limits: SearchLimits = SEARCH_LIMITS) {
    this.table = new TableSearch(db, listed);
    this.limits = limits;
  }

  /**
   * Rows behind a place: one more than the page has room for, so that it is known whether the list goes on.
   *
   * @param stretches the parts of the list in which they are; absent: all of it
   */
  find(
    asked: readonly Condition[],
    parameters: Parameters,
    page: PageRequest & { readonly after: number },
    stretches?: readonly Stretch[],
  ): Walked<Row> {
    const { order = 'asc', after, limit } = page;
    const source = this.along(this.narrowest(asked, parameters), asked, parameters, order);
    return walk(source, { after, order, take: limit + 1, patience: this.limits.patience, stretches });
  }

  /** The rows of which everything holds, along one of the indexes. */
  along(index: Index, asked: readonly Condition[], parameters: Parameters, order: Order): Source<Row> {
    const others = asked.filter(({ sql }) => sql !== index.where).map(({ sql }) => sql);
    return this.table.along(index, others, parameters, { order, step: this.limits.step });
  }

  /** Whether an index has so few entries that a step goes through all of them. */
  isNarrow(index: Index, parameters: Parameters): boolean {
    return index.name !== undefined && this.table.count(index, parameters, this.limits.step) < this.limits.step;
  }

  /** The index with the fewest entries, as far as one step goes: of those that are longer, the first that is asked for. */
  narrowest(asked: readonly Condition[], parameters: Parameters): Index {
    const candidates = asked.flatMap(({ sql, index }) => (index === undefined ? [] : [{ name: index, where: sql }]));
    const [first, ...more] = candidates;
    if (first === undefined || more.length === 0) return first ?? { name: undefined };
    const counts = candidates.map((index) => this.table.count(index, parameters, this.limits.step));
    return candidates[counts.indexOf(Math.min(...counts))] ?? first;
  }
}
