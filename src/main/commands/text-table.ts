/** Tables for people: aligned, no wider than the terminal, with terminal control characters escaped. */
import type { CommandContext } from './command.ts';

/** ANSI codes. */
const COLORS = { red: 31, green: 32, yellow: 33 } as const;
export type Color = keyof typeof COLORS;

export interface Column {
  readonly head: string;
  /** Identifies the row: stays on a narrow terminal, and is never cut. */
  readonly identifies?: boolean;
  /** Its values may be of any length: on a narrow terminal, they are wrapped if they identify the row, else cut. */
  readonly shrinks?: boolean;
  /** Color by cell content. */
  readonly color?: (text: string) => Color | undefined;
}

interface Look {
  /** Terminal columns; undefined: unlimited. */
  readonly width: number | undefined;
  readonly colored: boolean;
}

/** Colors only on a terminal and without NO_COLOR (no-color.org). */
export function lookOf({ env, terminal }: Pick<CommandContext, 'env' | 'terminal'>): Look {
  const width = terminal?.outColumns;
  return { width, colored: width !== undefined && (env['NO_COLOR'] ?? '') === '' && env['TERM'] !== 'dumb' };
}

const GAP = '  ';
/** Minimum width of a shrunk column, and the most that a word of an identifying value gets, so that it is not broken. */
const LEAST = 16;
const LONGEST_WORD = 40;

/**
 * On a narrow terminal, columns that identify nothing are left out, the last first, until the others are legible.
 * @param rows a text per column. @returns lines with line ends, the header first
 */
export function textTable(columns: readonly Column[], rows: readonly (readonly string[])[], look: Look): string {
  const all = columns.map((column, n) => {
    const cells = rows.map((row) => printable(row[n] ?? ''));
    return { ...column, cells, width: Math.max(column.head.length, ...cells.map(widthOf)) };
  });
  const shown = fitting(all, look.width);
  const line = (texts: readonly string[], paint: (text: string, column: Column) => string): string =>
    shown
      .map((column, n) => {
        const text = texts[n] ?? '';
        return paint(text, column) + ' '.repeat(Math.max(0, column.width - widthOf(text)));
      })
      .join(GAP)
      .trimEnd();
  const head = line(
    shown.map((column) => column.head),
    (text) => text,
  );
  const body = rows.flatMap((_, row) => {
    const cells = shown.map(({ cells, identifies = false, width }) =>
      identifies ? wrap(cells[row] ?? '', width) : [cut(cells[row] ?? '', width)],
    );
    const height = Math.max(...cells.map((lines) => lines.length));
    return Array.from({ length: height }, (_, n) =>
      line(
        cells.map((lines) => lines[n] ?? ''),
        (text, { color }) => painted(text, color?.(text), look),
      ),
    );
  });
  return [head, ...body].map((text) => `${text}\n`).join('');
}

export function painted(text: string, color: Color | undefined, { colored }: Pick<Look, 'colored'>): string {
  return colored && color !== undefined ? `\x1b[${COLORS[color]}m${text}\x1b[0m` : text;
}

/** Escapes control and bidirectional characters: much of the text comes from untrusted sources. */
export function printable(text: string): string {
  return text.replaceAll(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu,
    (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`,
  );
}

interface Sized extends Column {
  readonly cells: readonly string[];
  readonly width: number;
}

/** Chooses the columns that fit, and their widths. */
function fitting(columns: readonly Sized[], most: number | undefined): readonly Sized[] {
  if (most === undefined) return columns;
  const least = ({ shrinks = false, identifies = false, head, width, cells }: Sized): number => {
    if (!shrinks) return width;
    const words = identifies ? cells.flatMap((cell) => cell.split(BREAK).map(widthOf)) : [];
    return Math.min(width, Math.max(LEAST, head.length, Math.min(LONGEST_WORD, Math.max(0, ...words))));
  };
  const over = (widths: readonly number[]): number =>
    widths.reduce((sum, width) => sum + width, GAP.length * (widths.length - 1)) - most;
  const last = columns.findLastIndex(({ identifies = false }) => !identifies);
  if (last !== -1 && over(columns.map(least)) > 0) return fitting(columns.toSpliced(last, 1), most);
  const widths = columns.map(({ width }) => width);
  // Shrink the widest column to the next widest until the rest fits.
  for (let rest = over(widths); rest > 0; rest = over(widths)) {
    const open = columns.flatMap((column, n) => ((widths[n] ?? 0) > least(column) ? [n] : []));
    const [widest, next] = open.toSorted((a, b) => (widths[b] ?? 0) - (widths[a] ?? 0));
    const column = widest === undefined ? undefined : columns[widest];
    if (widest === undefined || column === undefined) break;
    const [width, goal] = [widths[widest] ?? 0, next === undefined ? 0 : (widths[next] ?? 0) - 1];
    widths[widest] = Math.max(least(column), width - Math.min(rest, Math.max(1, width - goal)));
  }
  return columns.map((column, n) => ({ ...column, width: widths[n] ?? 0 }));
}

/** Where a line may end. */
const BREAK = /(?<=,)| /;

/** Lines of at most `width` columns, broken after a comma or a space where possible. */
function wrap(text: string, width: number): string[] {
  if (widthOf(text) <= width) return [text];
  const fits = cut(text, width + 1).slice(0, -1);
  const end = Math.max(fits.lastIndexOf(','), fits.lastIndexOf(' ')) + 1 || fits.length || text.length;
  return [text.slice(0, end).trimEnd(), ...wrap(text.slice(end).trimStart(), width)];
}

function cut(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  let kept = '';
  for (const character of text) {
    if (widthOf(kept + character) > width - 1) break;
    kept += character;
  }
  return `${kept}…`;
}

const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u;

/** Terminal columns of a text. */
function widthOf(text: string): number {
  // Fast path.
  if (/^[\x20-\x7e]*$/.test(text)) return text.length;
  const columnsOf = (character: string): number => (/\p{M}/u.test(character) ? 0 : WIDE.test(character) ? 2 : 1);
  return Array.from(text, columnsOf).reduce((sum, columns) => sum + columns, 0);
}
