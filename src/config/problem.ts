import { EstuaryError } from '../errors.ts';

/** A configuration error. */
export interface Problem {
  /** The line of a TOML syntax error. */
  readonly line?: number;
  /** The key's full name, such as `ca[devices].file.private_key`; empty for a TOML syntax error. */
  readonly key: string;
  /** The problem, with the allowed values in parentheses. Never contains a secret. */
  readonly message: string;
}

/** An allowed but unsafe setting, for the log. */
export type Warning = Pick<Problem, 'key' | 'message'>;

/** A file or certificate that cannot be used, although the configuration file itself is right. */
export interface Fault extends Problem {
  /** What a reload read before stays in force. */
  readonly isKept?: boolean;
  /** It ends or began with time: expired, or not yet valid. */
  readonly isTime?: boolean;
  /** What does not work meanwhile, if that is neither a label nor the server. */
  readonly effect?: string;
}

/** Whether only a label is affected, not the server. */
export const isOfLabel = ({ key }: Problem): boolean => /^(ca|label)\[/.test(key);

/** Whether a fault affects more than a label and something named: nothing that needs the file can work. */
export const isOfServer = (fault: Fault): boolean =>
  fault.isKept !== true && fault.isTime !== true && fault.effect === undefined && !isOfLabel(fault);

/** A fault with its effect, for people. */
export function reported(fault: Fault): Warning {
  const { key, message, isKept, isTime } = fault;
  const kept = isKept === true ? 'what was read before stays in force' : undefined;
  const effect = kept ?? fault.effect ?? (isOfLabel(fault) ? OUT_OF_SERVICE : undefined);
  const end = isTime === true ? '' : '. Correct the file, then reload';
  return { key, message: effect === undefined ? message : `${message}: ${effect}${end}` };
}

const OUT_OF_SERVICE = 'this label answers 503';

/** `CONFIG_INVALID`: the configuration is refused; `problems` are in the schema's order of sections. */
export class ConfigError extends EstuaryError {
  readonly file: string;
  readonly problems: readonly Problem[];
  /** Only files are at fault, so that another start may succeed. */
  readonly isOfFiles: boolean = false;

  constructor(file: string, problems: readonly Problem[]) {
    super(500, 'CONFIG_INVALID', problems.map((problem) => formatProblem(file, problem)).join('\n'));
    this.file = file;
    this.problems = problems;
  }
}

/** {@link ConfigError} for files without which the server cannot start. */
export class FilesError extends ConfigError {
  override readonly isOfFiles = true;
}

/** A problem's line on stderr: `FILE: KEY: problem (what is allowed)`. */
export function formatProblem(file: string, problem: Problem): string {
  const place = problem.line === undefined ? file : `${file}:${problem.line}`;
  return problem.key === '' ? `${place}: ${problem.message}` : `${place}: ${problem.key}: ${problem.message}`;
}

export type Table = Readonly<Record<string, unknown>>;

/** Whether a parsed value is a TOML table. */
export function isTable(value: unknown): value is Table {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype;
}

export function typeName(value: unknown): string {
  if (Array.isArray(value)) return 'a list';
  if (value instanceof Date) return 'a date';
  if (isTable(value)) return 'a table';
  if (typeof value === 'string') return 'a text';
  if (typeof value === 'bigint') return 'a whole number';
  return typeof value === 'number' ? 'a number with a fraction' : 'a boolean';
}

/** Lists of tables with labels, and their label keys. */
const LABELED = [
  ['ca', 'label'],
  ['label', 'name'],
] as const;

/**
 * Replaces table indexes in keys by labels: `ca[0].chain` becomes `ca[devices].chain`. A table keeps its index, counted
 * from 0, if its label is missing, malformed or not unique.
 * @param tables a configuration, or a possibly invalid document
 */
export function keysWithLabels(tables: { readonly ca?: unknown; readonly label?: unknown }): (text: string) => string {
  const names = new Map(LABELED.map(([list, name]) => [list as string, labelsIn(tables[list], name)]));
  return (text) =>
    text.replace(/\b(ca|label)\[(\d+)\]/g, (key, list: string, index: string) => {
      const labels = names.get(list) ?? [];
      const label = labels[Number(index)];
      return label === undefined || labels.indexOf(label) !== labels.lastIndexOf(label) ? key : `${list}[${label}]`;
    });
}

function labelsIn(list: unknown, name: string): readonly (string | undefined)[] {
  if (!Array.isArray(list)) return [];
  return list.map((table: unknown) => {
    const label = isTable(table) ? table[name] : undefined;
    return typeof label === 'string' && /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(label) ? label : undefined;
  });
}

/**
 * Deduplicates findings, which several readers of a file may report, and replaces `[[ca]]` indexes by labels.
 * @param tables the configuration, or a possibly invalid document
 */
export function findings<Found extends Problem | Warning>(
  found: readonly Found[],
  tables: Parameters<typeof keysWithLabels>[0],
): Found[] {
  const withLabels = keysWithLabels(tables);
  const named = found.map((problem) => ({
    ...problem,
    key: withLabels(problem.key),
    message: withLabels(problem.message),
  }));
  return [...new Map(named.map((problem) => [`${problem.key}: ${problem.message}`, problem])).values()];
}

/** A problem of several keys together; dropped if one of them is invalid on its own. */
export interface Finding extends Problem {
  /** The other keys involved. */
  readonly about?: readonly string[];
}

/** @param about the other keys involved */
export function finding(key: string, message: string, ...about: readonly string[]): Finding {
  return about.length === 0 ? { key, message } : { key, message, about };
}

/** @param pair two keys of a table that need each other */
export function* bothOrNeither(key: string, pair: Readonly<Record<string, unknown>>): Generator<Finding> {
  const missing = Object.keys(pair).filter((name) => pair[name] === undefined);
  const given = Object.keys(pair).find((name) => pair[name] !== undefined);
  if (missing.length === 1 && given !== undefined)
    yield finding(`${key}.${given}`, `is given without ${missing[0]} (both, or neither)`, `${key}.${missing[0]}`);
}

export interface CrossChecks {
  readonly problems: readonly Finding[];
  readonly warnings: readonly Warning[];
}

/**
 * What `--check` says of faults: time is a warning, everything else is refused.
 * @throws FilesError with every fault that time does not end
 */
export function checkFaults(file: string, faults: readonly Fault[]): Warning[] {
  const lasting = faults.filter(({ isTime }) => isTime !== true);
  if (lasting.length > 0) throw new FilesError(file, faults);
  return faults.map(reported);
}
