/** `completion`: shell completion, generated from the command tables. */
import { EXIT, UsageError, type CommandContext, type Entry, type Options } from './command.ts';
import { bashCompletion, type CompletedCommand, fishCompletion, zshCompletion } from './shells.ts';

const SHELLS: Readonly<Record<string, (commands: readonly CompletedCommand[]) => string>> = {
  bash: bashCompletion,
  zsh: zshCompletion,
  fish: fishCompletion,
};

/** @param commands of the whole program. @returns the command, which throws UsageError */
export const completing =
  (commands: readonly Entry[]) =>
  async ({ shell }: { readonly shell: string }, { out }: CommandContext): Promise<number> => {
    const make = Object.hasOwn(SHELLS, shell) ? SHELLS[shell] : undefined;
    if (make === undefined) throw new UsageError(`SHELL must be one of ${Object.keys(SHELLS).join(', ')}`);
    out(make(await completedCommands(commands)));
    return EXIT.ok;
  };

/** All commands, including groups. */
async function completedCommands(
  entries: readonly Entry[],
  before: readonly string[] = [],
): Promise<CompletedCommand[]> {
  const all = entries.map(async (entry) => {
    const words = [...before, ...entry.name.split(' ')];
    if (entry.kind === 'group') return completedCommands(await entry.load(), words);
    return [{ words, summary: entry.summary, ...completed(entry.options) }];
  });
  return (await Promise.all(all)).flat();
}

function completed(options: Options): Pick<CompletedCommand, 'options' | 'argument'> {
  const entries = Object.entries(options);
  const named = entries.map(([name, option]) => ({
    name,
    about: option.about,
    isArgument: option.kind === 'argument',
    value: option.kind === 'flag' ? undefined : valueOf(name, option),
  }));
  return {
    options: named.filter(({ isArgument }) => !isArgument),
    argument: named.find(({ isArgument }) => isArgument)?.value,
  };
}

function valueOf(
  name: string,
  option: Exclude<Options[string], { kind: 'flag' }>,
): 'file' | 'text' | readonly string[] {
  if ('choices' in option && option.choices !== undefined) return option.choices;
  const placeholder = 'placeholder' in option ? option.placeholder : name.toUpperCase();
  return placeholder === 'FILE' || placeholder === 'DIR' ? 'file' : 'text';
}
