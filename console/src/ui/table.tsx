/** Lists of the API with filters, chosen columns, and paging by cursor. */
import { isValidElement, type ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { call, text, toApiError, type ApiError, type Query } from '../api/client.ts';
import type { Page } from '../api/types.ts';
import { chooseColumns, chosenColumns } from '../shared/preferences.ts';
import { link, route } from '../shared/router.ts';
import { saveFile } from './bits.tsx';
import { Time } from './clock.tsx';
import { Drop } from './drop.tsx';
import { useEvents } from './events.ts';
import { Filters, type Filter } from './fields.tsx';
import { useLoad } from './load.ts';
import { notify } from './notices.tsx';
import { Empty, Problem, Show } from './states.tsx';

export interface Column<T> {
  readonly head: string;
  readonly cell: (item: T) => ComponentChildren;
  /**
   * `name`: shares the remaining width by the length of the texts, and is truncated. `message`: the same, and shown whole. `status`: in the corner of a card.
   * `tools`: buttons, without a label on a card.
   */
  readonly kind?: 'number' | 'name' | 'message' | 'status' | 'tools';
  /** Not on a card. */
  readonly wide?: boolean;
  /** Only if the user chooses it. */
  readonly extra?: boolean;
  /** The API sorts the list by it. */
  readonly sorted?: boolean;
}

/** Rows that the user selects, by mouse or keyboard, for a change of all of them. */
interface RowSelection<T> {
  readonly selected: readonly T[];
  readonly choose: (items: readonly T[]) => void;
  /** Whether a row can be selected. */
  readonly allows: (item: T) => boolean;
}

export interface TableProps<T> {
  readonly caption: string;
  readonly columns: readonly Column<T>[];
  readonly items: readonly T[];
  readonly id: (item: T) => string;
  readonly selection?: RowSelection<T> | undefined;
  /** Of the column that is sorted. */
  readonly order?: 'asc' | 'desc' | undefined;
}

/** One line per item, or a card on a phone. Hovering shows truncated text, and the focused row unfolds. */
export function Table<T>({ caption, columns: all, items, id, selection, order }: TableProps<T>) {
  const columns = shownColumns(caption, all, items);
  const selectable = selection === undefined ? [] : items.filter(selection.allows);
  const selected = new Set(selection?.selected.map(id));
  const table = useRef<HTMLTableElement>(null);
  useLayoutEffect(() => shareWidth(table.current));
  return (
    <div class="table" role="region" aria-label={caption} tabIndex={0} onMouseOver={showWhole}>
      <table ref={table}>
        <caption class="visually-hidden">{caption}</caption>
        <thead>
          <tr>
            {columns.map(({ head, wide, kind, sorted }) => (
              <th
                key={head}
                scope="col"
                class={classes(wide, kind)}
                aria-sort={sorted === true && order !== undefined ? SORTED[order] : undefined}
              >
                {sorted === true && order !== undefined ? <Sorted head={head} order={order} /> : head}
              </th>
            ))}
            {selectable.length > 0 && (
              <th scope="col">
                <input
                  type="checkbox"
                  aria-label={`Select all ${selectable.length} that are shown`}
                  checked={selectable.every((item) => selected.has(id(item)))}
                  onChange={(event) => selection?.choose(event.currentTarget.checked ? selectable : [])}
                />
              </th>
            )}
          </tr>
        </thead>
        <tbody>
          {items.map((item) => (
            <tr key={id(item)}>
              {columns.map(({ head, cell, wide, kind }) => (
                <td key={head} class={classes(wide, kind)} data-head={head}>
                  {cell(item)}
                </td>
              ))}
              {selectable.length > 0 && (
                <td data-head="Select">
                  {selection?.allows(item) === true && (
                    <input
                      type="checkbox"
                      aria-label="Select this row"
                      checked={selected.has(id(item))}
                      onChange={(event) =>
                        selection.choose([
                          ...selection.selected.filter((other) => id(other) !== id(item)),
                          ...(event.currentTarget.checked ? [item] : []),
                        ])
                      }
                    />
                  )}
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Longest text, in characters, that widens a column. */
const WIDEST = 60;

/** Divides the width of the columns of names by the lengths of their texts. The first counts more. */
function shareWidth(table: HTMLTableElement | null): void {
  const heads = [...(table?.querySelectorAll('th') ?? [])];
  const wishes = heads.map(({ className }, index) => {
    if (!/\b(?:name|message)\b/.test(className)) return 0;
    const cells = [...(table?.querySelectorAll(`tr > :nth-child(${index + 1})`) ?? [])];
    const longest = Math.max(...cells.map(({ textContent }) => textContent.length));
    return Math.min(longest, WIDEST) * (index === 0 ? 1.5 : 1);
  });
  const all = wishes.reduce((sum, wish) => sum + wish, 0);
  for (const [index, wish] of wishes.entries())
    if (wish > 0) heads[index]?.style.setProperty('width', `${(100 * wish) / all}%`);
}

const SORTED = { asc: 'ascending', desc: 'descending' } as const;

/** The head of the sorted column: a link to the other order. */
function Sorted({ head, order }: { readonly head: string; readonly order: 'asc' | 'desc' }) {
  const { path, query } = route.value;
  return (
    <a href={link(path, { ...query, order: order === 'asc' ? 'desc' : 'asc' })}>
      {head} <span aria-hidden="true">{order === 'asc' ? '↑' : '↓'}</span>
    </a>
  );
}

function showWhole({ target }: Event): void {
  const cell = target instanceof Element ? target.closest('td') : null;
  if (cell !== null && cell.scrollWidth > cell.clientWidth) cell.title = cell.textContent;
}

const classes = (wide: boolean | undefined, kind: string | undefined): string =>
  [wide === true ? 'wide' : '', kind ?? ''].join(' ').trim();

interface ListProps<T> extends Omit<TableProps<T>, 'items'> {
  readonly path: string;
  readonly query: Query;
  readonly empty: ComponentChildren;
  readonly filters?: readonly Filter[];
  /** Buttons for all records that match the filters. */
  readonly tools?: ComponentChildren;
  /** The name of the CSV export; absent if the API has none. */
  readonly file?: string;
  /** A new number reloads the list. */
  readonly version?: number;
  /** Event types that change this list. */
  readonly events?: readonly string[];
}

const PAGE = 50;
/** Pages without a match after which the user decides whether to continue. */
const EMPTY_PAGES = 20;

/** The server limits the rows that it reads per page. If a page has no match, this continues with the next one. */
export async function pageOf<T>(path: string, query: Query, signal?: AbortSignal): Promise<Page<T>> {
  const read = (more: Query): Promise<Page<T>> => call(path, { query: { limit: PAGE, ...query, ...more }, signal });
  const first = await read({});
  let page = first;
  for (let n = 1; n < EMPTY_PAGES && page.items.length === 0 && page.next_cursor !== null; n++)
    page = await read({ cursor: page.next_cursor, total: undefined });
  return { ...page, total: first.total };
}

/** A list with filters, a button for the next page, and a CSV export. */
export function RecordList<T>({
  path,
  query,
  empty,
  filters,
  tools,
  file,
  version = 0,
  events = [],
  columns,
  ...table
}: ListProps<T>) {
  const key = JSON.stringify([path, query, version]);
  const { loaded, again } = useLoad(key, (signal) => pageOf<T>(path, { ...query, total: 'true' }, signal));
  const [more, setMore] = useState<Page<T>>();
  const [problem, setProblem] = useState<ApiError>();
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    setMore(undefined);
    setProblem(undefined);
  }, [key]);
  useEvents(events, again);

  const next = async (cursor: string) => {
    setBusy(true);
    try {
      const page = await pageOf<T>(path, { ...query, cursor });
      setMore((before) => ({ ...page, items: [...(before?.items ?? []), ...page.items] }));
    } catch (error) {
      setProblem(toApiError(error));
    }
    setBusy(false);
  };

  return (
    <>
      <div class="list-bar">
        {filters !== undefined && <Filters of={filters} search={table.caption} tools={tools} />}
        <div class="list-tools">
          <ColumnChooser list={table.caption} columns={columns} />
          {file !== undefined && <Export path={path} query={query} file={file} />}
        </div>
      </div>
      <Show of={loaded} again={again} lines={8}>
        {(first) => {
          const items = [...first.items, ...(more?.items ?? [])];
          const cursor = more === undefined ? first.next_cursor : more.next_cursor;
          if (items.length === 0 && cursor === null) return <Empty title="No records">{empty}</Empty>;
          return (
            <>
              {items.length > 0 && (
                <Table {...table} columns={columns} items={items} order={query['order'] === 'asc' ? 'asc' : 'desc'} />
              )}
              <footer class="list-end">
                <span class="fine">
                  {items.length === 0
                    ? 'No match so far. There are more records to search.'
                    : shownOf(items.length, cursor === null ? undefined : first.total)}
                </span>
                {cursor !== null && (
                  <button type="button" disabled={busy} onClick={() => void next(cursor)}>
                    {busy ? 'Loading …' : items.length === 0 ? 'Search further' : 'Show more'}
                  </button>
                )}
              </footer>
              {problem !== undefined && <Problem error={problem} />}
            </>
          );
        }}
      </Show>
    </>
  );
}

/** How many records are shown, and how many match. @param total undefined: all are shown */
function shownOf(shown: number, total: Page<unknown>['total']): string {
  const all = Math.max(shown, total?.count ?? 0).toLocaleString('en');
  if (total === undefined) return `${all} in total`;
  return `${shown.toLocaleString('en')} of ${total.exact ? '' : 'at least '}${all} shown`;
}

/** The first column is always shown, and so are buttons. */
const isOptional = <T,>({ kind }: Column<T>, index: number): boolean => index > 0 && kind !== 'tools';

/** The chosen columns; without a choice, those that are not empty. */
function shownColumns<T>(list: string, columns: readonly Column<T>[], items?: readonly T[]): readonly Column<T>[] {
  const chosen = chosenColumns(list);
  const isShown = ({ head, extra, cell }: Column<T>): boolean =>
    chosen?.includes(head) ?? (extra !== true && isFilled(cell));
  const isFilled = (cell: Column<T>['cell']): boolean => items?.some((item) => !isEmpty(cell(item))) ?? true;
  return columns.filter(
    (column, index) => index === 0 || (column.kind === 'tools' ? isFilled(column.cell) : isShown(column)),
  );
}

function isEmpty(cell: ComponentChildren): boolean {
  if (isValidElement(cell) && cell.type === Time)
    return 'at' in cell.props && cell.props.at == null && !('empty' in cell.props);
  return cell === undefined || cell === null || cell === false || cell === '';
}

interface ChooserProps<T> {
  readonly list: string;
  readonly columns: readonly Column<T>[];
}

function ColumnChooser<T>({ list, columns }: ChooserProps<T>) {
  const optional = columns.filter(isOptional);
  if (optional.length < 2) return null;
  const shown = shownColumns(list, columns).map(({ head }) => head);
  const choose = (head: string, isShown: boolean) =>
    chooseColumns(list, isShown ? [...shown, head] : shown.filter((column) => column !== head));
  return (
    <div class="columns-drop">
      <Drop label="Columns" end>
        <fieldset class="drop-fields">
          <legend class="visually-hidden">Columns</legend>
          {optional.map(({ head }) => (
            <label key={head} class="check">
              <input
                type="checkbox"
                checked={shown.includes(head)}
                onChange={(event) => choose(head, event.currentTarget.checked)}
              />
              {head}
            </label>
          ))}
          {chosenColumns(list) !== undefined && (
            <button type="button" class="quiet" onClick={() => chooseColumns(list, undefined)}>
              Reset
            </button>
          )}
        </fieldset>
      </Drop>
    </div>
  );
}

/** Downloads all matching records as CSV. */
export function Export({ path, query, file }: { readonly path: string; readonly query: Query; readonly file: string }) {
  const [busy, setBusy] = useState(false);
  const save = async () => {
    setBusy(true);
    try {
      saveFile(file, 'text/csv', await text(path, { query, accept: 'text/csv' }));
    } catch (error) {
      notify(`The export failed: ${toApiError(error).message}`);
    }
    setBusy(false);
  };
  return (
    <button type="button" disabled={busy} onClick={() => void save()}>
      {busy ? 'Exporting …' : 'Export CSV'}
    </button>
  );
}
