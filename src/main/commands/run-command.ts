/** Finds and runs the command of a command line. */
import { parseArgs, type ParseArgsConfig } from 'node:util';
import { editDistance, nearest } from '../../config/nearest.ts';
import { describe } from '../../errors.ts';
import {
  CommandError,
  EXIT,
  isPositional,
  UsageError,
  type Command,
  type CommandContext,
  type Entry,
} from './command.ts';
import { helpOfAll, helpOfCommand } from './help.ts';

interface Program {
  /** The words before the command's name. */
  readonly name: string;
  readonly commands: readonly Entry[];
  /** The command without a word; undefined: print the help. */
  readonly unnamed?: string;
  /** Output of `--version`. */
  readonly version?: () => Promise<string>;
  /** Text at the end of the help. */
  readonly notes?: string | undefined;
  /** Exit code for an unknown command; default 1. */
  readonly misuse?: number;
}

/** Runs the command that the arguments name. Resolves with the exit code. */
export async function runCommand(program: Program, args: readonly string[], context: CommandContext): Promise<number> {
  const { name, commands, version } = program;
  // `estuary help COMMAND` is `estuary COMMAND --help`.
  if (args[0] === 'help') return runCommand(program, [...args.slice(1), '--help'], context);
  const line = readLine(commands, args);
  const [first] = line.words;
  const group = commands.find((entry) => entry.kind === 'group' && entry.name === first?.value);
  if (group?.kind === 'group' && first !== undefined)
    return runCommand(
      { name: `${name} ${group.name}`, commands: await group.load(), misuse: group.misuse, notes: group.notes },
      args.filter((_, index) => index !== first.index),
      context,
    );
  const words = line.words.map((word) => word.value);
  const command = findCommand(program, words);
  const onlyTells = line.has('version') || line.has('help');
  if (onlyTells || command?.takesSignals !== true) context.signals.release();
  if (line.has('version') && version !== undefined) {
    context.out(`${await version()}\n`);
    return EXIT.ok;
  }
  if (line.has('help') || (args.length === 0 && program.unnamed === undefined)) {
    const below = commands.filter((command) => command.name.startsWith(`${words.join(' ')} `));
    const all = below.length > 0 ? { ...program, commands: below } : program;
    context.out(command === undefined || words.length === 0 ? helpOfAll(all) : helpOfCommand(name, command));
    return EXIT.ok;
  }
  if (command === undefined) {
    const [option] = line.unknown;
    const reason = option === undefined ? await unknownCommand(program, words) : noOption(option, line.known);
    return refuse(name, reason, context, program.misuse);
  }
  const taken = words.length === 0 ? 0 : command.name.split(' ').length;
  const own = new Set(line.words.slice(0, taken).map(({ index }) => index));
  try {
    const rest = args.filter((_, index) => !own.has(index));
    return await command.run(readValues(program, command, rest), context);
  } catch (error) {
    return failure(program, command, error, context);
  }
}

interface Line {
  /** Words that are not options or their values. */
  readonly words: readonly { readonly value: string; readonly index: number }[];
  readonly has: (option: string) => boolean;
  /** Known options, and unknown ones as given, whose values count as words. */
  readonly known: readonly string[];
  readonly unknown: readonly string[];
}

