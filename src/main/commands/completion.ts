/** `completion`: a script for a shell, which calls this command again for the words to offer. */
import { type Command, type CommandContext, type Entry, EXIT, isPositional, UsageError } from './command.ts';
import { findCommand, readLine } from './run-command.ts';

/** Set by the scripts: the words after the program's name, up to the one to complete, separated by tabs. */
const WORDS = 'ESTUARY_COMPLETION';

/** The answer for a file name, which the shell completes. */
const FILE = '@file';

/** A word and what it means. */
type Candidate = readonly [word: string, about: string];

interface Shell {
  readonly script: string;
  /** A candidate in the form that the script expects. */
  readonly line: (candidate: Candidate) => string;
}

const SHELLS: Readonly<Record<string, Shell>> = {
  bash: {
    line: ([word]) => word,
    script: `# bash completion of estuary, made by "estuary completion bash"
_estuary() {
  local found cur=\${COMP_WORDS[COMP_CWORD]}
  found=$(IFS=$'\\t'; ${WORDS}="\${COMP_WORDS[*]:1:COMP_CWORD}" "\${COMP_WORDS[0]}" completion bash 2>/dev/null)
  case $found in
    ${FILE}) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
    *) mapfile -t COMPREPLY < <(compgen -W "$found" -- "$cur") ;;
  esac
}
complete -F _estuary estuary
`,
  },
  zsh: {
    line: ([word, about]) => `${word.replaceAll(':', String.raw`\:`)}:${about}`,
    script: `#compdef estuary
# zsh completion of estuary, made by "estuary completion zsh"
_estuary() {
  local -a found
  found=("\${(@f)$(${WORDS}="\${(pj:\\t:)words[2,CURRENT]}" $words[1] completion zsh 2>/dev/null)}")
  if [[ $found == ${FILE} ]]; then _files; else _describe estuary found; fi
}
if [[ $funcstack[1] == _estuary ]]; then _estuary "$@"; else compdef _estuary estuary; fi
`,
  },
  fish: {
    line: (candidate) => candidate.join('\t'),
    script: `# fish completion of estuary, made by "estuary completion fish"
function __estuary_complete
  set -l words (commandline -opc) "$(commandline -ct)"
  set -lx ${WORDS} (string join \\t -- $words[2..-1])
  set -l found ($words[1] completion fish 2>/dev/null)
  if test "$found" = ${FILE}
    __fish_complete_path "$(commandline -ct)"
  else
    printf '%s\\n' $found
  end
end
complete -c estuary -f -a '(__estuary_complete)'
`,
  },
};

/** @param commands of the whole program. @returns the command, which throws UsageError */
export const completing =
  (commands: readonly Entry[]) =>
  async ({ shell }: { readonly shell: string }, { env, out }: CommandContext): Promise<number> => {
    const known = Object.hasOwn(SHELLS, shell) ? SHELLS[shell] : undefined;
    if (known === undefined) throw new UsageError(`SHELL must be one of ${Object.keys(SHELLS).join(', ')}`);
    const words = env[WORDS]?.split('\t');
    if (words === undefined) out(known.script);
    else {
      const found = await offered(commands, words);
      out(found === 'file' ? FILE : found.map((candidate) => `${known.line(candidate)}\n`).join(''));
    }
    return EXIT.ok;
  };

/** What may stand in the place of the last word. */
async function offered(commands: readonly Entry[], words: readonly string[]): Promise<'file' | readonly Candidate[]> {
  const [before, current] = [words.slice(0, -1), words.at(-1) ?? ''];
  const line = readLine(commands, before);
  const [first] = line.words;
  const group = commands.find((entry) => entry.kind === 'group' && entry.name === first?.value);
  if (group?.kind === 'group' && first !== undefined)
    return offered(
      await group.load(),
      words.filter((_, index) => index !== first.index),
    );
  const names = line.words.map(({ value }) => value);
  const command = findCommand({ commands }, names);
  const found = valuesOf(before.at(-1), command) ?? (current.startsWith('-') ? optionsOf(command) : undefined);
  const all = found ?? nextWords(commands, names) ?? argumentOf(command, names);
  return all === 'file' ? all : all.filter(([word]) => word.startsWith(current));
}

/** For the value of an option; undefined if the word before takes none. */
function valuesOf(before: string | undefined, command: Command | undefined) {
  const option = before?.startsWith('--') === true ? command?.options[before.slice(2)] : undefined;
  if (option === undefined || option.kind === 'flag' || isPositional(option)) return undefined;
  if (option.placeholder === 'FILE' || option.placeholder === 'DIR') return 'file';
  return choicesOf(option.kind === 'value' ? option.choices : undefined);
}

const choicesOf = (choices: readonly string[] = []): readonly Candidate[] => choices.map((choice) => [choice, '']);

function optionsOf(command: Command | undefined): readonly Candidate[] {
  const options = Object.entries(command?.options ?? {}).filter(([, option]) => !isPositional(option));
  return [...options.map(([name, { about }]) => [`--${name}`, about] as const), ['--help', 'show the help']];
}

/** The next word of a command's name; undefined if no name is longer. */
function nextWords(commands: readonly Entry[], names: readonly string[]): readonly Candidate[] | undefined {
  const prefix = names.map((name) => `${name} `).join('');
  const found = new Map<string, string>();
  for (const { name, summary } of commands.filter((entry) => entry.name.startsWith(prefix))) {
    const [word = '', ...more] = name.slice(prefix.length).split(' ');
    found.set(word, more.length === 0 ? summary : `${word} ...`);
  }
  return found.size === 0 ? undefined : [...found];
}

/** For the first argument of a command. */
function argumentOf(command: Command | undefined, names: readonly string[]): 'file' | readonly Candidate[] {
  const [argument] = Object.entries(command?.options ?? {}).filter(([, { kind }]) => kind === 'argument');
  if (argument?.[1].kind !== 'argument' || names.length !== command?.name.split(' ').length) return [];
  return argument[0] === 'file' ? 'file' : choicesOf(argument[1].choices);
}
