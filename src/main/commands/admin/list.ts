/** Prints paginated lists as tables, JSON or CSV, once or continuously. */
import { setTimeout as pause } from 'node:timers/promises';
import { CommandError, EXIT, flag, UsageError, value, type Values } from '../command.ts';
import { progress } from '../progress.ts';
import { FORMATS, type Session } from './admin-command.ts';
import type { Query } from './client.ts';
import { type JsonRecord, recordsAt, textAt } from './json.ts';
import { csvOf, formatOf, type Kind, tableOf } from './output.ts';
import { readCount, readTime } from './times.ts';

/** The options of every list, in addition to its filters. */
export const LIST = {
  limit: value('N', 'largest number of entries (default 100)'),
  all: flag('all entries, instead of --limit'),
  cursor: value('CURSOR', 'continue a list: the cursor from the end of the previous page'),
  order: value('ORDER', 'asc (oldest first, the default) or desc', ['asc', 'desc']),
  ...FORMATS,
  watch: flag('refresh until interrupted: a table on a terminal, otherwise only new or changed entries'),
  interval: value('SECONDS', 'interval of --watch (default 5)'),
};

interface ListSpec {
  readonly path: string;
  readonly kind: Kind;
  /** Filter options by the API's names. */
  readonly filters: Readonly<Record<string, string>>;
  /** Filters that are times, and the direction of relative times. */
  readonly times?: Readonly<Record<string, 1 | -1>>;
  /** Whether the server returns CSV. */
  readonly csv: boolean;
}

type ListValues = Values<typeof LIST>;

const MOST_A_PAGE = 1000;
const DEFAULT_LIMIT = 100;

export const lists =
  (spec: ListSpec) =>
  (values: ListValues, session: Session): Promise<number> =>
    list(spec, values, session);

async function list(spec: ListSpec, values: ListValues, session: Session): Promise<number> {
  const format = formatOf(values);
  const filters = readFilters(spec, values, session.now());
  const limit = readCount('--limit', values.limit);
  if (limit !== undefined && values.all) throw new UsageError('--limit and --all exclude each other');
  const interval = readCount('--interval', values.interval);
  if (values.watch) {
    if (format === 'csv' || values.all || values.cursor !== undefined)
      throw new UsageError(
        `--watch cannot be combined with --${format === 'csv' ? 'csv' : values.all ? 'all' : 'cursor'}`,
      );
    return watch(
      { ...spec, filters, limit: limit ?? DEFAULT_LIMIT, seconds: interval ?? 5, json: values.json },
      session,
    );
  }
  if (interval !== undefined) throw new UsageError('--interval requires --watch');
  if (format === 'csv' && spec.csv) {
    if (limit !== undefined || values.cursor !== undefined)
      throw new UsageError('--csv prints everything that matches: it cannot be combined with --limit or --cursor');
    return printCsv(spec, filters, session);
  }
  const pages = pagesOf(
    spec,
    { ...filters, cursor: values.cursor },
    values.all ? Infinity : (limit ?? DEFAULT_LIMIT),
    session,
  );
  if (format === 'json') return printJson(pages, session);
  return format === 'csv' ? printOwnCsv(pages, session) : printTable(spec.kind, pages, session);
}

export function readFilters(
  { filters, times = {} }: Pick<ListSpec, 'filters' | 'times'>,
  values: Readonly<Record<string, unknown>>,
  now: number,
): Query {
  const query: Record<string, string> = {};
  for (const [option, parameter] of Object.entries({ ...filters, order: 'order' })) {
    const given = values[option];
    if (typeof given !== 'string' || given === '') continue;
    const towards = times[option];
    query[parameter] = towards === undefined ? given : readTime(`--${option}`, given, now, towards);
  }
  return query;
}

interface Page {
  readonly items: readonly JsonRecord[];
  /** '' on the last page. */
  readonly next: string;
}

/** @param most items */
async function* pagesOf(
  { path }: Pick<ListSpec, 'path'>,
  query: Query,
  most: number,
  { client }: Pick<Session, 'client'>,
): AsyncGenerator<Page> {
  let [left, cursor] = [most, query['cursor']];
  do {
    const limit = Math.min(left, MOST_A_PAGE);
    const page = await client.record('GET', path, { query: { ...query, cursor, limit } });
    const items = recordsAt(page, 'items');
    const next = textAt(page, 'next_cursor');
    yield { items, next };
    left -= items.length;
    cursor = next;
  } while (cursor !== '' && left > 0);
}

