/** The help texts, made of the table of commands. */
import type { Command, Entry, Options } from './command.ts';

/** Columns of a terminal. */
const WIDTH = 100;

export interface HelpOf {
  readonly name: string;
  readonly commands: readonly Entry[];
  readonly notes?: string;
}

/** What there is. */
export function helpOfAll({ name, commands, notes }: HelpOf): string {
  const list = commands.map(({ name: command, summary }) => [command, summary] as const);
  const parts = [`usage: ${name} COMMAND [options]`, columns(list), `${name} COMMAND --help tells more of one.`];
  return `${[...parts, ...(notes === undefined ? [] : [notes])].join('\n\n')}\n`;
}

/** @param program what the operator types before the command's words */
export function helpOfCommand(program: string, { name, summary, about, options }: Command): string {
  const list = Object.entries(options).map(([option, { kind, about: text, ...more }]) => {
    const value = 'placeholder' in more ? ` ${more.placeholder}` : '';
    const repeated = kind === 'values' ? '; may be given more than once' : '';
    return [kind === 'argument' ? option.toUpperCase() : `--${option}${value}`, `${text}${repeated}`] as const;
  });
  const texts = [summary, ...(about === undefined ? [] : [about])].join('\n\n');
  return `usage: ${program} ${name}${usage(options)}\n\n${texts}\n\n${columns([...list, ['--help', 'this text']])}\n`;
}

/** What has to be given, and that there is more. */
function usage(options: Options): string {
  const entries = Object.entries(options);
  const needed = entries.flatMap(([name, option]) => {
    if (option.kind === 'argument') return [` ${name.toUpperCase()}`];
    return option.kind === 'value' && option.required ? [` --${name} ${option.placeholder}`] : [];
  });
  return needed.join('') + (needed.length < entries.length ? ' [options]' : '');
}

function columns(rows: readonly (readonly [string, string])[]): string {
  const width = Math.max(...rows.map(([left]) => left.length)) + 2;
  return rows.map(([left, right]) => `  ${left.padEnd(width)}${wrapped(right, width + 2)}`).join('\n');
}

/** Broken between words, further lines indented. */
function wrapped(text: string, indent: number): string {
  const lines = [''];
  for (const word of text.split(' ')) {
    const last = lines.at(-1) ?? '';
    if (last !== '' && last.length + word.length + 1 > WIDTH - indent) lines.push(word);
    else lines[lines.length - 1] = last === '' ? word : `${last} ${word}`;
  }
  return lines.join(`\n${' '.repeat(indent)}`);
}
