/** What a command prints of the records that it was answered: for people, as JSON, or as CSV. */
import { reportCells } from '../../../http/admin/bulk/columns.ts';
import { csvLine } from '../../../http/admin/bulk/csv.ts';
import { UsageError, type CommandContext } from '../command.ts';
import { lookOf, painted, printable, textTable } from '../text-table.ts';
import { isRecord, type JsonRecord } from './json.ts';
import { cell, colourOf, INNER, kindOf, type Kind } from './kinds.ts';

export interface FormatValues {
  readonly json: boolean;
  readonly csv?: boolean;
}

export type Format = 'table' | 'json' | 'csv';

/** @throws UsageError: both */
export function formatOf({ json, csv = false }: FormatValues): Format {
  if (json && csv) throw new UsageError('--json and --csv do not go together');
  return json ? 'json' : csv ? 'csv' : 'table';
}

/** One record. For people it is a line for each field; what is PEM comes at the end, as it is. */
export function printRecord(record: JsonRecord, values: FormatValues, context: CommandContext): void {
  const format = formatOf(values);
  if (format === 'json') context.out(`${JSON.stringify(record, null, 2)}\n`);
  else if (format === 'csv') context.out(csvOf([record]));
  else printFields(record, context);
}

function printFields(record: JsonRecord, context: CommandContext): void {
  const look = lookOf(context);
  const entries = Object.entries(record);
  const lists = entries.flatMap(([name, value]) => (isRecordList(value) ? [[name, value] as const] : []));
  const pems = entries.flatMap(([, value]) => (isPem(value) ? [value].flat() : []));
  const groups = entries.flatMap(([name, value]) => (isGroup(value) ? [[name, value] as const] : []));
  const fields = entries.filter(([, value]) => !isRecordList(value) && !isPem(value) && !isGroup(value));
  const width = Math.max(0, ...fields.map(([name]) => name.length));
  for (const [name, value] of fields) {
    const text = cell(value);
    context.out(`${name.padEnd(width)}  ${painted(printable(text), colourOf(text), look)}\n`);
  }
  for (const [name, items] of lists) {
    const known = INNER[name];
    const kind = known !== undefined && items.every((item) => known.fits(item)) ? known : kindOf(items);
    context.out(`\n${name.toUpperCase().replaceAll('_', ' ')}\n${tableOf(kind, items, context)}`);
  }
  for (const [name, group] of groups) {
    context.out(`\n${name.toUpperCase().replaceAll('_', ' ')}\n`);
    printFields(group, context);
  }
  for (const pem of pems) context.out(`\n${pem.trimEnd()}\n`);
}

/** A record that has others inside. */
const isGroup = (value: unknown): value is JsonRecord =>
  isRecord(value) && Object.values(value).some((one) => isRecord(one) || isRecordList(one));

const isRecordList = (value: unknown): value is readonly JsonRecord[] =>
  Array.isArray(value) && value.length > 0 && value.every(isRecord);

const isPem = (value: unknown): value is string | readonly string[] =>
  Array.isArray(value)
    ? value.length > 0 && value.every((one) => isPem(one))
    : typeof value === 'string' &&
      /^(?:-----(?:BEGIN|END) [A-Z0-9 ]+-----\n|[A-Za-z0-9+/=]{1,76}\n)+$/.test(`${value.trimEnd()}\n`) &&
      value.includes('-----BEGIN ');

/** @returns lines, the header first */
export function tableOf({ fields }: Kind, records: readonly JsonRecord[], context: CommandContext): string {
  return textTable(
    fields,
    records.map((record) => fields.map(({ of }) => of(record))),
    lookOf(context),
  );
}

/** Made here, where the server has no table of it; without what is PEM. */
export function csvOf(records: readonly JsonRecord[]): string {
  const entries = records.flatMap((record) => Object.entries(record));
  const pems = new Set(entries.flatMap(([name, value]) => (isPem(value) ? [name] : [])));
  const header = [...new Set(entries.map(([name]) => name))].filter((name) => !pems.has(name));
  return [csvLine(header), ...records.map((record) => csvLine(reportCells(header, record)))].join('');
}
