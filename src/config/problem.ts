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
