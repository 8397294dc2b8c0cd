/**
 * `npm run lint:prose`: the rules of CONTRIBUTING.md ("Write English") that a program can check, for Markdown, and for the comments
 * and string literals of the code. The counts may only fall: LIMITS is lowered with each improvement.
 *
 *   node scripts/prose.ts [--list] [PATH…]     --list prints each finding; PATH restricts the files
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import ts from 'typescript';
import { endWithUsage } from './lib/usage.ts';

const ROOT = join(import.meta.dirname, '..');

/** Phrases that read as if translated, and private names for standard terms. */
const BANNED =
  /\b(?:(?:is|are) none(?! of)|(?:is|are) none of|of its own|told of|tells of|whoever|thereof|by itself|beside|as (?:long|far|many|much|often) as one|corridor|rehearsal|let in|is meant|lost answers?|footing|patience|without end|all the same|enrolment|authoris(?:e|ed|ation)|what anybody)\b/giu;
/** References to texts that are not in the repository. */
const REFERENCE = /\bcontract §|\bissue \d+(?:\.\d+)?/giu;

/** The highest numbers that pass. */
const LIMITS = JSON.parse(readFileSync(join(ROOT, 'scripts/prose-limits.json'), 'utf8')) as Readonly<
  Record<'phrasesInCode' | 'phrasesInDocuments' | 'references' | 'meanSentence' | 'longSentences' | 'words', number>
>;

interface Finding {
  readonly file: string;
  readonly line: number;
  readonly text: string;
}

/** The comments and string literals of a source file, with their positions. */
function* proseOf(source: string): Generator<{ start: number; text: string }> {
  const scanner = ts.createScanner(ts.ScriptTarget.Latest, false, ts.LanguageVariant.JSX, source);
  const prose = new Set([
    ts.SyntaxKind.SingleLineCommentTrivia,
    ts.SyntaxKind.MultiLineCommentTrivia,
    ts.SyntaxKind.StringLiteral,
    ts.SyntaxKind.NoSubstitutionTemplateLiteral,
    ts.SyntaxKind.TemplateHead,
    ts.SyntaxKind.JsxText,
  ]);
  for (let kind = scanner.scan(); kind !== ts.SyntaxKind.EndOfFileToken; kind = scanner.scan())
    if (prose.has(kind)) yield { start: scanner.getTokenStart(), text: scanner.getTokenText() };
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

function findings(pattern: RegExp, file: string, text: string, start = 0, source = text): Finding[] {
  return [...text.matchAll(pattern)].map((match) => ({
    file,
    line: source.slice(0, start + match.index).split('\n').length,
    text: match[0],
  }));
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { list: { type: 'boolean' }, help: { type: 'boolean' } },
});
if (values.help === true) endWithUsage('node scripts/prose.ts [--list] [PATH…]');
const listed = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', ...positionals], {
  cwd: ROOT,
  encoding: 'utf8',
}).split('\n');
const code = listed.filter(
  (file) => /^(?:src|console|scripts|test)\/.*\.tsx?$/u.test(file) && file !== 'scripts/prose.ts',
);
const documents = listed.filter((file) => /^(?:[A-Z]+|docs\/.*|examples\/.*)\.md$/u.test(file));

const phrasesInCode: Finding[] = [];
const references: Finding[] = [];
for (const file of code) {
  const source = readFileSync(join(ROOT, file), 'utf8');
  for (const { start, text } of proseOf(source)) {
    phrasesInCode.push(...findings(BANNED, file, text, start, source));
    references.push(...findings(REFERENCE, file, text, start, source));
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
}
if (values.list === true)
  for (const { file, line, text } of [...phrasesInCode, ...phrasesInDocuments, ...references])
    process.stdout.write(`${file}:${line}: ${text}\n`);

const words = lengths.reduce((sum, length) => sum + length, 0);
const counts: typeof LIMITS = {
  phrasesInCode: phrasesInCode.length,
  phrasesInDocuments: phrasesInDocuments.length,
  references: references.length,
  meanSentence: Number((words / Math.max(1, lengths.length)).toFixed(1)),
  longSentences: Number(
    ((100 * lengths.filter((length) => length > 30).length) / Math.max(1, lengths.length)).toFixed(1),
  ),
  words,
};
let failed = false;
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
