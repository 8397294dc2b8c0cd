/** Lists of the API: filters, the columns that the user chooses, a page of records, and more by the cursor. */
import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { call, text, toApiError, type ApiError, type Query } from '../api/client.ts';
import type { Page } from '../api/types.ts';
import { chooseColumns, chosenColumns } from '../preferences.ts';
import { saveFile } from './bits.tsx';
import { Drop } from './drop.tsx';
import { useEvents } from './events.ts';
import { Filters, type Filter } from './fields.tsx';
import { useLoad } from './load.ts';
import { notify } from './notices.tsx';
import { Empty, Problem, Show } from './states.tsx';

export interface Column<T> {
  readonly head: string;
  readonly cell: (item: T) => ComponentChildren;
  /** `name`: takes the room that is left, and is cut off. `status`: in the corner of a card. `tools`: buttons, without a label there. */
  readonly kind?: 'number' | 'name' | 'status' | 'tools';
  /** Not on a card. */
  readonly wide?: boolean;
  /** Only if the user chooses it. */
  readonly extra?: boolean;
}

interface TableProps<T> {
  readonly caption: string;
  readonly columns: readonly Column<T>[];
  readonly items: readonly T[];
  readonly id: (item: T) => string;
}

/** One line for each item, a card on a phone. Hovering shows text that is cut off, and the row with the focus unfolds. */
export function Table<T>({ caption, columns: all, items, id }: TableProps<T>) {
  const columns = shownColumns(caption, all);
  return (
    <div class="table" role="region" aria-label={caption} tabIndex={0} onMouseOver={showWhole}>
      <table>
        <caption class="visually-hidden">{caption}</caption>
        <thead>
          <tr>
            {columns.map(({ head, wide, kind }) => (
              <th key={head} scope="col" class={classes(wide, kind)}>
                {head}
              </th>
            ))}
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
            </tr>
          ))}
        </tbody>
      </table>
    </div>
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
  /** Further buttons next to the filters. */
  readonly tools?: ComponentChildren;
  /** The file of the whole selection; absent where the API has no table of it. */
  readonly file?: string;
  /** Changes when the list was changed here. */
  readonly version?: number;
  /** What of the server's events changes this list. */
  readonly events?: readonly string[];
}

const PAGE = 50;
/** Pages without a match before the user is asked whether to continue. */
const PATIENCE = 20;

/** A page looks through so many rows and no more: where it found nothing among them, the next ones are looked through. */
export async function pageOf<T>(path: string, query: Query, signal?: AbortSignal): Promise<Page<T>> {
  let page = await call<Page<T>>(path, { query: { limit: PAGE, ...query }, signal });
  for (let n = 1; n < PATIENCE && page.items.length === 0 && page.next_cursor !== null; n++)
    page = await call<Page<T>>(path, { query: { limit: PAGE, ...query, cursor: page.next_cursor }, signal });
  return page;
}

/** A list with its filters, its first page, a button for the next, and the whole of it as a file. */
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
  const { loaded, again } = useLoad(key, (signal) => pageOf<T>(path, query, signal));
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
        {filters !== undefined && <Filters of={filters} search={table.caption} />}
        <div class="list-tools">
          {tools}
          <ColumnChooser list={table.caption} columns={columns} />
          {file !== undefined && <Export path={path} query={query} file={file} />}
        </div>
      </div>
      <Show of={loaded} again={again} lines={8}>
        {(first) => {
          const items = [...first.items, ...(more?.items ?? [])];
          const cursor = more === undefined ? first.next_cursor : more.next_cursor;
          if (items.length === 0 && cursor === null) return <Empty title="Nothing here">{empty}</Empty>;
          return (
            <>
              {items.length > 0 && <Table {...table} columns={columns} items={items} />}
              <footer class="list-end">
                <span class="fine">
                  {items.length === 0 ? 'No match so far. There are more records to search.' : `${items.length} shown`}
                  {cursor === null ? ', no more' : ''}
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

/** The first column and those with buttons are always shown. */
const isOptional = <T,>({ kind }: Column<T>, index: number): boolean => index > 0 && kind !== 'tools';

function shownColumns<T>(list: string, columns: readonly Column<T>[]): readonly Column<T>[] {
  const chosen = chosenColumns(list);
  return columns.filter(
    (column, index) =>
      !isOptional(column, index) || (chosen === undefined ? column.extra !== true : chosen.includes(column.head)),
  );
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
    chooseColumns(list, isShown ? [...shown, head] : shown.filter((one) => one !== head));
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

/** Fetches the whole selection as CSV. */
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
