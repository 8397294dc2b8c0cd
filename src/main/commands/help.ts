/** Help texts, generated from the command tables. */
import { type Command, type Entry, isPositional, type Options } from './command.ts';

/** Columns. */
const WIDTH = 100;

interface HelpOf {
  readonly name: string;
  readonly commands: readonly Entry[];
  readonly notes?: string | undefined;
}

export function helpOfAll({ name, commands, notes }: HelpOf): string {
  const list = commands.map(({ name: command, summary }) => [command, summary] as const);
  const parts = [`usage: ${name} COMMAND [options]`, columns(list), `Run "${name} COMMAND --help" for details.`];
  return `${[...parts, ...(notes === undefined ? [] : [notes])].join('\n\n')}\n`;
}

/** @param program the words before the command's name */
export function helpOfCommand(program: string, { name, summary, about, options }: Command): string {
  const list = Object.entries(options).map(([option, { kind, about: text, ...more }]) => {
    const value = 'placeholder' in more ? ` ${more.placeholder}` : '';
    const repeated = kind === 'values' ? '; repeatable' : '';
    const positional = `${option.toUpperCase()}${kind === 'arguments' ? '…' : ''}`;
    return [kind.startsWith('argument') ? positional : `--${option}${value}`, `${text}${repeated}`] as const;
  });
  const texts = [summary, ...(about === undefined ? [] : [about])].join('\n\n');
  const needed = neededOf(options);
  const more = needed.length < Object.keys(options).length ? ['[options]'] : [];
  return `usage: ${[program, name, ...needed, ...more].join(' ')}\n\n${texts}\n\n${columns([...list, ['--help', 'show this text']])}\n`;
}

/** Required options and arguments. */
function neededOf(options: Options): string[] {
  return Object.entries(options).flatMap(([name, option]) => {
    if (option.kind === 'argument') return [name.toUpperCase()];
    return option.kind === 'value' && option.required ? [`--${name} ${option.placeholder}`] : [];
  });
}

function columns(rows: readonly (readonly [string, string])[]): string {
  const width = Math.max(...rows.map(([left]) => left.length)) + 2;
  return rows.map(([left, right]) => `  ${left.padEnd(width)}${wrapped(right, width + 2)}`).join('\n');
}

function wrapped(text: string, indent: number): string {
  const lines = [''];
  for (const word of text.split(' ')) {
    const last = lines.at(-1) ?? '';
    if (last !== '' && last.length + word.length + 1 > WIDTH - indent) lines.push(word);
    else lines[lines.length - 1] = last === '' ? word : `${last} ${word}`;
  }
  return lines.join(`\n${' '.repeat(indent)}`);
}

interface ManualOf extends HelpOf {
  readonly summary: string;
  readonly version: string;
}

/** Manual pages by file name, with man(7) macros: `estuary.1` and one per group. */
export async function manualPages(program: ManualOf): Promise<ReadonlyMap<string, string>> {
  const pages = new Map<string, string>();
  const others: string[] = [];
  for (const entry of program.commands)
    if (entry.kind === 'group') {
      const { name, summary, notes } = entry;
      const family = { name: `${program.name} ${name}`, summary, notes, version: program.version };
      pages.set(`${program.name}-${name}.1`, page({ ...family, commands: await entry.load() }, [program.name]));
      others.push(`${program.name}-${name}`);
    }
  pages.set(`${program.name}.1`, page(program, others));
  return pages;
}

function page({ name, summary, version, commands, notes }: ManualOf, others: readonly string[]): string {
  const file = name.replaceAll(' ', '-');
  const own = commands.filter((entry) => entry.kind === 'command');
  const families = commands.filter((entry) => entry.kind === 'group');
  const shared = sharedOptions(own);
  return [
    `.TH ${file.toUpperCase().replaceAll('-', '\\-')} 1 "" ${macro(`Estuary ${version}`)} "Estuary"`,
    '.SH NAME',
    `${text(file)} \\- ${text(summary.replace(/\.$/, ''))}`,
    '.SH SYNOPSIS',
    `.B ${text(name)}`,
    '.I COMMAND',
    '[options]',
    '.SH COMMANDS',
    ...own.flatMap((command) => section(name, command, shared)),
    ...families.flatMap((family) => [
      `.SS ${macro(`${family.name} ...`)}`,
      text(family.summary),
      `See ${text(`${name}-${family.name}`.replaceAll(' ', '-'))}(1).`,
    ]),
    ...(shared.size === 0 ? [] : ['.SH OPTIONS OF ALL']),
    ...[...shared.values()].flatMap((entry) => item(entry.name, entry.option)),
    '.SH OPTIONS',
    ...item('help', { kind: 'flag', about: 'shows the help of a command, or of all commands' }),
    ...(notes === undefined ? [] : ['.SH NOTES', '.nf', text(notes), '.fi']),
    '.SH SEE ALSO',
    others.map((other) => `.BR ${text(other)} (1)`).join(',\n'),
    '',
  ].join('\n');
}

type Option = Options[string];

/** Options that most commands share are described once. */
function sharedOptions(commands: readonly Command[]): Map<string, { readonly name: string; readonly option: Option }> {
  const counts = new Map<string, { name: string; option: Option; count: number }>();
  for (const { options } of commands)
    for (const [name, option] of Object.entries(options)) {
      const known = counts.get(`${name} ${option.about}`) ?? { name, option, count: 0 };
      counts.set(`${name} ${option.about}`, { ...known, count: known.count + 1 });
    }
  return new Map([...counts].filter(([, { count }]) => count > 2 && count > commands.length / 2));
}

function section(
  program: string,
  { name, summary, about, options }: Command,
  shared: ReadonlyMap<string, unknown>,
): string[] {
  const entries = Object.entries(options);
  const own = entries.filter(([option, { about: what }]) => !shared.has(`${option} ${what}`));
  return [
    `.SS ${macro([program, name, ...neededOf(options)].join(' '))}`,
    text(summary),
    ...(about === undefined || about === '' ? [] : [text(about)]),
    ...own.flatMap(([name, option]) => item(name, option)),
  ];
}

function item(name: string, option: Option): string[] {
  const placeholder = 'placeholder' in option ? ` \\fI${text(option.placeholder)}\\fR` : '';
  const head = isPositional(option)
    ? `\\fI${text(name.toUpperCase())}\\fR`
    : `\\fB${text(`--${name}`)}\\fR${placeholder}`;
  return ['.TP', head, text(`${option.about}${option.kind === 'values' ? '; repeatable' : ''}`)];
}

/** A macro argument. */
const macro = (words: string): string => `"${text(words).replaceAll('"', '\\(dq')}"`;

/** Running text: escapes hyphens and lines that would start a macro. */
const text = (words: string): string =>
  words
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll('…', '...')
    .replaceAll('’', "'")
    .replace(/^(?=[.'])/gm, '\\&');
