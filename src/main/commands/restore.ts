/** `restore`: a backup in the place of the store, brought up to what the audit file tells of since. */
import { hostname } from 'node:os';
import { resolve } from 'node:path';
import { loadConfigOnly } from '../../config/load.ts';
import { lockStore } from '../../store/sqlite/service-lock.ts';
import { restore, type Restored } from '../backup/restore.ts';
import { requireFile } from '../backup/backup.ts';
import type { CaughtUp } from '../backup/catch-up.ts';
import { EXIT, type CommandContext } from './command.ts';
import { showGrowth } from './growth.ts';
import { progress } from './progress.ts';

interface RestoreValues {
  readonly config: string;
  readonly from: string;
}

/** @throws ConfigError; EstuaryError, e.g. `STORE_IN_USE`; nothing has changed then */
export async function run({ config: file, from }: RestoreValues, context: CommandContext): Promise<number> {
  const { config } = await loadConfigOnly(file, context.env);
  requireFile(config.store.driver);
  const { store, audit, otp, ca } = config;
  const lock = lockStore(store.path);
  try {
    const restored = await restore({
      from: resolve(from),
      storePath: store.path,
      auditFile: audit.file,
      archive: audit.archive,
      ownLookupKey: otp.lookup_key === undefined,
      node: store.node_name ?? hostname(),
      cas: ca.map(({ label }) => label),
      now: context.now(),
      progress: (text) => context.out(`${text}\n`),
      watch: (file, total) => {
        const end = showGrowth({ file, total, what: 'copying' }, context);
        return () => void end();
      },
      bar: (what) => progress(context, { what, unit: 'records' }),
    });
    for (const line of replayReport(restored)) context.out(`${line}\n`);
    for (const line of warnings(restored)) context.err(`warning: ${line}\n`);
  } finally {
    lock.release();
  }
  context.out('the store is restored; start the server\n');
  return EXIT.ok;
}

/** What a replay of the audit log has changed. */
export function* replayReport({ applied, lost, whole, upTo, revokedTokens, moved }: CaughtUp): Generator<string> {
  for (const [what, count] of applied) yield `applied: ${count} ${what}`;
  for (const [what, count] of lost) yield `lost: ${count} ${what}`;
  if (!whole) {
    yield `lost: everything later that the audit file does not have (it was applied up to record ${upTo})`;
    yield `revoked: ${revokedTokens} unused tokens, because they may have been used`;
  }
  for (const path of moved) yield `kept: ${path}`;
}

/** Certificates that the restored store may not know, or knows in part. */
function* warnings({ applied, whole, manifest }: Restored): Generator<string> {
  const issued = (applied.get('certificates issued') ?? 0) + (applied.get('certificates imported') ?? 0);
  const since = `after the backup of ${manifest.made_at}`;
  if (issued > 0)
    yield `of ${issued} certificates issued ${since}, the store knows the serial number, the names, the owner and the expiry date only; "estuary admin cert import" adds the rest`;
  if (!whole)
    yield `certificates issued ${since} may be unknown to the store; they stay valid and keep their names; import them with "estuary admin cert import", and repeat the revocations of that time: copies of the audit log name them`;
}
