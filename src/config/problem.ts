import { parse, TomlError } from 'smol-toml';
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
export interface Warning {
  readonly key: string;
  readonly message: string;
}

/** `CONFIG_INVALID`: the configuration is refused; `problems` are in the schema's order of sections. */
export class ConfigError extends EstuaryError {
  readonly file: string;
  readonly problems: readonly Problem[];

  constructor(file: string, problems: readonly Problem[]) {
    super(500, 'CONFIG_INVALID', problems.map((problem) => formatProblem(file, problem)).join('\n'));
    this.file = file;
    this.problems = problems;
  }
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

/** Parses a document; integers become bigint. Returns a problem for invalid TOML. */
export function parseToml(text: string): { readonly document: Table } | { readonly problem: Problem } {
  try {
    return { document: parse(text, { integersAsBigInt: true, unsafeKeyBehaviour: 'throw', maxDepth: 32 }) };
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    // Only the first line: the message continues with lines of the file, which may contain a secret.
    const [first = ''] = error.message.split('\n');
    const reason = first.replace('Invalid TOML document: ', '');
    return { problem: { line: error.line, key: '', message: `${reason} at column ${error.column} (a TOML document)` } };
  }
}

export function typeName(value: unknown): string {
  if (Array.isArray(value)) return 'a list';
  if (value instanceof Date) return 'a date';
  if (isTable(value)) return 'a table';
  if (typeof value === 'string') return 'a text';
  if (typeof value === 'bigint') return 'a whole number';
  return typeof value === 'number' ? 'a number with a fraction' : 'a boolean';
}
