/** Tables for people: aligned, no wider than the terminal, with terminal control characters escaped. */
import type { CommandContext } from './command.ts';

/** ANSI codes. */
const COLORS = { red: 31, green: 32, yellow: 33 } as const;
export type Color = keyof typeof COLORS;

export interface Column {
  readonly head: string;
  /** May be truncated on a narrow terminal; values that people copy may not. */
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
/** Minimum width of a shrunk column. */
const LEAST = 8;

/** @param rows a text per column. @returns lines with line ends, the header first */
export function textTable(columns: readonly Column[], rows: readonly (readonly string[])[], look: Look): string {
  const cells = rows.map((row) => columns.map((_, n) => printable(row[n] ?? '')));
  const widths = fitting(
    columns.map(({ head, shrinks = false }, n) => ({
      shrinks,
      width: Math.max(head.length, ...cells.map((row) => widthOf(row[n] ?? ''))),
    })),
    look.width,
  );
  const line = (row: readonly string[], paint: (text: string, column: Column) => string): string =>
    columns
      .map((column, n) => {
        const text = cut(row[n] ?? '', widths[n] ?? 0);
        const space = n === columns.length - 1 ? '' : ' '.repeat(Math.max(0, (widths[n] ?? 0) - widthOf(text)));
        return paint(text, column) + space;
      })
      .join(GAP)
      .trimEnd();
  const head = line(
    columns.map((column) => column.head),
    (text) => text,
  );
  const body = cells.map((row) => line(row, (text, { color }) => painted(text, color?.(text), look)));
  return [head, ...body].map((text) => `${text}\n`).join('');
}

export function painted(text: string, color: Color | undefined, { colored }: Pick<Look, 'colored'>): string {
  return colored && color !== undefined ? `\x1b[${COLORS[color]}m${text}\x1b[0m` : text;
}

/** Escapes control and bidirectional characters: much of the text comes from untrusted sources. */
export function printable(text: string): string {
  return text.replaceAll(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu,
    (one) => `\\u{${(one.codePointAt(0) ?? 0).toString(16)}}`,
  );
}

function fitting(
  columns: readonly { readonly shrinks: boolean; readonly width: number }[],
  most: number | undefined,
): number[] {
  const widths = columns.map(({ width }) => width);
  if (most === undefined) return widths;
  let over = widths.reduce((sum, width) => sum + width, GAP.length * (widths.length - 1)) - most;
  // Shrink the widest column to the next widest until the rest fits.
  while (over > 0) {
    const open = columns.flatMap(({ shrinks }, n) => (shrinks && (widths[n] ?? 0) > LEAST ? [n] : []));
    const [widest, ...others] = open.toSorted((a, b) => (widths[b] ?? 0) - (widths[a] ?? 0));
    if (widest === undefined) break;
    const width = widths[widest] ?? 0;
    const next = Math.max(LEAST, others[0] === undefined ? LEAST : (widths[others[0]] ?? 0) - 1);
    const less = Math.min(over, Math.max(1, width - next));
    widths[widest] = width - less;
    over -= less;
  }
  return widths;
}

function cut(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  let kept = '';
  for (const one of text) {
    if (widthOf(kept + one) > width - 1) break;
    kept += one;
  }
  return `${kept}…`;
}

const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u;

/** Terminal columns of a text. */
function widthOf(text: string): number {
  // Fast path.
  if (/^[\x20-\x7e]*$/.test(text)) return text.length;
  return Array.from(text).reduce((sum, one) => sum + (/\p{M}/u.test(one) ? 0 : WIDE.test(one) ? 2 : 1), 0);
}
