import { parse, TomlError } from 'smol-toml';
import { EstuaryError } from '../errors.ts';

/** One thing that is wrong with the configuration. */
export interface Problem {
  /** The line, for what the TOML parser refuses. */
  readonly line?: number;
  /** The key's full name, e.g. `ca[devices].file.private_key`; empty for what the TOML parser refuses. */
  readonly key: string;
  /** What is wrong, with what is allowed in parentheses. Never holds a secret. */
  readonly message: string;
}

/** A setting that is allowed and unsafe, for the log. */
export interface Warning {
  readonly key: string;
  readonly message: string;
}

/** `CONFIG_INVALID`: the configuration is refused; `problems` has all there is to say, in the schema's order of sections. */
export class ConfigError extends EstuaryError {
  readonly file: string;
  readonly problems: readonly Problem[];

  constructor(file: string, problems: readonly Problem[]) {
    super(500, 'CONFIG_INVALID', problems.map((problem) => formatProblem(file, problem)).join('\n'));
    this.file = file;
    this.problems = problems;
  }
}

/** The line of stderr for a problem: `FILE: KEY: what is wrong (what is allowed)`. */
export function formatProblem(file: string, problem: Problem): string {
  const place = problem.line === undefined ? file : `${file}:${problem.line}`;
  return problem.key === '' ? `${place}: ${problem.message}` : `${place}: ${problem.key}: ${problem.message}`;
}

export type Table = Readonly<Record<string, unknown>>;

/** Whether a parsed value is a TOML table: not a date, not a list. */
export function isTable(value: unknown): value is Table {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype;
}

/** Parses a document; integers come as bigint. Returns the problem when it is no TOML. */
export function parseToml(text: string): { readonly document: Table } | { readonly problem: Problem } {
  try {
    return { document: parse(text, { integersAsBigInt: true, unsafeKeyBehaviour: 'throw', maxDepth: 32 }) };
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    // The message goes on with the lines of the file, which may hold a secret: only its first line is passed on.
    const [first = ''] = error.message.split('\n');
    const reason = first.replace('Invalid TOML document: ', '');
    return { problem: { line: error.line, key: '', message: `${reason} at column ${error.column} (a TOML document)` } };
  }
}

/** The type of a parsed value, as an operator would call it. */
export function typeName(value: unknown): string {
  if (Array.isArray(value)) return 'a list';
  if (value instanceof Date) return 'a date';
  if (isTable(value)) return 'a table';
  if (typeof value === 'string') return 'a text';
  if (typeof value === 'bigint') return 'a whole number';
  return typeof value === 'number' ? 'a number with a fraction' : 'a boolean';
}
