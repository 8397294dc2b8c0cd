import type { AuditHead } from '../audit-chain.ts';
import { runAtOnce } from '../port.ts';
import type { ReplaySession } from '../replay.ts';
import { AuditLog } from './audit-log.ts';
import { type Db, openWritable } from './database.ts';
import { SqlitePort } from './port.ts';

interface ReplayOptions {
  readonly path: string;
  readonly auditFile: string;
  readonly node: string;
}

/** The caller has the store's lock. */
export function openReplay({ path, auditFile, node }: ReplayOptions): ReplaySession {
  const db = openWritable(path);
  const log = new AuditLog(db, auditFile, node);
  db.exec('BEGIN IMMEDIATE');
  return {
    head: headOf(db),
    db: new SqlitePort(db),
    otherHeads: () => Promise.resolve(new Map()),
    run: (operation) => Promise.resolve(runAtOnce(operation)),
    adopt(records) {
      log.adopt(records);
      return Promise.resolve();
    },
    async commit(after, events, time) {
      log.setHead(after);
      try {
        log.begin(time);
        for (const event of events) log.chain.add(event, time);
        await log.flush();
        db.exec('COMMIT');
        log.chain.settle();
      } catch (error) {
        if (db.inTransaction) log.chain.undo();
        throw error;
      }
      db.pragma('wal_checkpoint(TRUNCATE)');
    },
    close() {
      if (db.inTransaction) db.exec('ROLLBACK');
      log.chain.close();
      db.close();
      return Promise.resolve();
    },
  };
}

function headOf(db: Db): AuditHead {
  const head = db.prepare<[], AuditHead>('SELECT seq, hash, file_start, file_size FROM audit_head').get();
  if (head === undefined) throw new Error('the store has lost the end of the audit chain');
  return head;
}
