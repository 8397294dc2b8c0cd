/** `store accept-older-database`: the operator accepts a database that is older than the audit file. */
import { statSync } from 'node:fs';
import { hostname, userInfo } from 'node:os';
import { missingRecords } from '../../audit/missing-records.ts';
import type { AuditEvent } from '../../audit/event.ts';
import { readMaterial } from '../../config/material/load-material.ts';
import { loadConfigOnly } from '../../config/load.ts';
import type { Config } from '../../config/schema.ts';
import { openReplay as openPostgres } from '../../store/postgres/replay-session.ts';
import type { ReplaySession } from '../../store/replay.ts';
import { refuseMissing } from '../../store/sqlite/database.ts';
import { lockStore, type ServiceLock } from '../../store/sqlite/service-lock.ts';
import { openReplay as openSqlite } from '../../store/sqlite/replay-session.ts';
import { becomeOwner } from '../backup/owner.ts';
import { catchUp, type CaughtUp } from '../backup/catch-up.ts';
import { unusedSuffix, moveAside } from '../backup/backup.ts';
import { nodeName, postgresServer } from '../open-store.ts';
import { replayReport } from './backup.ts';
import { EXIT, type CommandContext } from './command.ts';
import { progress } from './progress.ts';

/** Increment of the CRL numbers without the audit file. */
const CRL_NUMBERS_SKIPPED = 1000;

/** @throws ConfigError; EstuaryError such as `STORE_IN_USE`: nothing has changed then */
export async function run({ config: file }: { readonly config: string }, context: CommandContext): Promise<number> {
  const { config } = await loadConfigOnly(file, context.env);
  const { store, audit } = config;
  let lock: ServiceLock | undefined;
  if (store.driver === 'sqlite') {
    refuseMissing(store.path);
    becomeOwner(store.path, audit.file);
    lock = lockStore(store.path);
  }
  try {
    const session = await opened(config);
    return await accept(session, config, context).finally(() => session.close());
  } finally {
    lock?.release();
  }
}

async function opened(config: Config): Promise<ReplaySession> {
  const { store, audit } = config;
  const common = { auditFile: audit.file, node: nodeName(config) };
  if (store.driver === 'sqlite') return openSqlite({ path: store.path, ...common });
  return openPostgres({ server: postgresServer(config, await readMaterial(config)), ...common });
}

async function accept(session: ReplaySession, { audit, ca }: Config, context: CommandContext): Promise<number> {
  const { head } = session;
  const missing = missingRecords(audit.file, head);
  if (missing === undefined && hasRecords(audit.file)) {
    context.out(`The database has every record of ${audit.file}. There is nothing to accept.\n`);
    return EXIT.ok;
  }
  if (missing !== undefined)
    context.out(
      `missing: records ${missing.first} to ${missing.last} (${missing.from} to ${missing.to}) of ${missing.path}\n`,
    );
  const now = context.now();
  const done = await catchUp(session, {
    auditFile: audit.file,
    archive: audit.archive,
    cas: ca.map(({ label }) => label),
    crlNumbersSkipped: CRL_NUMBERS_SKIPPED,
    now,
    bar: (what) => progress(context, { what, unit: 'records' }),
    moveAside: (path) => moveAside(path, unusedSuffix(path, now)),
    event: (caughtUp) => decision(caughtUp, audit.file),
  });
  for (const line of replayReport(done)) context.out(`${line}\n`);
  for (const { node, seq } of done.otherNodes)
    context.err(
      `warning: the database also lacks records up to ${seq} of node "${node}": run this command there before you start a node\n`,
    );
  context.out('The database is accepted. Start the server.\n');
  return EXIT.ok;
}

const hasRecords = (path: string): boolean => (statSync(path, { throwIfNoEntry: false })?.size ?? 0) > 0;

function decision({ from, upTo, whole }: CaughtUp, auditFile: string): AuditEvent {
  const what = whole
    ? `records ${from + 1} to ${upTo} of ${auditFile} were applied`
    : `the audit file is incomplete, so unused tokens were revoked and CRL numbers were advanced by ${CRL_NUMBERS_SKIPPED}`;
  const detail = `accepted a database that ended with record ${from}: ${what}`;
  return { type: 'store.accepted', outcome: 'success', subject: `${userName()}@${hostname()}`, detail };
}

/** A container may run as a user ID without a name. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.() ?? ''}`;
  }
}
