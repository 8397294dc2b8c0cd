/** Lists in the order in which things came, whatever they are filtered by: the planner has an index for each filter. */
import { type ListName, readPosition, toPage, withoutPosition } from '../cursor.ts';
import { fold } from '../fold.ts';
import type { Page, PageRequest } from '../page.ts';
import type { Queries } from './queries.ts';

export interface Listed {
  readonly name: ListName;
  readonly table: string;
  readonly columns: string;
}

/** The conditions of the filters that are given. */
export function given(all: readonly { readonly value: unknown; readonly sql: string }[]): readonly string[] {
  return all.flatMap(({ value, sql }) => (value === undefined ? [] : [sql]));
}

/** Makes a page of the rows that are asked for. @typeParam Row as the columns have it */
export type List<Row> = <Item>(
  conditions: readonly string[],
  parameters: object,
  page: PageRequest,
  item: (row: Row) => Item,
) => Promise<Page<Item>>;

/** Lists a table by its `position`. */
export function listing<Row extends object>(db: Queries, { name, table, columns }: Listed): List<Row> {
  return async (conditions, parameters, page, item) => {
    const { order = 'asc', limit } = page;
    const after = readPosition(name, page);
    const where = [`position ${order === 'asc' ? '>' : '<'} @after`, ...conditions].join(' AND ');
    const rows = await db
      .prepare<object, Row & { position: number }>(
        `SELECT position, ${columns} FROM ${table} WHERE ${where} ORDER BY position ${order} LIMIT @take`,
      )
      .all({ ...parameters, after, take: limit + 1 });
    return toPage(
      name,
      rows,
      limit,
      (row) => row.position,
      // Without its position it is what the columns have.
      (row) => item(withoutPosition(row) as Row),
    );
  };
}

/** A LIKE pattern of what holds a part, upper and lower case alike. */
export const partPattern = (part: string): string => `%${fold(part).replaceAll(/[\\%_]/g, String.raw`\$&`)}%`;
