/** Shell completion scripts. */

/** The value of an option or argument: a file, free text, or one of these words. */
type CompletedValue = 'file' | 'text' | readonly string[];

interface CompletedOption {
  /** Without hyphens. */
  readonly name: string;
  readonly about: string;
  /** undefined for a flag. */
  readonly value: CompletedValue | undefined;
}

export interface CompletedCommand {
  readonly words: readonly string[];
  readonly summary: string;
  readonly options: readonly CompletedOption[];
  /** Of its first argument. */
  readonly argument: CompletedValue | undefined;
}

/** Next words by prefix: `admin otp` → `create`, `list` … */
function wordsBy(commands: readonly CompletedCommand[]): ReadonlyMap<string, ReadonlyMap<string, string>> {
  const found = new Map<string, Map<string, string>>();
  for (const { words, summary } of commands)
    words.forEach((word, n) => {
      const before = words.slice(0, n).join(' ');
      const next = found.get(before) ?? new Map<string, string>();
      found.set(before, next.set(word, n === words.length - 1 ? summary : (next.get(word) ?? `${word} ...`)));
    });
  return found;
}

/** All options with a value: the word after them is not part of a command's name. */
const takingValues = (commands: readonly CompletedCommand[]): string[] => [
  ...new Set(
    commands.flatMap(({ options }) => options.flatMap(({ name, value }) => (value === undefined ? [] : [`--${name}`]))),
  ),
];

/** Single-quoted for a shell. */
const quoted = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`;

export function bashCompletion(commands: readonly CompletedCommand[]): string {
  return `# bash completion of estuary, made by "estuary completion bash"
_estuary() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]} at= word= next= skip= known= ended= i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    if [[ -n $skip ]]; then skip=; continue; fi
    case $word in
      ${takingValues(commands).join('|')}) skip=1; continue ;;
      -*) continue ;;
    esac
    [[ -z $ended ]] || continue
    _estuary_words "$at"
    known=
    for next in $REPLY; do [[ $next == "$word" ]] && known=1; done
    if [[ -n $known ]]; then at=\${at:+$at }$word; else ended=1; fi
  done
  if [[ -n $skip ]]; then
    _estuary_value "$at" "$prev"
  elif [[ $cur == -* ]]; then
    _estuary_options "$at"
  else
    _estuary_words "$at"
    [[ -n $REPLY ]] || _estuary_argument "$at"
  fi
  case $REPLY in
    @file) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
    *) mapfile -t COMPREPLY < <(compgen -W "$REPLY" -- "$cur") ;;
  esac
}
${cases(
  '_estuary_words',
  '$1',
  [...wordsBy(commands)].map(([before, words]) => [quoted(before), [...words.keys()].join(' ')]),
)}
${cases(
  '_estuary_options',
  '$1',
  commands.map(({ words, options }) => [
    quoted(words.join(' ')),
    [...options.map(({ name }) => `--${name}`), '--help'].join(' '),
  ]),
)}
${cases(
  '_estuary_value',
  '$1 $2',
  commands.flatMap(({ words, options }) =>
    options.flatMap(({ name, value }) =>
      value === undefined || value === 'text' ? [] : [[quoted(`${words.join(' ')} --${name}`), reply(value)] as const],
    ),
  ),
)}
${cases(
  '_estuary_argument',
  '$1',
  commands.flatMap(({ words, argument }) =>
    argument === undefined || argument === 'text' ? [] : [[quoted(words.join(' ')), reply(argument)] as const],
  ),
)}
complete -F _estuary estuary
`;
}

const reply = (value: CompletedValue): string => (typeof value === 'string' ? `@${value}` : value.join(' '));

/** A shell function that sets REPLY by its arguments. */
function cases(name: string, subject: string, entries: readonly (readonly [string, string])[]): string {
  const lines = entries.map(([pattern, words]) => `    ${pattern}) REPLY=${quoted(words)} ;;`);
  return `${name}() {\n  REPLY=\n  case "${subject}" in\n${lines.join('\n')}\n  esac\n}`;
}

export function fishCompletion(commands: readonly CompletedCommand[]): string {
  const words = [...wordsBy(commands)];
  const lines = words.flatMap(([before, next]) =>
    [...next].map(
      ([word, about]) => `complete -c estuary -n ${at(before)} -a ${fishQuoted(word)} -d ${fishQuoted(about)}`,
    ),
  );
  const options = commands.flatMap(({ words: own, options: all, argument }) => {
    const when = at(own.join(' '));
    return [
      ...all.map(
        ({ name, about, value }) => `complete -c estuary -n ${when} -l ${name}${taking(value)} -d ${fishQuoted(about)}`,
      ),
      ...(argument === undefined || argument === 'text'
        ? []
        : [`complete -c estuary -n ${when}${argument === 'file' ? ' -F' : ` -a ${fishQuoted(argument.join(' '))}`}`]),
    ];
  });
  return `# fish completion of estuary, made by "estuary completion fish"
