/** Reads or verifies the audit records of all nodes, chain by chain, for a command. */
import { FileCursor } from '../../audit/file-cursor.ts';
import {
  attempts,
  unsignedCheckpoint,
  ChainCheck,
  type AuditVerdict,
  type ChainOptions,
  type Whole,
} from '../../audit/chain-check.ts';
import type { Anchor } from '../../audit/event.ts';
import { Broken, BrokenFile, changedSearch, parseLine } from '../../audit/record.ts';
import type { StoredHead, StoredLine, StoredRecord, TimeRange } from '../../audit/record.ts';
import type { PostgresServer } from './connection.ts';
import { changedColumn, type SearchColumns } from '../audit-store.ts';
import { NEWEST } from '../page.ts';
import { connect, type Connection } from './connection.ts';
import { Queries } from './queries.ts';

export interface VerifyNodesOptions extends ChainOptions {
  readonly server: PostgresServer;
  /** The node with the audit file and exported checkpoints. */
  readonly node: string;
  readonly auditFile: string;
}

/** Records per read. */
const ROWS = 2000;

/**
 * Verifies each node's chain, with this node's audit file, and what each chain records about the ends of the others.
 * Reads only, and works while servers run.
 * @throws EstuaryError if the database is unavailable
 */
export async function verifyNodes(options: VerifyNodesOptions): Promise<AuditVerdict> {
  return inSnapshot(
    options.server,
    async (again) =>
      (await unsignedCheckpoint(options)) ?? (await attempts(() => again((db) => verifyOnce(db, options)))),
  );
}

/** The records of all nodes, chain by chain. */
export async function nodeLines(
  server: PostgresServer,
  { since = 0, until = Number.MAX_SAFE_INTEGER }: TimeRange,
  take: (line: StoredLine) => void,
): Promise<void> {
  await inSnapshot(server, (snapshot) =>
    snapshot(async (db) => {
      for (const { node } of await heads(db))
        for await (const page of pages(db, node))
          for (const row of page) if (row.time >= since && row.time <= until) take(row);
    }),
  );
}

/** A consistent snapshot of the database. */
type Snapshot = <Result>(read: (db: Queries) => Promise<Result>) => Promise<Result>;