/** Parses with the options of all commands, so that an option's value is not taken for a word. */
export function readLine(commands: readonly Entry[], args: readonly string[]): Line {
  const options = Object.fromEntries(
    commands.flatMap((entry) => (entry.kind === 'command' ? Object.entries(flagsOf(entry)) : [])),
  );
  const { tokens } = parseArgs({
    args: [...args],
    options: { ...options, ...COMMON },
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const names = new Set(tokens.flatMap((token) => (token.kind === 'option' ? [token.name] : [])));
  const words = tokens.filter((token) => token.kind === 'positional');
  const known = [...Object.keys(options), ...Object.keys(COMMON)];
  const unknown = tokens.flatMap((token) =>
    token.kind === 'option' && !known.includes(token.name) ? [token.rawName] : [],
  );
  return { words, has: (name) => names.has(name), known, unknown };
}

const COMMON = { help: { type: 'boolean', short: 'h' }, version: { type: 'boolean' } } as const;

function flagsOf({ options }: Command): NonNullable<ParseArgsConfig['options']> {
  const named = Object.entries(options).filter(([, option]) => !isPositional(option));
  return Object.fromEntries(
    named.map(([name, { kind }]) => [
      name,
      { type: kind === 'flag' ? 'boolean' : 'string', multiple: kind === 'values' },
    ]),
  );
}

/** The command with the longest matching name. */
export function findCommand(
  { commands, unnamed }: Pick<Program, 'commands' | 'unnamed'>,
  words: readonly string[],
): Command | undefined {
  const fitting = commands
    .filter((entry) => entry.kind === 'command')
    .filter(({ name }) =>
      words.length === 0 ? name === unnamed : name.split(' ').every((word, index) => word === words[index]),
    );
  return fitting.toSorted((a, b) => b.name.length - a.name.length)[0];
}

/** Maximum edit distance of a typing error. */
const MISTYPED = 2;

async function unknownCommand({ name, commands }: Program, words: readonly string[]): Promise<string> {
  const asked = words.join(' ');
  for (const entry of commands)
    if (entry.kind === 'group' && findCommand({ commands: await entry.load() }, words) !== undefined)
      return `there is no command "${asked}" (did you mean "${name} ${entry.name} ${asked}"?)`;
  const names = commands.map((entry) => entry.name);
  const two = words.slice(0, 2).join(' ');
  const likely = nearest(two, [...names, '--version', '--help']) ?? '';
  const family = names.filter((name) => name.startsWith(`${words[0] ?? ''} `));
  const isTypingError = words.length > 1 && editDistance(two, likely) <= MISTYPED;
  const near = family.length > 0 && !isTypingError ? family.join(', ') : `the nearest known one is "${likely}"`;
  return `there is no command "${asked}" (${near})`;
}

function readValues({ commands }: Program, command: Command, args: readonly string[]) {
  const options: ReturnType<typeof flagsOf> = { ...flagsOf(command), ...COMMON };
  // Node.js replaces invalid UTF-8 with U+FFFD, which would change a name.
  if (args.some((arg) => arg.includes('\ufffd'))) throw new UsageError('an argument is not UTF-8 text');
  const { tokens } = parseArgs({ args: [...args], options, strict: false, allowPositionals: true, tokens: true });
  for (const token of tokens)
    if (token.kind === 'option' && !Object.hasOwn(options, token.name))
      throw new UsageError(unknownOption(commands, command, token.rawName));
  let parsed;
  try {
    parsed = parseArgs({ args: [...args], options, strict: true, allowPositionals: true });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new UsageError(
      reason
        .replace(/^Option '(?:-\w, )?(--[\w-]+) <value>' argument missing.*/s, '$1 needs a value')
        .replace(
          /^Option '(--[\w-]+)' argument is ambiguous.*/s,
          '$1 needs a value (if the value begins with a dash: $1=VALUE)',
        ),
    );
  }
  const words = [...parsed.positionals];
  const values: Record<string, unknown> = {};
  for (const [name, option] of Object.entries(command.options)) {
    if (option.kind === 'arguments') {
      values[name] = words.splice(0);
      continue;
    }
    const given = option.kind === 'argument' ? words.shift() : parsed.values[name];
    values[name] = option.kind === 'flag' ? given === true : option.kind === 'values' ? (given ?? []) : given;
    const needed = option.kind === 'argument' || (option.kind === 'value' && option.required);
    if (!needed || (given !== undefined && given !== '')) continue;
    throw new UsageError(
      option.kind === 'value' ? `--${name} ${option.placeholder} is missing` : `${name.toUpperCase()} is missing`,
    );
  }
  if (words.length > 0) throw new UsageError(`"${command.name}" does not accept the argument "${words.join(' ')}"`);
  return values;
}

function unknownOption(commands: readonly Entry[], command: Command, option: string): string {
  const name = option.slice(2);
  if (Object.hasOwn(command.options, name))
    return `"${command.name}" has no option ${option}: write "${command.name} ${name.toUpperCase()}"`;
  const elsewhere = commands.some((entry) => entry.kind === 'command' && Object.hasOwn(flagsOf(entry), name));
  if (elsewhere) return `"${command.name}" has no option ${option}`;
  return noOption(option, [...Object.keys(flagsOf(command)), ...Object.keys(COMMON)]);
}

function noOption(option: string, known: readonly string[]): string {
  const word = option.replace(/^-+/, '').toLowerCase();
  const near = known.find((name) => name.startsWith(word)) ?? nearest(word, known) ?? 'help';
  return `there is no option ${option} (the nearest known one is --${near})`;
}

function refuse(name: string, reason: string, context: CommandContext, code: number = EXIT.failed): number {
  context.err(`estuary: ${reason}\n${name} --help shows the usage.\n`);
  return code;
}

async function failure(program: Program, command: Command, error: unknown, context: CommandContext): Promise<number> {
  const name = `${program.name} ${command.name}`;
  if (error instanceof UsageError) return refuse(name, error.message, context, command.misuse);
  if (error instanceof CommandError) {
    context.err(`${name}: ${error.message}\n`);
    return error.exitCode;
  }
  const { ConfigError } = await import('../../config/problem.ts');
  if (error instanceof ConfigError) {
    context.err(`${error.message}\n`);
    return EXIT.refused;
  }
  context.err(`${name}: ${describe(error)}\n`);
  return EXIT.failed;
}