function __estuary_at
  set -l path
  set -l skip
  for word in (commandline -opc)[2..-1]
    if test -n "$skip"
      set skip
      continue
    end
    switch $word
      case ${takingValues(commands).map(fishQuoted).join(' ')}
        set skip 1
      case '-*'
      case '*'
        contains -- (string join ' ' $path $word) ${prefixes(words).map(fishQuoted).join(' ')}; or break
        set -a path $word
    end
  end
  set -l joined (string join ' ' -- $path)
  test "$joined" = "$argv[1]"
end
complete -c estuary -f
${[...lines, ...options].join('\n')}
`;
}

const at = (words: string): string => fishQuoted(`__estuary_at ${fishQuoted(words)}`);

const taking = (value: CompletedValue | undefined): string => {
  if (value === undefined) return '';
  if (value === 'file') return ' -r -F';
  return value === 'text' ? ' -x' : ` -x -a ${fishQuoted(value.join(' '))}`;
};

/** Every command name and prefix. */
const prefixes = (words: readonly (readonly [string, ReadonlyMap<string, string>])[]): string[] =>
  words.flatMap(([before, next]) => [...next.keys()].map((word) => (before === '' ? word : `${before} ${word}`)));

/** fish knows two escapes in single quotes. */
const fishQuoted = (text: string): string => `'${text.replaceAll(/[\\']/g, String.raw`\$&`)}'`;

/** Completion in zsh, as a file `_estuary` in the function path or sourced after compinit. */
export function zshCompletion(commands: readonly CompletedCommand[]): string {
  const words = [...wordsBy(commands)].map(
    ([before, next]) =>
      `    ${quoted(before)}) found=(${[...next].map(([word, about]) => described(word, about)).join(' ')}) ;;`,
  );
  const options = commands.map(
    ({ words: at, options: own }) =>
      `    ${quoted(at.join(' '))}) found=(${[...own, HELP].map(({ name, about }) => described(`--${name}`, about)).join(' ')}) ;;`,
  );
  const values = commands.flatMap(({ words: at, options: own, argument }) => [
    ...own.flatMap(({ name, value }) => valueCase(`${at.join(' ')} --${name}`, value)),
    ...valueCase(`${at.join(' ')} `, argument),
  ]);
  return `#compdef estuary
# zsh completion of estuary, made by "estuary completion zsh"
_estuary() {
  local at= word= skip= last= ended= i
  local -a found
  for ((i = 2; i < CURRENT; i++)); do
    word=\${words[i]}
    if [[ -n $skip ]]; then skip=; continue; fi
    case $word in
      (${takingValues(commands).join('|')}) skip=1; last=$word; continue ;;
      (-*) continue ;;
    esac
    [[ -z $ended ]] || continue
    _estuary_words "$at"
    if (( \${found[(I)$word(|:*)]} )); then at=\${at:+$at }$word; else ended=1; fi
  done
  if [[ -n $skip ]]; then
    _estuary_value "$at $last"
  elif [[ \${words[CURRENT]} == -* ]]; then
    _estuary_options "$at"
    _describe -o option found
  else
    _estuary_words "$at"
    if (( $#found )); then _describe command found; else _estuary_value "$at "; fi
  fi
}
_estuary_words() {
  found=()
  case $1 in
${words.join('\n')}
  esac
}
_estuary_options() {
  found=()
  case $1 in
${options.join('\n')}
  esac
}
_estuary_value() {
  case $1 in
${values.join('\n')}
  esac
}
if [[ $funcstack[1] == _estuary ]]; then _estuary "$@"; else compdef _estuary estuary; fi
`;
}

const HELP: CompletedOption = { name: 'help', about: 'show the help of the command', value: undefined };

/** For _describe: a colon ends the word. */
const described = (word: string, about: string): string => quoted(`${word}:${about}`);

function valueCase(pattern: string, value: CompletedValue | undefined): string[] {
  if (value === undefined || value === 'text') return [];
  return [`    ${quoted(pattern)}) ${value === 'file' ? '_files' : `compadd -- ${value.map(quoted).join(' ')}`} ;;`];
}
