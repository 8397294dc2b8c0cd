/**
 * `npm run lint:prose`: the rules of CONTRIBUTING.md ("Write English") that a program can check, for Markdown, and for the comments
 * and string literals of the code. It works offline.
 *
 * - spelling: American English, and scripts/dictionary.txt; no exceptions
 * - Markdown: markdownlint with .markdownlint.json, including links to headings; no exceptions
 * - phrases, references and lengths of sentences: counts that may only fall. scripts/prose-limits.json is lowered with each improvement.
 *
 *   node scripts/prose.ts [--list] [--changed] [PATH…]     --list prints each phrase, and each text of more than 30 words
 *                                                          --changed checks spelling and Markdown only in files that differ from HEAD
 *                                                          PATH restricts the files
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { lint } from 'markdownlint/promise';
import { parseArgs } from 'node:util';
import { proseOf } from './lib/prose/source-prose.ts';
import { speller, wordsOf } from './lib/prose/spelling.ts';
import { endWithUsage } from './lib/usage.ts';

const ROOT = join(import.meta.dirname, '..');

/** Phrases that read as if translated, and private names for standard terms. */
const BANNED =
  /\b(?:(?:is|are) none(?! of)|(?:is|are) none of|of its own|told of|tells of|whoever|thereof|by itself|beside|as (?:long|far|many|much|often) as one|corridor|rehearsal|let in|is meant|lost answers?|patience|without end|all the same|enrolment|authoris(?:e|ed|ation)|what anybody)\b/giu;
/** References to texts that are not in the repository. */
const REFERENCE = /\bcontract §|\bissue \d+(?:\.\d+)?/giu;

/** Words of a sentence above which it counts as long. */
const LONG = 30;
const SQL = /\b(?:SELECT|INSERT INTO|UPDATE|DELETE FROM|CREATE|WITH) /u;

/** The highest numbers that pass. */
const LIMITS = JSON.parse(readFileSync(join(ROOT, 'scripts/prose-limits.json'), 'utf8')) as Readonly<
  Record<
    'phrasesInCode' | 'phrasesInDocuments' | 'references' | 'longTexts' | 'meanSentence' | 'longSentences' | 'words',
    number
  >
>;

interface Finding {
  readonly file: string;
  readonly line: number;
  readonly text: string;
}

