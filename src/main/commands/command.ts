/** What a command is to the table of all: its words, its options, and where it is found when somebody wants it. */
import type { Signals } from '../signals.ts';

/** What a command needs from the process that runs it. */
export interface CommandContext {
  readonly env: Readonly<Record<string, string | undefined>>;
  out(text: string): void;
  err(text: string): void;
  /** Milliseconds since the epoch. */
  now(): number;
  /** Held back until a command takes them; of all others, the process is ended by them. */
  readonly signals: Signals;
}

/** Contract §1: done, or a clean stop · failed, or could not start · the configuration is refused. */
export const EXIT = { ok: 0, failed: 1, refused: 2 } as const;

/** The command line is wrong; the message says what of it. */
export class UsageError extends Error {}

interface Flag {
  readonly kind: 'flag';
  readonly about: string;
}

interface Value<R extends boolean> {
  readonly kind: 'value';
  readonly placeholder: string;
  readonly about: string;
  readonly required: R;
}

/** A word after those of the command. */
interface Argument {
  readonly kind: 'argument';
  readonly about: string;
}

/** By name: `--NAME`, and for an argument what stands for it in the help. Arguments come in this order. */
export type Options = Readonly<Record<string, Flag | Value<boolean> | Argument>>;

/** What stands for the options of a command line. */
export type Values<O extends Options> = {
  readonly [K in keyof O]: O[K] extends Flag ? boolean : O[K] extends Value<false> ? string | undefined : string;
};

/** @param about for the help, as its beginning */
export const flag = (about: string): Flag => ({ kind: 'flag', about });
export const value = (placeholder: string, about: string): Value<false> => ({
  kind: 'value',
  placeholder,
  about,
  required: false,
});
export const required = (placeholder: string, about: string): Value<true> => ({
  kind: 'value',
  placeholder,
  about,
  required: true,
});
export const argument = (about: string): Argument => ({ kind: 'argument', about });

/** The file of a command. */
export interface CommandModule<O extends Options> {
  /**
   * @returns the exit code
   * @throws UsageError; ConfigError; any other error is a failure with its text
   */
  run(values: Values<O>, context: CommandContext): Promise<number>;
}

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
  readonly run: (values: Readonly<Record<string, unknown>>, context: CommandContext) => Promise<number>;
}

/** Commands in a table of their own, below one word. */
export interface Group {
  readonly kind: 'group';
  readonly name: string;
  readonly summary: string;
  readonly load: () => Promise<readonly Entry[]>;
}

export type Entry = Command | Group;

export interface CommandExtras {
  readonly about?: string;
  readonly misuse?: number;
  readonly takesSignals?: boolean;
}

/** @param load its file, which is not loaded before it is run */
export function command<const O extends Options>(
  name: string,
  summary: string,
  options: O,
  load: () => Promise<CommandModule<O>>,
  { about, misuse = EXIT.failed, takesSignals = false }: CommandExtras = {},
): Command {
  const run: Command['run'] = async (values, context) => {
    if (!areValues(options, values)) throw new TypeError(`not the options of ${name}`);
    return (await load()).run(values, context);
  };
  return { kind: 'command', name, summary, about, options, misuse, takesSignals, run };
}

/** @param load the table of its commands, whose names come without the group's */
export const group = (name: string, summary: string, load: Group['load']): Group => ({
  kind: 'group',
  name,
  summary,
  load,
});

function areValues<O extends Options>(options: O, values: Readonly<Record<string, unknown>>): values is Values<O> {
  return Object.entries(options).every(([name, option]) => {
    const given = values[name];
    if (option.kind === 'flag') return typeof given === 'boolean';
    return typeof given === 'string' || (given === undefined && option.kind === 'value' && !option.required);
  });
}
