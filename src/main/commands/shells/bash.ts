/** Completion in bash. */
import { quoted, takingValues, wordsBy, type CompletedCommand, type CompletedValue } from './completed.ts';

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

/** A function that sets REPLY by its arguments. */
function cases(name: string, subject: string, entries: readonly (readonly [string, string])[]): string {
  const lines = entries.map(([pattern, words]) => `    ${pattern}) REPLY=${quoted(words)} ;;`);
  return `${name}() {\n  REPLY=\n  case "${subject}" in\n${lines.join('\n')}\n  esac\n}`;
}