/** Paragraphs and list items of a Markdown text, without code, tables, headings and link targets. */
function sentencesOf(markdown: string): string[] {
  return markdown
    .replace(/^```[^]*?^ *```/gmu, '')
    .replace(/^(?:#|\||!\[).*$/gmu, '')
    .replace(/\]\([^)]*\)/gu, ']')
    .replace(/`[^`]*`/gu, 'code')
    .split(/\n\s*\n|\n\s*(?:[-*]|\d+\.)\s|(?<=[.!?:])\s+(?=[\p{Lu}*[])/u)
    .map((sentence) =>
      sentence
        .trim()
        .split(/\s+/u)
        .filter((word) => /\p{L}/u.test(word)),
    )
    .filter((words) => words.length > 2)
    .map((words) => words.join(' '));
}

const lineOf = (source: string, offset: number): number => source.slice(0, offset).split('\n').length;

function findings(pattern: RegExp, file: string, text: string, start = 0, source = text): Finding[] {
  return [...text.matchAll(pattern)].map((match) => ({
    file,
    line: lineOf(source, start + match.index),
    text: match[0],
  }));
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { list: { type: 'boolean' }, changed: { type: 'boolean' }, help: { type: 'boolean' } },
});
if (values.help === true) endWithUsage('node scripts/prose.ts [--list] [--changed] [PATH…]');
const git = (...args: readonly string[]): string[] =>
  execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' })
    .split('\n')
    .filter((file) => file !== '');
const listed = git('ls-files', '--cached', '--others', '--exclude-standard', ...positionals).filter((file) =>
  existsSync(join(ROOT, file)),
);
const code = listed.filter(
  (file) => /^(?:src|console|scripts|test)\/.*\.tsx?$/u.test(file) && file !== 'scripts/prose.ts',
);
const documents = listed.filter((file) => /^(?:[A-Z]+|\.github\/.*|docs\/.*|examples\/.*)\.md$/u.test(file));
const changed = new Set(
  values.changed === true
    ? [...git('diff', '--name-only', 'HEAD'), ...git('ls-files', '--others', '--exclude-standard')]
    : listed,
);

const misspelled: Finding[] = [];
const isCorrect = speller(ROOT);
function checkSpelling(file: string, text: string, start = 0, source = text): void {
  if (!changed.has(file)) return;
  for (const { word, offset } of wordsOf(text))
    if (!isCorrect(word)) misspelled.push({ file, line: lineOf(source, start + offset), text: word });
}

const phrasesInCode: Finding[] = [];
const references: Finding[] = [];
const longTexts: Finding[] = [];
for (const file of code) {
  const source = readFileSync(join(ROOT, file), 'utf8');
  for (const { kind, start, text } of proseOf(file, source)) {
    phrasesInCode.push(...findings(BANNED, file, text, start, source));
    references.push(...findings(REFERENCE, file, text, start, source));
    // Texts of tests and scripts are configurations and shell commands, too.
    const isMessage =
      kind === 'text' && /^(?:src|console)\//u.test(file) && /\p{Ll} \p{Ll}/u.test(text) && !SQL.test(text);
    if (kind === 'comment' || isMessage) checkSpelling(file, text, start, source);
    if (isMessage && sentencesOf(text).some((sentence) => sentence.split(' ').length > LONG))
      longTexts.push({ file, line: lineOf(source, start), text });
  }
}
const phrasesInDocuments: Finding[] = [];
const lengths: number[] = [];
for (const file of documents) {
  const text = readFileSync(join(ROOT, file), 'utf8');
  // The style guide quotes what not to write.
  if (file !== 'CONTRIBUTING.md') phrasesInDocuments.push(...findings(BANNED, file, text));
  references.push(...findings(REFERENCE, file, text));
  lengths.push(...sentencesOf(text).map((sentence) => sentence.split(' ').length));
  // Names of tests are in the page of requirements.
  if (!file.startsWith('docs/reference/')) checkSpelling(file, text);
}
if (values.list === true)
  for (const { file, line, text } of [...phrasesInCode, ...phrasesInDocuments, ...references, ...longTexts])
    process.stdout.write(`${file}:${line}: ${text}\n`);

const markdown = await lint({
  files: documents
    .filter((file) => changed.has(file) && !file.startsWith('docs/reference/'))
    .map((file) => join(ROOT, file)),
  config: JSON.parse(readFileSync(join(ROOT, '.markdownlint.json'), 'utf8')) as Record<string, unknown>,
});
const markdownErrors = Object.entries(markdown).flatMap(([file, errors]) =>
  errors.map(({ lineNumber, ruleNames, ruleDescription, errorDetail }) => ({
    file: file.slice(ROOT.length + 1),
    line: lineNumber,
    text: `${ruleNames.join('/')}: ${ruleDescription} ${errorDetail ?? ''}`,
  })),
);
for (const { file, line, text } of misspelled)
  process.stdout.write(
    `${file}:${line}: "${text}" is not in the dictionary. Correct it, or add it to scripts/dictionary.txt.\n`,
  );
for (const { file, line, text } of markdownErrors) process.stdout.write(`${file}:${line}: ${text}\n`);

const words = lengths.reduce((sum, length) => sum + length, 0);
const counts: typeof LIMITS = {
  phrasesInCode: phrasesInCode.length,
  phrasesInDocuments: phrasesInDocuments.length,
  references: references.length,
  longTexts: longTexts.length,
  meanSentence: Number((words / Math.max(1, lengths.length)).toFixed(1)),
  longSentences: Number(
    ((100 * lengths.filter((length) => length > LONG).length) / Math.max(1, lengths.length)).toFixed(1),
  ),
  words,
};
let failed = misspelled.length > 0 || markdownErrors.length > 0;
for (const [name, limit] of Object.entries(LIMITS)) {
  const count = Reflect.get(counts, name) as number;
  const over = positionals.length === 0 && count > limit;
  failed ||= over;
  process.stdout.write(`${name}: ${count} (limit ${limit})${over ? ' TOO HIGH' : ''}\n`);
}
if (failed) {
  process.stdout.write('Run "node scripts/prose.ts --list PATH" to see the findings; CONTRIBUTING.md has the rules.\n');
  process.exitCode = 1;
}
