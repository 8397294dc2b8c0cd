/** Completion in zsh: works as a file `_estuary` in the function path, and when it is sourced after compinit. */
import {
  quoted,
  takingValues,
  wordsBy,
  type CompletedCommand,
  type CompletedOption,
  type CompletedValue,
} from './completed.ts';

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

const HELP: CompletedOption = { name: 'help', about: 'tells of the command', value: undefined };

/** As _describe has them: a colon ends the word. */
const described = (word: string, about: string): string => quoted(`${word}:${about}`);

function valueCase(pattern: string, value: CompletedValue | undefined): string[] {
  if (value === undefined || value === 'text') return [];
  return [`    ${quoted(pattern)}) ${value === 'file' ? '_files' : `compadd -- ${value.map(quoted).join(' ')}`} ;;`];
}
