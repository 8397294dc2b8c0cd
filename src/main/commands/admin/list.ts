/** Prints paginated lists as tables, JSON or CSV, once or continuously. */
import { setTimeout as pause } from 'node:timers/promises';
import { type Command, CommandError, EXIT, flag, type Options, UsageError, value, type Values } from '../command.ts';
import { progress } from '../progress.ts';
import { adminCommand, FORMATS, queryOf, type Session } from './admin-command.ts';
import type { Query } from './client.ts';
import { type JsonRecord, recordsAt, textAt } from './json.ts';
import { csvOf, formatOf, type Kind, tableOf } from './output.ts';
import { readCount } from './times.ts';

const orderOf = ({ order, first = '' }: Pick<ListSpec, 'order' | 'first'>) =>
  value(
    'ORDER',
    order === 'asc'
      ? `asc (${first}the default of tables) or desc`
      : 'asc (oldest first) or desc (newest first, the default of tables)',
    ['asc', 'desc'],
  );

/** The options of every list, in addition to its filters. */
const LIST = {
  limit: value('N', 'largest number of entries (default 100)'),
  all: flag('all entries, instead of --limit'),
  cursor: value('CURSOR', 'continue a list: the cursor from the end of the previous page'),
  order: orderOf({}),
  wide: flag('all columns with their full values, also on a narrow terminal'),
  ...FORMATS,
  watch: flag('refresh until interrupted: a table on a terminal, otherwise only new or changed entries'),
  interval: value('SECONDS', 'interval of --watch (default 5)'),
};

interface ListSpec {
  /** Of the call; its parameters are the filters. */
  readonly path: string;
  readonly kind: Kind;
  /** Whether the server returns CSV; default true. */
  readonly csv?: boolean;
  /** Of its table; default: the newest first. */
  readonly order?: 'asc';
  /** What comes first then, with a comma, if it is not the oldest. */
  readonly first?: string;
}

type ListValues = Values<typeof LIST>;

const MOST_A_PAGE = 1000;
const DEFAULT_LIMIT = 100;

/** A command that prints a list. */
export function listCommand(
  name: string,
  summary: string,
  { roles, filters = {}, ...spec }: ListSpec & { readonly roles: readonly string[]; readonly filters?: Options },
): Command {
  const run = (values: ListValues, session: Session): Promise<number> => {
    const query = queryOf({ ...filters, order: LIST.order }, values, session.now());
    return list(spec, query, values, session);
  };
  const options = { ...filters, ...LIST, order: orderOf(spec) };
  return adminCommand<typeof LIST>(name, summary, { options, run, calls: [`GET ${spec.path}`], roles });
}

async function list(spec: ListSpec, filters: Query, values: ListValues, session: Session): Promise<number> {
  const format = formatOf(values);
  const limit = readCount('--limit', values.limit);
  if (limit !== undefined && values.all) throw new UsageError('--limit and --all exclude each other');
  const interval = readCount('--interval', values.interval);
  if (values.watch) {
    if (format === 'csv' || values.all || values.cursor !== undefined)
      throw new UsageError(
        `--watch cannot be combined with --${format === 'csv' ? 'csv' : values.all ? 'all' : 'cursor'}`,
      );
    return watch(
      { ...spec, filters, limit: limit ?? DEFAULT_LIMIT, seconds: interval ?? 5, json: values.json, wide: values.wide },
      session,
    );
  }
  if (interval !== undefined) throw new UsageError('--interval requires --watch');
  if (format === 'csv' && spec.csv !== false) {
    if (limit !== undefined || values.cursor !== undefined)
      throw new UsageError('--csv prints everything that matches: it cannot be combined with --limit or --cursor');
    return printCsv(spec, filters, session);
  }
  const most = values.all ? Infinity : (limit ?? DEFAULT_LIMIT);
  const order = format === 'table' ? { order: spec.order ?? 'desc' } : {};
  const pages = pagesOf(spec.path, { ...order, ...filters, cursor: values.cursor }, most, session);
  if (format === 'json') return printJson(pages, session);
  if (format === 'csv') {
    session.out(csvOf(await recordsOf(pages)));
    return EXIT.ok;
  }
  const count = await printTable(spec.kind, pages, session, values.wide);
  if (count === 0) session.err(`Nothing found.${await aboutLabel(filters['ca'], session)}\n`);
  return EXIT.ok;
}

/** That no CA has a label, which a former one may have had. */
async function aboutLabel(label: Query[string], { client }: Session): Promise<string> {
  if (label === undefined) return '';
  try {
    const labels = recordsAt(await client.record('GET', '/admin/cas'), 'items').map((ca) => textAt(ca, 'label'));
    return labels.includes(String(label))
      ? ''
      : ` No CA has the label "${label}". The labels are: ${labels.join(', ')}.`;
  } catch (error) {
    // Such as without the role.
    if (error instanceof CommandError) return '';
    throw error;
  }
}

interface Page {
  readonly items: readonly JsonRecord[];
  /** '' on the last page. */
  readonly next: string;
}

/** @param most items */
export async function* pagesOf(path: string, query: Query, most: number, { client }: Session): AsyncGenerator<Page> {
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

/** @returns how many there are */
async function printTable(kind: Kind, pages: AsyncIterable<Page>, session: Session, wide: boolean): Promise<number> {
  let [count, rest] = [0, ''];
  for await (const { items, next } of pages) {
    // Each page is aligned separately, so that the first prints before the last is read.
    if (items.length > 0) session.out(tableOf(kind, items, session, wide));
    count += items.length;
    rest = next;
    await session.drained?.();
  }
  if (rest !== '') session.err(`There may be more: pass --cursor ${rest} to continue, or --all.\n`);
  return count;
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

/** The records of all pages. */
export async function recordsOf(pages: AsyncIterable<Page>): Promise<readonly JsonRecord[]> {
  const records: JsonRecord[] = [];
  for await (const { items } of pages) records.push(...items);
  return records;
}

interface Watched extends Pick<ListSpec, 'path' | 'kind'> {
  readonly filters: Query;
  /** Number of latest records. */
  readonly limit: number;
  readonly seconds: number;
  /** One JSON record per line. */
  readonly json: boolean;
  readonly wide: boolean;
}

/** Maximum remembered records. */
const REMEMBERED = 20_000;

/** Polls a list until interrupted, also while the server is down; ends if it rejects the call. @throws CommandError */
async function watch(watched: Watched, session: Session): Promise<number> {
  const { path, filters, limit, seconds, json, kind } = watched;
  const columns = json ? undefined : session.terminal?.outColumns;
  const seen = new Map<string, string>();
  let away = false;
  for (;;) {
    try {
      const items = await recordsOf(pagesOf(path, { order: 'desc', ...filters }, limit, session));
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

function draw(items: readonly JsonRecord[], { kind, seconds, wide }: Watched, session: Session): void {
  const time = `${new Date(session.now()).toISOString().slice(0, 19)}Z`;
  const table = items.length === 0 ? 'Nothing found.\n' : tableOf(kind, items, session, wide);
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