async function printTable(kind: Kind, pages: AsyncIterable<Page>, session: Session): Promise<number> {
  let [count, rest] = [0, ''];
  for await (const { items, next } of pages) {
    // Each page is aligned separately, so that the first prints before the last is read.
    if (items.length > 0) session.out(tableOf(kind, items, session));
    count += items.length;
    rest = next;
    await session.drained?.();
  }
  if (count === 0) session.err('There is none.\n');
  if (rest !== '') session.err(`There may be more: pass --cursor ${rest} to continue, or --all.\n`);
  return EXIT.ok;
}

/** The API's list format across all pages, one record per line. */
async function printJson(pages: AsyncIterable<Page>, session: Session): Promise<number> {
  let [before, rest] = ['', ''];
  session.out('{"items":[');
  for await (const { items, next } of pages) {
    for (const item of items) {
      session.out(`${before}\n${JSON.stringify(item)}`);
      before = ',';
    }
    rest = next;
    await session.drained?.();
  }
  session.out(`\n],"next_cursor":${rest === '' ? 'null' : JSON.stringify(rest)}}\n`);
  return EXIT.ok;
}

async function printCsv({ path }: ListSpec, query: Query, session: Session): Promise<number> {
  const shown = progress(session, { what: 'exporting', unit: 'lines' });
  try {
    const answer = await session.client.open('GET', path, { query, accept: 'text/csv' });
    let lines = 0;
    for await (const chunk of session.client.chunks(answer)) {
      session.out(chunk);
      lines += chunk.split('\n').length - 1;
      shown.update(lines);
      await session.drained?.();
    }
  } finally {
    shown.end();
  }
  return EXIT.ok;
}

async function printOwnCsv(pages: AsyncIterable<Page>, session: Session): Promise<number> {
  const records: JsonRecord[] = [];
  for await (const { items } of pages) records.push(...items);
  session.out(csvOf(records));
  return EXIT.ok;
}

/** Polls a list until interrupted. */
interface Watched {
  readonly path: string;
  readonly kind: Kind;
  readonly filters: Query;
  /** Number of latest records. */
  readonly limit: number;
  readonly seconds: number;
  /** One JSON record per line. */
  readonly json: boolean;
}

/** Maximum remembered records. */
const REMEMBERED = 20_000;
const MOST = 1000;

/** Continues while the server is down; ends if it rejects the call. @throws CommandError */
async function watch(watched: Watched, session: Session): Promise<number> {
  const { seconds, json, kind } = watched;
  const columns = json ? undefined : session.terminal?.outColumns;
  const seen = new Map<string, string>();
  let away = false;
  for (;;) {
    try {
      const items = await newest(watched, session);
      if (away) session.err('the server responds again\n');
      away = false;
      if (columns === undefined) printChanges(items, seen, { json, kind }, session);
      else draw(items, watched, session);
    } catch (error) {
      if (!(error instanceof CommandError) || error.exitCode !== EXIT.unavailable) throw error;
      if (!away) session.err(`${error.message}. Retrying.\n`);
      away = true;
    }
    await session.drained?.();
    await pause(seconds * 1000);
  }
}

async function newest({ path, filters, limit }: Watched, { client }: Session): Promise<readonly JsonRecord[]> {
  const items: JsonRecord[] = [];
  let cursor: string | undefined;
  do {
    const query = { order: 'desc', ...filters, cursor, limit: Math.min(limit - items.length, MOST) };
    const page = await client.record('GET', path, { query });
    items.push(...recordsAt(page, 'items'));
    cursor = typeof page['next_cursor'] === 'string' ? page['next_cursor'] : undefined;
  } while (cursor !== undefined && items.length < limit);
  return items;
}

function draw(items: readonly JsonRecord[], { kind, seconds }: Watched, session: Session): void {
  const time = `${new Date(session.now()).toISOString().slice(0, 19)}Z`;
  const table = items.length === 0 ? 'There is none.\n' : tableOf(kind, items, session);
  session.out(`\x1b[H\x1b[2J\x1b[3Jevery ${seconds} s, ${time}; press Ctrl-C to stop\n\n${table}`);
}

/** Oldest first. */
function printChanges(
  items: readonly JsonRecord[],
  seen: Map<string, string>,
  { json, kind }: { readonly json: boolean; readonly kind: Kind },
  session: Session,
): void {
  const isFirst = seen.size === 0;
  const changed = items.toReversed().filter((item) => {
    const [key, text] = [kind.key(item), JSON.stringify(item)];
    if (seen.get(key) === text) return false;
    seen.delete(key);
    seen.set(key, text);
    return true;
  });
  for (const key of seen.keys()) if (seen.size > REMEMBERED) seen.delete(key);
  if (changed.length === 0) return;
  if (json) session.out(changed.map((item) => `${JSON.stringify(item)}\n`).join(''));
  else {
    const [head = '', ...lines] = tableOf(kind, changed, session).split(/(?<=\n)/);
    session.out((isFirst ? head : '') + lines.join(''));
  }
}
