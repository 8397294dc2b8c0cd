/** The commands as a shell completes them. */

/** What follows an option or stands for an argument: a file, a text that nobody can guess, or one of these words. */
export type CompletedValue = 'file' | 'text' | readonly string[];

export interface CompletedOption {
  /** Without its hyphens. */
  readonly name: string;
  readonly about: string;
  /** undefined: it takes none. */
  readonly value: CompletedValue | undefined;
}

export interface CompletedCommand {
  readonly words: readonly string[];
  readonly summary: string;
  readonly options: readonly CompletedOption[];
  /** Of its first argument. */
  readonly argument: CompletedValue | undefined;
}

/** The words that follow some of a command's own, by those before: `admin otp` → `create`, `list` … */
export function wordsBy(commands: readonly CompletedCommand[]): ReadonlyMap<string, ReadonlyMap<string, string>> {
  const found = new Map<string, Map<string, string>>();
  for (const { words, summary } of commands)
    words.forEach((word, n) => {
      const before = words.slice(0, n).join(' ');
      const next = found.get(before) ?? new Map<string, string>();
      found.set(before, next.set(word, n === words.length - 1 ? summary : (next.get(word) ?? `${word} ...`)));
    });
  return found;
}

/** Every option that takes a value, in any command: what follows it is no word of a command. */
export const takingValues = (commands: readonly CompletedCommand[]): string[] => [
  ...new Set(
    commands.flatMap(({ options }) => options.flatMap(({ name, value }) => (value === undefined ? [] : [`--${name}`]))),
  ),
];

/** For a shell, in single quotes. */
export const quoted = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`;
