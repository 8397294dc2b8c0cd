/** A list looked at again and again, until somebody ends it. */
import { setTimeout as pause } from 'node:timers/promises';
import { CommandError, EXIT } from '../command.ts';
import type { Session } from './admin-command.ts';
import type { Query } from './client.ts';
import { type JsonRecord, recordsAt } from './json.ts';
import type { Kind } from './kinds.ts';
import { tableOf } from './output.ts';

interface Watched {
  readonly path: string;
  readonly kind: Kind;
  readonly filters: Query;
  /** Of the newest. */
  readonly limit: number;
  readonly seconds: number;
  /** A record on a line, whatever `out` writes to. */
  readonly json: boolean;
}

/** What was printed is forgotten beyond so many. */
const REMEMBERED = 20_000;
const MOST = 1000;

/** Goes on while the server is away; ends when it refuses. @throws CommandError */
export async function watch(watched: Watched, session: Session): Promise<number> {
  const { seconds, json, kind } = watched;
  const columns = json ? undefined : session.terminal?.outColumns;
  const seen = new Map<string, string>();
  let away = false;
  for (;;) {
    try {
      const items = await newest(watched, session);
      if (away) session.err('the server answers again\n');
      away = false;
      if (columns === undefined) printChanges(items, seen, { json, kind }, session);
      else draw(items, watched, session);
    } catch (error) {
      if (!(error instanceof CommandError) || error.exitCode !== EXIT.unavailable) throw error;
      if (!away) session.err(`${error.message}; looking on\n`);
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
  session.out(`\x1b[H\x1b[2J\x1b[3Jevery ${seconds} s, ${time}; Ctrl-C ends\n\n${table}`);
}

/** The oldest first, as they would have been seen. */
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
