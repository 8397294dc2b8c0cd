/** `audit export`: the audit records of the store for other programs, one a line, streamed. */
import { cefLine } from '../../audit/cef.ts';
import type { AuditRecord } from '../../audit/event.ts';
import { storedLines } from '../../store/sqlite/read-audit.ts';
import { isAuditRecord, type StoredLine } from '../../audit/record.ts';
import { loadConfigOnly } from '../../config/load.ts';
import { auditColumns } from '../../http/admin/audit.ts';
import { reportCells } from '../../http/admin/bulk/columns.ts';
import { csvLine } from '../../http/admin/bulk/csv.ts';
import { readTimestamp } from '../../timestamp.ts';
import { VERSION } from '../../version.ts';
import { EXIT, UsageError, type CommandContext } from './command.ts';
import { nodeLines } from '../../store/postgres/read-audit.ts';
import { nodesOf } from './nodes-of.ts';
import { progress } from './progress.ts';

interface Options {
  readonly config: string;
  readonly format: string | undefined;
  readonly since: string | undefined;
  readonly until: string | undefined;
}

interface Format {
  readonly header: string;
  /** @param line the record as the store has it */
  readonly line: (line: string) => string;
}

const FORMATS: Readonly<Record<string, Format>> = {
  json: { header: '', line: (line) => `${line}\n` },
  csv: { header: csvLine(auditColumns), line: (line) => csvLine(reportCells(auditColumns, readRecord(line))) },
  cef: { header: '', line: (line) => `${cefLine(readRecord(line), VERSION)}\n` },
};

/** Characters that are written at once. */
const CHUNK = 65_536;

/** @throws ConfigError; UsageError */
export async function run(options: Options, context: CommandContext): Promise<number> {
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
