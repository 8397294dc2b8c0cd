/** Completion in fish. */
import { takingValues, wordsBy, type CompletedCommand, type CompletedValue } from './completed.ts';

export function fishCompletion(commands: readonly CompletedCommand[]): string {
  const words = [...wordsBy(commands)];
  const lines = words.flatMap(([before, next]) =>
    [...next].map(([word, about]) => `complete -c estuary -n ${at(before)} -a ${quoted(word)} -d ${quoted(about)}`),
  );
  const options = commands.flatMap(({ words: own, options: all, argument }) => {
    const when = at(own.join(' '));
    return [
      ...all.map(
        ({ name, about, value }) => `complete -c estuary -n ${when} -l ${name}${taking(value)} -d ${quoted(about)}`,
      ),
      ...(argument === undefined || argument === 'text'
        ? []
        : [`complete -c estuary -n ${when}${argument === 'file' ? ' -F' : ` -a ${quoted(argument.join(' '))}`}`]),
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
      case ${takingValues(commands).map(quoted).join(' ')}
        set skip 1
      case '-*'
      case '*'
        contains -- (string join ' ' $path $word) ${prefixes(words).map(quoted).join(' ')}; or break
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

const at = (words: string): string => quoted(`__estuary_at ${quoted(words)}`);

const taking = (value: CompletedValue | undefined): string => {
  if (value === undefined) return '';
  if (value === 'file') return ' -r -F';
  return value === 'text' ? ' -x' : ` -x -a ${quoted(value.join(' '))}`;
};

/** Everything that is a command, or the beginning of one. */
const prefixes = (words: readonly (readonly [string, ReadonlyMap<string, string>])[]): string[] =>
  words.flatMap(([before, next]) => [...next.keys()].map((word) => (before === '' ? word : `${before} ${word}`)));

/** fish knows two escapes inside of single quotes. */
const quoted = (text: string): string => `'${text.replaceAll(/[\\']/g, String.raw`\$&`)}'`;
