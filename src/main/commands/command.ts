/** What a command is to the table of all: its words, its options, and where it is found when somebody wants it. */
import type { Signals } from '../signals.ts';

/** What a command needs from the process that runs it. */
export interface CommandContext {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly out: (text: string | Uint8Array) => void;
  readonly err: (text: string) => void;
  now(): number;
  /** Held back until a command takes them; of all others, the process is ended by them. */
  readonly signals: Signals;
  /** Absent: nobody sits before it. */
  readonly terminal?: Terminal;
  /** Resolves once all that `out` was given is on its way, so that nothing piles up before a slow reader. */
  readonly drained?: () => Promise<void>;
}

/** What the process's streams are connected with. */
export interface Terminal {
  /** Columns of the terminal that `out` writes to; undefined: it writes to a file or a pipe. */
  readonly outColumns: number | undefined;
  /** Likewise of `err`. */
  readonly errColumns: number | undefined;
  /** Asks the person at the keyboard for a line; undefined: there is none. */
  readonly ask: ((question: string) => Promise<string>) | undefined;
}

/**
 * Done, or a clean stop · failed, refused by a server, or could not start · the configuration or the command line is refused ·
 * a server cannot be reached, or cannot answer for now.
 */
export const EXIT = { ok: 0, failed: 1, refused: 2, unavailable: 3 } as const;

/** The command line is wrong; the message says what of it. */
export class UsageError extends Error {}

/** It failed for a reason that a sentence says in full. */
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
  /** The words that it may be, where there are few; for the help and completion, the command checks. */
  readonly choices: readonly string[] | undefined;
}

/** A value that may be given more than once. */
interface ManyValues {
  readonly kind: 'values';
  readonly placeholder: string;
  readonly about: string;
}

/** A word after those of the command. */
interface Argument {
  readonly kind: 'argument';
  readonly about: string;
  readonly choices: readonly string[] | undefined;
}

/** By name: `--NAME`, and for an argument what stands for it in the help. Arguments come in this order. */
export type Options = Readonly<Record<string, Flag | Value<boolean> | ManyValues | Argument>>;

/** What stands for the options of a command line. */
export type Values<O extends Options> = {
  readonly [K in keyof O]: O[K] extends Flag
    ? boolean
    : O[K] extends ManyValues
      ? readonly string[]
      : O[K] extends Value<false>
        ? string | undefined
        : string;
};

/** @param about for the help, as its beginning */
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
export const values = (placeholder: string, about: string): ManyValues => ({ kind: 'values', placeholder, about });
export const argument = (about: string, choices?: readonly string[]): Argument => ({
  kind: 'argument',
  about,
  choices,
});

/**
 * Resolves with the exit code.
 *
 * @throws UsageError; CommandError; ConfigError; any other error is a failure with its text
 */
export type Run<V> = (values: V, context: CommandContext) => Promise<number>;

export interface Command {
  readonly kind: 'command';
  /** E.g. `audit verify`. */
  readonly name: string;
  /** One line for the list of all. */
  readonly summary: string;
  /** More, for its own help. */
  readonly about: string | undefined;
  readonly options: Options;
  /** The exit code of a wrong command line. */
  readonly misuse: number;
  /** Whether it takes the signals of the process. */
  readonly takesSignals: boolean;
  /** The calls of the admin API that it makes, as `GET /admin/otp/{id}`. */
  readonly calls: readonly string[];
  /** One of which the first of them needs; none: whoever is known may make it. */
  readonly roles: readonly string[];
  readonly run: Run<Readonly<Record<string, unknown>>>;
}

/** Commands in a table of their own, below one word. */
interface Group {
  readonly kind: 'group';
  readonly name: string;
  readonly summary: string;
  /** The exit code where none of its commands, or no option of any, is meant. */
  readonly misuse: number;
  /** What its help ends with. */
  readonly notes: string | undefined;
  readonly load: () => Promise<readonly Entry[]>;
}

export type Entry = Command | Group;

interface CommandExtras {
  readonly about?: string;
  readonly misuse?: number;
  readonly takesSignals?: boolean;
  readonly calls?: readonly string[];
  readonly roles?: readonly string[];
  readonly notes?: string;
}

/** @param load its file, which is not loaded before it is run */
export function command<const O extends Options>(
  name: string,
  summary: string,
  options: O,
  load: () => Promise<Run<Values<O>>>,
  { about, misuse = EXIT.failed, takesSignals = false, calls = [], roles = [] }: CommandExtras = {},
): Command {
  const run: Command['run'] = async (values, context) => {
    if (!areValues(options, values)) throw new TypeError(`not the options of ${name}`);
    return (await load())(values, context);
  };
  return { kind: 'command', name, summary, about, options, misuse, takesSignals, calls, roles, run };
}

/** @param load the table of its commands, whose names come without the group's */
export const group = (
  name: string,
  summary: string,
  load: Group['load'],
  { misuse = EXIT.failed, notes }: Pick<CommandExtras, 'misuse' | 'notes'> = {},
): Group => ({ kind: 'group', name, summary, misuse, notes, load });

function areValues<O extends Options>(options: O, values: Readonly<Record<string, unknown>>): values is Values<O> {
  return Object.entries(options).every(([name, option]) => {
    const given = values[name];
    if (option.kind === 'flag') return typeof given === 'boolean';
    if (option.kind === 'values') return Array.isArray(given) && given.every((one) => typeof one === 'string');
    return typeof given === 'string' || (given === undefined && option.kind === 'value' && !option.required);
  });
}
