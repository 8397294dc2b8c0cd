import { failed } from '../../errors.ts';
import type { PostgresServer } from './connection.ts';
import { run } from '../port.ts';
import type { ReplaySession } from '../replay.ts';
import { AuditLog } from './audit-log.ts';
import { connectToMigrate, migrate } from './migrate.ts';
import { PostgresPort } from './port.ts';
import { Queries } from './queries.ts';

interface ReplayOptions {
  readonly server: PostgresServer;
  readonly node: string;
  readonly auditFile: string;
}

/** @throws EstuaryError 500 `STORE_IN_USE` if a node is running; 503 `STORE_UNAVAILABLE` */
export async function openReplay({ server, node, auditFile }: ReplayOptions): Promise<ReplaySession> {
  const connection = await connectToMigrate(server, `${node} replay`);
  const queries = new Queries(connection);
  const log = new AuditLog(queries, auditFile, node);
  const close = (): Promise<void> => {
    log.chain.close();
    connection.end();
    return Promise.resolve();
  };
  try {
    await migrate(connection);
    await log.make();
    // A node that starts now waits for its name until this transaction ends.
    await connection.script('SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0; BEGIN');
    await connection.script('LOCK TABLE node IN ACCESS EXCLUSIVE MODE');
    const live = await queries.get<{ name: string; host: string }>`SELECT name, host FROM node
      WHERE heartbeat > clock_timestamp() - interval '30 seconds'`;
    if (live !== undefined)
      throw failed('STORE_IN_USE', 'the store is in use', { detail: `the node "${live.name}" runs on ${live.host}` });
    const head = await log.lock();
    if (head === undefined) throw new Error('the store has lost the end of the audit chain');
    return {
      head,
      db: new PostgresPort(queries),
      async otherHeads() {
        const heads = await queries.all<{ node: string; seq: number }>`SELECT node, seq FROM audit_head`;
        return new Map(heads.map((other) => [other.node, other.seq]));
      },
      run,
      adopt: (records) => log.adopt(records),
      async commit(after, events, time) {
        await log.setHead(after);
        try {
          log.begin(await log.lock(), time);
          await log.add(events.map((event) => ({ event, time })));
          await log.chain.flush();
          await log.send();
        } catch (error) {
          log.chain.undo();
          throw error;
        }
        if ((await connection.commit()) !== 'committed') {
          log.chain.undo();
          throw failed('STORE_FAILED', 'the store failed', { detail: 'the transaction was rolled back' });
        }
        log.chain.settle();
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}
