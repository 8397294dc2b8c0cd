/** Lists of the API: a page of it, and more by the cursor, however long the list is. */
import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { call, text, toApiError, type ApiError, type Query } from '../api/client.ts';
import type { Page } from '../api/types.ts';
import { saveFile } from './bits.tsx';
import { useEvents } from './events.ts';
import { useLoad } from './load.ts';
import { notify } from './notices.tsx';
import { Empty, Problem, Show } from './states.tsx';

export interface Column<T> {
  readonly head: string;
  readonly cell: (item: T) => ComponentChildren;
  /** Left out where there is little room. */
  readonly wide?: boolean;
  readonly kind?: 'number' | 'name';
}

interface TableProps<T> {
  readonly caption: string;
  readonly columns: readonly Column<T>[];
  readonly items: readonly T[];
  readonly id: (item: T) => string;
}

export function Table<T>({ caption, columns, items, id }: TableProps<T>) {
  return (
    <div class="table" role="region" aria-label={caption} tabIndex={0}>
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
                <td key={head} class={classes(wide, kind)}>
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

const classes = (wide: boolean | undefined, kind: string | undefined): string =>
  [wide === true ? 'wide' : '', kind ?? ''].join(' ').trim();

interface ListProps<T> extends Omit<TableProps<T>, 'items'> {
  readonly path: string;
  readonly query: Query;
  readonly empty: ComponentChildren;
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
async function pageOf<T>(path: string, query: Query, signal?: AbortSignal): Promise<Page<T>> {
  let page = await call<Page<T>>(path, { query: { limit: PAGE, ...query }, signal });
  for (let n = 1; n < PATIENCE && page.items.length === 0 && page.next_cursor !== null; n++)
    page = await call<Page<T>>(path, { query: { limit: PAGE, ...query, cursor: page.next_cursor }, signal });
  return page;
}

/** A list with its first page, a button for the next, and the whole of it as a file. */
export function RecordList<T>({ path, query, empty, file, version = 0, events = [], ...table }: ListProps<T>) {
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
    <Show of={loaded} again={again} lines={8}>
      {(first) => {
        const items = [...first.items, ...(more?.items ?? [])];
        const cursor = more === undefined ? first.next_cursor : more.next_cursor;
        if (items.length === 0 && cursor === null) return <Empty title="Nothing here">{empty}</Empty>;
        return (
          <>
            {items.length > 0 && <Table {...table} items={items} />}
            <footer class="list-end">
              <span class="fine">
                {items.length === 0 ? 'Nothing so far; there is more to look through' : `${items.length} shown`}
                {cursor === null ? ', that is all' : ''}
              </span>
              {cursor !== null && (
                <button type="button" disabled={busy} onClick={() => void next(cursor)}>
                  {busy ? 'Loading …' : items.length === 0 ? 'Look further' : 'Show more'}
                </button>
              )}
              {file !== undefined && <Export path={path} query={query} file={file} />}
            </footer>
            {problem !== undefined && <Problem error={problem} />}
          </>
        );
      }}
    </Show>
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
    <button type="button" class="quiet" disabled={busy} onClick={() => void save()}>
      {busy ? 'Exporting …' : 'Export CSV'}
    </button>
  );
}
