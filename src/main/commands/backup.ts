/** `backup` copies the store of a running server; `restore` replaces the store with a backup. */
import { hostname } from 'node:os';
import { join, resolve } from 'node:path';
import { driverOf } from '../../ca/drivers.ts';
import { loadConfigOnly } from '../../config/load.ts';
import type { Config } from '../../config/schema.ts';
import { lockStore } from '../../store/sqlite/service-lock.ts';
import { backUp, bytesOf, DATABASE, type Manifest, openBackup, requireFile } from '../backup/backup.ts';
import type { CaughtUp } from '../backup/catch-up.ts';
import { becomeOwner } from '../backup/owner.ts';
import { restore, type Restored } from '../backup/restore.ts';
import { type CommandContext, EXIT } from './command.ts';
import { showGrowth } from './growth.ts';
import { progress } from './progress.ts';

/** @throws ConfigError; EstuaryError if there is no store, or the folder is not empty */
export async function runBackup(
  { config: file, to }: { readonly config: string; readonly to: string },
  context: CommandContext,
): Promise<number> {
  const { config } = await loadConfigOnly(file, context.env);
  requireFile(config.store.driver);
  const folder = resolve(to);
  const { audit, files } = await copy(config, folder, context);
  for (const [name, { bytes }] of Object.entries(files)) context.out(`${folder}/${name}: ${bytes} bytes\n`);
  context.out(`the backup is complete up to audit record ${audit.seq}\n`);
  context.out('not in the backup, keep these separately:\n');
  for (const what of notInIt(file, config)) context.out(`  ${what}\n`);
  return EXIT.ok;
}

async function copy(config: Config, folder: string, context: CommandContext): Promise<Manifest> {
  const { store, otp } = config;
  const total = bytesOf(store.path);
  const end = showGrowth({ file: join(folder, DATABASE), total, what: 'copying' }, context);
  try {
    return backUp({
      storePath: store.path,
      otp,
      to: folder,
      now: () => context.now(),
      progress: (text) => context.out(`${text}\n`),
    });
  } finally {
    await end();
  }
}

/** Files outside the store that another machine needs. */
function notInIt(file: string, { audit, otp, ca }: Config): string[] {
  return [
    `the audit file ${audit.file}, which records everything after the backup: copy it to another machine continuously`,
    `the configuration ${file}, and the certificates, keys and secrets that it names`,
    ...(otp.lookup_key === undefined ? [] : ['the lookup key of one-time passwords (otp.lookup_key_file)']),
    ...(otp.hmac_key === undefined ? [] : ['the HMAC key of one-time passwords (otp.hmac_key_file)']),
    ...ca.map((table) => driverOf(table).keyPlace?.(table) ?? `the remote CA ${table.label}`),
  ];
}

/** @throws ConfigError; EstuaryError such as `STORE_IN_USE`; nothing has changed then */
export async function runRestore(
  { config: file, from }: { readonly config: string; readonly from: string },
  context: CommandContext,
): Promise<number> {
  const { config } = await loadConfigOnly(file, context.env);
  requireFile(config.store.driver);
  const { store, audit, otp, ca } = config;
  const backup = openBackup(resolve(from));
  becomeOwner(store.path, audit.file);
  const lock = lockStore(store.path, 'as named');
  try {
    const restored = await restore({
      backup,
      storePath: store.path,
      auditFile: audit.file,
      archive: audit.archive,
      otp,
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
    backup.close();
  }
  context.out('the store is restored. Start the server.\n');
  return EXIT.ok;
}

export function* replayReport({ applied, lost, whole, upTo, revokedTokens, moved }: CaughtUp): Generator<string> {
  for (const [what, count] of applied) yield `applied: ${count} ${what}`;
  for (const [what, count] of lost) yield `lost: ${count} ${what}`;
  if (!whole) {
    yield `lost: later events that are not in the audit file (applied up to record ${upTo})`;
    yield `revoked: ${revokedTokens} unused tokens, because they may have been used`;
  }
  for (const path of moved) yield `kept: ${path}`;
}

/** Warns of certificates that the restored store lacks or knows only in part. */
function* warnings({ applied, whole, manifest }: Restored): Generator<string> {
  const issued = (applied.get('certificates issued') ?? 0) + (applied.get('certificates imported') ?? 0);
  const since = `after the backup of ${manifest.made_at}`;
  if (issued > 0)
    yield `of ${issued} certificates issued ${since}, the store knows only the serial number, the names, the owner and the expiry date. Run "estuary admin cert import" to add the rest.`;
  if (!whole)
    yield `certificates issued ${since} may be unknown to the store. They stay valid. Import them with "estuary admin cert import", and repeat the later revocations. Copies of the audit log list both.`;
}