async function inSnapshot<Result>(server: PostgresServer, work: (snapshot: Snapshot) => Promise<Result>) {
  const connection: Connection = await connect(server, 'audit');
  try {
    return await work(async (read) => {
      await connection.script('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
      try {
        return await read(new Queries(connection));
      } finally {
        if (!connection.isBroken) await connection.script('ROLLBACK');
      }
    });
  } finally {
    connection.end();
  }
}

type NodeHead = StoredHead & { readonly node: string };

const heads = (db: Queries): Promise<readonly NodeHead[]> =>
  db.all`SELECT node, seq, hash, file_start, file_size FROM audit_head ORDER BY node`;

interface SearchedRecord extends StoredRecord, SearchColumns {
  readonly position: number;
}

const COLUMNS =
  'SELECT position, seq, time, type, line, subject, ca, label, serial, request_id, device_key FROM audit WHERE node = ?';

async function* pages(db: Queries, node: string): AsyncGenerator<readonly SearchedRecord[]> {
  const next = `${COLUMNS} AND seq > ? ORDER BY seq LIMIT ${ROWS}`;
  for (let after = 0; ;) {
    const rows = await db.all<SearchedRecord>(next, node, after);
    const last = rows.at(-1);
    if (last === undefined) return;
    yield rows;
    after = last.seq;
  }
}

async function verifyOnce(db: Queries, options: VerifyNodesOptions): Promise<Whole> {
  const all = await heads(db);
  if (!all.some(({ node }) => node === options.node))
    throw new Broken(null, `the store has lost the end of the audit chain of node "${options.node}"`);
  const verdicts: Whole[] = [];
  const total = all.reduce((sum, { seq }) => sum + seq, 0);
  let before = 0;
  for (const head of all) {
    const progress = (done: number): void => options.progress?.(before + done, total);
    verdicts.push(await ofNode(head, all.length, () => verifyChain(db, head, { ...options, progress })));
    before += head.seq;
  }
  return joined(verdicts);
}

/** Adds the node to an error. */
async function ofNode<Result>({ node }: NodeHead, nodes: number, verify: () => Promise<Result>): Promise<Result> {
  try {
    return await verify();
  } catch (error) {
    if (!(error instanceof Broken) || nodes === 1) throw error;
    const problem = `node "${node}": ${error.message}`;
    throw error instanceof BrokenFile ? new BrokenFile(error.seq, problem) : new Broken(error.seq, problem);
  }
}

async function verifyChain(db: Queries, stored: NodeHead, options: VerifyNodesOptions): Promise<Whole> {
  const { node } = stored;
  const isOwn = node === options.node;
  const file = isOwn ? new FileCursor(options.auditFile, stored) : undefined;
  try {
    const first = await db.get<StoredRecord>(`${COLUMNS} ORDER BY seq LIMIT 1`, node);
    const newest = `${COLUMNS} AND type = 'audit.archived' ORDER BY seq DESC LIMIT 1`;
    const archived = await db.get<StoredRecord>(newest, node);
    const check = new ChainCheck(stored, { first, archived }, file, {
      ...options,
      kept: isOwn ? options.kept : undefined,
    });
    let before = 0;
    for await (const page of pages(db, node)) {
      const anchors = page.flatMap((row) => {
        const { seq: record, anchors: told } = check.pass(row);
        // A chain's records are inserted in order, and lists start at position 1.
        const isMoved = row.position <= before || row.position > NEWEST;
        const changed = isMoved ? 'position' : changedColumn(row);
        if (changed !== undefined) throw changedSearch(record, changed);
        before = row.position;
        return told.map((anchor) => ({ ...anchor, record, by: node }));
      });
      await checkAnchors(db, anchors);
    }
    return await check.sealed(check.end());
  } finally {
    file?.close();
  }
}

interface Told extends Anchor {
  /** The node and record that recorded it. */
  readonly by: string;
  readonly record: number;
}

/** The ends that a chain recorded must exist in the other chains, unless archived. @throws Broken */
async function checkAnchors(db: Queries, anchors: readonly Told[]): Promise<void> {
  for (const [node, told] of Map.groupBy(anchors, (anchor) => anchor.node)) {
    const end = await db.get<{ begin: number | null; seq: number | null }>`SELECT seq,
        (SELECT min(seq) FROM audit WHERE audit.node = wanted.node) AS begin
      FROM (SELECT ${node}::text AS node) AS wanted LEFT JOIN audit_head USING (node)`;
    const rows = await db.all<StoredLine>`SELECT seq, line FROM audit
      WHERE node = ${node} AND seq = ANY(${told.map(({ seq }) => seq)}::bigint[])`;
    const hashes = new Map(rows.map(({ seq, line }) => [seq, parseLine(line)?.hash]));
    for (const { seq, hash, by, record } of told) {
      const isArchived = end !== undefined && seq <= (end.seq ?? 0) && seq < (end.begin ?? Infinity);
      if (isArchived || hashes.get(seq) === hash) continue;
      const what = hashes.has(seq)
        ? `differs from the one that node "${by}" noted`
        : `is missing, although node "${by}" noted it`;
      throw new Broken(seq, `record ${seq} of node "${node}" ${what} in its record ${record}`);
    }
  }
}

function joined(verdicts: readonly Whole[]): Whole {
  const sum = (of: (verdict: Whole) => number | undefined): number | undefined =>
    verdicts.some((verdict) => of(verdict) !== undefined)
      ? verdicts.reduce((total, verdict) => total + (of(verdict) ?? 0), 0)
      : undefined;
  const sums = (['archived', 'checkpoints', 'kept'] as const).map(
    (name) => [name, sum((verdict) => verdict[name])] as const,
  );
  return {
    ok: true,
    nodes: verdicts.length,
    records: sum(({ records }) => records) ?? 0,
    ahead: sum(({ ahead }) => ahead) ?? 0,
    ...Object.fromEntries(sums.filter(([, count]) => count !== undefined)),
  };
}
