/** Command definitions: names, options, and the module to load on demand. */
import { describe } from '../../errors.ts';
import type { Signals } from '../signals.ts';

/** The process environment of a command. */
export interface CommandContext {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly out: (text: string | Uint8Array) => void;
  readonly err: (text: string) => void;
  now(): number;
  /** Held until a command takes them; otherwise they end the process. */
  readonly signals: Signals;
  /** Absent without a terminal. */
  readonly terminal?: Terminal;
  /** Resolves once the output is flushed, so that a slow reader does not fill memory. */
  readonly drained?: () => Promise<void>;
}

export interface Terminal {
  /** Columns of the terminal behind `out`; undefined for a file or a pipe. */
  readonly outColumns: number | undefined;
  /** The same for `err`. */
  readonly errColumns: number | undefined;
  /** Asks for a line; undefined without a keyboard. */
  readonly ask: ((question: string) => Promise<string>) | undefined;
}

/**
 * 0: success or a clean stop; 1: failure, rejection by a server, or failed start; 2: invalid configuration or command
 * line; 3: a server is unreachable or temporarily unavailable.
 */
export const EXIT = { ok: 0, failed: 1, refused: 2, unavailable: 3 } as const;

/** The command line is invalid; the message says why. */
export class UsageError extends Error {}

/** Waits for work on the value of an option. @throws UsageError, which names the option */
export const withOption = <T>(option: string, work: Promise<T>): Promise<T> =>
  work.catch((error: unknown) => {
    throw new UsageError(`${option}: ${describe(error)}`);
  });

/** An expected failure; the message is complete. */
export class CommandError extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode: number = EXIT.failed) {
    super(message);
    this.exitCode = exitCode;
  }
}

interface Flag {
  readonly kind: 'flag';
  readonly about: string;
}

interface Value<R extends boolean> {
  readonly kind: 'value';
  readonly placeholder: string;
  readonly about: string;
  readonly required: R;
  /** Allowed words, for help and completion; the command checks them. */
  readonly choices: readonly string[] | undefined;
  /** For a time: the direction of a period such as 7d, 1 from now, -1 ago. */
  readonly towards?: 1 | -1;
}

/** A repeatable option. */
interface ManyValues {
  readonly kind: 'values';
  readonly placeholder: string;
  readonly about: string;
}

/** A positional argument. */
interface Argument {
  readonly kind: 'argument';
  readonly about: string;
  readonly choices: readonly string[] | undefined;
}

/** Any number of positional arguments, after the others. */
interface Arguments {
  readonly kind: 'arguments';
  readonly about: string;
}

/** By name: `--NAME`, or the argument's placeholder in the help. Arguments are in this order. */
export type Options = Readonly<Record<string, Flag | Value<boolean> | ManyValues | Argument | Arguments>>;

export type Values<O extends Options> = {
  readonly [K in keyof O]: O[K] extends Flag
    ? boolean
    : O[K] extends ManyValues | Arguments
      ? readonly string[]
      : O[K] extends Value<false>
        ? string | undefined
        : string;
};

/** @param about first part of the help text */
export const flag = (about: string): Flag => ({ kind: 'flag', about });
export const value = (placeholder: string, about: string, choices?: readonly string[]): Value<false> => ({
  kind: 'value',
  placeholder,
  about,
  required: false,
  choices,
});
export const required = (placeholder: string, about: string, choices?: readonly string[]): Value<true> => ({
  kind: 'value',
  placeholder,
  about,
  required: true,
  choices,
});
export const time = (about: string, towards: 1 | -1): Value<false> => ({ ...value('TIME', about), towards });
export const values = (placeholder: string, about: string): ManyValues => ({ kind: 'values', placeholder, about });
export const argument = (about: string, choices?: readonly string[]): Argument => ({
  kind: 'argument',
  about,
  choices,
});
/** Whether its value is given by place, without `--NAME`. */
export const isPositional = (option: Options[string]): option is Argument | Arguments =>
  option.kind === 'argument' || option.kind === 'arguments';
export const someArguments = (about: string): Arguments => ({ kind: 'arguments', about });

/**
 * Resolves with the exit code.
 * @throws UsageError; CommandError; ConfigError; any other error is a failure with its text
 */
export type Run<V> = (values: V, context: CommandContext) => Promise<number>;

export interface Command {
  readonly kind: 'command';
  /** Such as `audit verify`. */
  readonly name: string;
  /** One line for the list of commands. */
  readonly summary: string;
  /** Further text for the command's help. */
  readonly about: string | undefined;
  readonly options: Options;
  /** Exit code for an invalid command line. */
  readonly misuse: number;
  /** Whether it handles the process's signals. */
  readonly takesSignals: boolean;
  /** Its admin API calls, as `GET /admin/otp/{id}`. */
  readonly calls: readonly string[];
  /** Roles for the first call, any of which suffices; empty: any authenticated caller. */
  readonly roles: readonly string[];
  readonly run: Run<Readonly<Record<string, unknown>>>;
}

/** A group of commands with a common prefix. */
interface Group {
  readonly kind: 'group';
  readonly name: string;
  readonly summary: string;
  /** Exit code for an unknown command or option. */
  readonly misuse: number;
  /** Text at the end of its help. */
  readonly notes: string | undefined;
  readonly load: () => Promise<readonly Entry[]>;
}

export type Entry = Command | Group;

interface Definition<O extends Options> extends Partial<Pick<Command, 'misuse' | 'takesSignals' | 'calls' | 'roles'>> {
  readonly about?: string;
  readonly options: O;
  /** Loads the module on first use. */
  readonly load: () => Promise<Run<Values<NoInfer<O>>>>;
}

export function command<const O extends Options>(
  name: string,
  summary: string,
  { options, load, about, misuse = EXIT.failed, takesSignals = false, calls = [], roles = [] }: Definition<O>,
): Command {
  const run: Command['run'] = async (values, context) => {
    if (!areValues(options, values)) throw new TypeError(`not the options of ${name}`);
    return (await load())(values, context);
  };
  return { kind: 'command', name, summary, about, options, misuse, takesSignals, calls, roles, run };
}

/** @param load its commands, with names relative to the group */
export const group = (
  name: string,
  summary: string,
  load: Group['load'],
  { misuse = EXIT.failed, notes }: Partial<Pick<Group, 'misuse' | 'notes'>> = {},
): Group => ({ kind: 'group', name, summary, misuse, notes, load });

function areValues<O extends Options>(options: O, values: Readonly<Record<string, unknown>>): values is Values<O> {
  return Object.entries(options).every(([name, option]) => {
    const given = values[name];
    if (option.kind === 'flag') return typeof given === 'boolean';
    if (option.kind === 'values' || option.kind === 'arguments')
      return Array.isArray(given) && given.every((value) => typeof value === 'string');
    return typeof given === 'string' || (given === undefined && option.kind === 'value' && !option.required);
  });
}
