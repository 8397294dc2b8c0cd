/** `audit verify` and `audit export`. */
import { createPublicKey } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { cefLine } from '../../audit/cef.ts';
import type { AuditVerdict } from '../../audit/chain-check.ts';
import { CheckpointKey, exportedCheckpoints } from '../../audit/checkpoint.ts';
import type { AuditRecord } from '../../audit/event.ts';
import { isAuditRecord, type StoredLine } from '../../audit/record.ts';
import { loadConfigOnly } from '../../config/load.ts';
import { readStoreTls } from '../../config/material/load-material.ts';
import type { Config } from '../../config/schema.ts';
import { codeOf, describe } from '../../errors.ts';
import { auditColumns } from '../../http/admin/audit.ts';
import { reportCells } from '../../http/admin/bulk/columns.ts';
import { csvLine } from '../../http/admin/bulk/csv.ts';
import type { PostgresServer } from '../../store/postgres/connection.ts';
import { nodeLines, verifyNodes } from '../../store/postgres/read-audit.ts';
import { storedLines, verifyAudit } from '../../store/sqlite/read-audit.ts';
import { readTimestamp } from '../../timestamp.ts';
import { VERSION } from '../../version.ts';
import { nodeName, postgresServer } from '../open-store.ts';
import { type CommandContext, EXIT, UsageError, type Values, withOption } from './command.ts';
import type { AUDIT_EXPORT, AUDIT_VERIFY } from './options.ts';
import { progress } from './progress.ts';

/** The database and this node's name. @param file of the configuration @throws ConfigError */
export async function nodesOf(
  config: Config,
  file: string,
  context: CommandContext,
): Promise<{ readonly server: PostgresServer; readonly node: string }> {
  const storeTls = await readStoreTls(config, file, context.now());
  return { server: postgresServer(config, { storeTls }), node: nodeName(config) };
}

interface Format {
  readonly header: string;
  /** Formats a record. */
  readonly line: (line: string) => string;
}

const FORMATS: Readonly<Record<string, Format>> = {
  json: { header: '', line: (line) => `${line}\n` },
  csv: { header: csvLine(auditColumns), line: (line) => csvLine(reportCells(auditColumns, readRecord(line))) },
  cef: { header: '', line: (line) => `${cefLine(readRecord(line), VERSION)}\n` },
};

/** Characters per write. */
const CHUNK = 65_536;

/** `audit export`: streams the store's audit records, one per line. @throws ConfigError; UsageError */
export async function exportAudit(options: Values<typeof AUDIT_EXPORT>, context: CommandContext): Promise<number> {
  const { config: file, format = 'json' } = options;
  const chosen = Object.hasOwn(FORMATS, format) ? FORMATS[format] : undefined;
  if (chosen === undefined) throw new UsageError(`--format must be one of ${Object.keys(FORMATS).join(', ')}`);
  const range = { since: timeOf('--since', options.since), until: timeOf('--until', options.until) };
  const { config } = await loadConfigOnly(file, context.env);
  const shown = progress(context, { what: 'exporting', unit: 'records' });
  let [text, count] = [chosen.header, 0];
  const take = ({ line }: StoredLine): void => {
    text += chosen.line(line);
    count += 1;
    if (text.length < CHUNK) return;
    context.out(text);
    text = '';
    shown.update(count);
  };
  if (config.store.driver === 'sqlite') for (const line of storedLines(config.store.path, range)) take(line);
  else await nodeLines((await nodesOf(config, file, context)).server, range, take);
  shown.end();
  if (text !== '') context.out(text);
  return EXIT.ok;
}

function timeOf(option: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const time = readTimestamp(text);
  if (time === undefined)
    throw new UsageError(`${option} must be an ISO 8601 time with Z or an offset, like 2030-01-31T12:00:00Z`);
  return time;
}

function readRecord(line: string): AuditRecord {
  const record: unknown = JSON.parse(line);
  if (!isAuditRecord(record)) throw new Error(`no audit record: ${line}`);
  return record;
}

/** @throws ConfigError; UsageError for a file of an option */
export async function verifyAuditLog(options: Values<typeof AUDIT_VERIFY>, context: CommandContext): Promise<number> {
  // The audit log must be verifiable on a machine without the keys.
  const { config } = await loadConfigOnly(options.config, context.env);
  const { store, audit } = config;
  const { checkpoint: kept } = options;
  const shown = progress(context, { what: 'verifying', unit: 'records' });
  const wanted = {
    auditFile: audit.file,
    key: await readKey(options['checkpoint-key'], audit.checkpoint_key),
    kept:
      kept === undefined
        ? undefined
        : await withOption(`--checkpoint: ${kept}`, readFile(kept, 'utf8').then(exportedCheckpoints)),
    progress: shown.update,
  };
  const verify =
    store.driver === 'sqlite'
      ? verifyAudit({ ...wanted, storePath: store.path })
      : verifyNodes({ ...wanted, ...(await nodesOf(config, options.config, context)) });
  const verdict = await verify.finally(shown.end);
  if (verdict.ok) {
    const nodes = verdict.nodes === undefined ? '' : ` of ${verdict.nodes} nodes`;
    context.out(`the audit log is intact: ${verdict.records} records${nodes}${more(verdict)}\n`);
    return EXIT.ok;
  }
  const place = verdict.seq === null ? 'the audit log' : `audit record ${verdict.seq}`;
  context.err(`${place} is broken: ${verdict.problem}\n`);
  return EXIT.failed;
}

function more({ archived, checkpoints, kept }: Extract<AuditVerdict, { ok: true }>): string {
  return [
    ...(archived === undefined ? [] : [`, and ${archived} before them are archived`]),
    ...(checkpoints === undefined ? [] : [`; ${checkpoints} signed checkpoints`]),
    ...(kept === undefined ? [] : [`; it matches ${kept} kept checkpoints`]),
  ].join('');
}

/** A key file of an option must exist; the configured one may exist only on the server. */
async function readKey(wanted: string | undefined, configured: string | undefined): Promise<CheckpointKey | undefined> {
  const file = wanted ?? configured;
  if (file === undefined) return undefined;
  try {
    return new CheckpointKey(createPublicKey(await readFile(file)).export({ format: 'der', type: 'spki' }));
  } catch (error) {
    if (wanted === undefined && ['ENOENT', 'EACCES'].includes(codeOf(error))) return undefined;
    throw new UsageError(`--checkpoint-key: ${file}: ${describe(error)}`);
  }
}
