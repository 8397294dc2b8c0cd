/** Line plots as SVG, for the documentation: a title, two axes, a line for each series. No dependencies, no script, light and dark. */

export interface Line {
  readonly name: string;
  /** In ascending order of x. */
  readonly points: readonly (readonly [x: number, y: number])[];
}

export interface Plot {
  readonly title: string;
  /** What the axes show, with the unit. */
  readonly x: string;
  readonly y: string;
  readonly lines: readonly Line[];
}

const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [800, 300, 64, 16, 56, 44];
const COLORS = ['#2a6fdb', '#d1495b', '#3a9a5b', '#c98a1b', '#7a5bc7', '#4f5b66'];
/** Points of a line: more than the eye tells apart only make the file larger. */
const POINTS = 240;

/** A step of 1, 2 or 5 times a power of ten that divides 0 to `largest` into about five. */
function stepOf(largest: number): number {
  const raw = Math.max(largest, 1e-9) / 5;
  const power = 10 ** Math.floor(Math.log10(raw));
  return power * ([1, 2, 5, 10].find((factor) => factor * power >= raw) ?? 10);
}

function ticks(largest: number): number[] {
  const step = stepOf(largest);
  return Array.from({ length: Math.ceil(largest / step) + 1 }, (_, n) => n * step);
}

/** At most so many points, each the mean of those that it stands for. */
function thinned(points: Line['points']): Line['points'] {
  const each = Math.ceil(points.length / POINTS);
  const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
  return Array.from({ length: Math.ceil(points.length / each) }, (_, n) => {
    const some = points.slice(n * each, (n + 1) * each);
    return [mean(some.map(([x]) => x)), mean(some.map(([, y]) => y))] as const;
  });
}

const escaped = (text: string): string => text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');
const short = (value: number): string => String(Number(value.toFixed(6)));

/** The SVG document. Both axes begin at 0. */
export function svgOf({ title, x, y, lines }: Plot): string {
  const all = lines.flatMap(({ points }) => points);
  const [xs, ys] = [ticks(Math.max(1e-9, ...all.map(([at]) => at))), ticks(Math.max(1e-9, ...all.map(([, at]) => at)))];
  const [right, top] = [Math.max(1e-9, ...all.map(([at]) => at)), ys.at(-1) ?? 1];
  const across = (value: number): number => LEFT + (value / right) * (WIDTH - LEFT - RIGHT);
  const up = (value: number): number => HEIGHT - BOTTOM - (value / top) * (HEIGHT - TOP - BOTTOM);
  const text = (at: readonly [number, number], words: string, more = ''): string =>
    `<text x="${at[0].toFixed(1)}" y="${at[1].toFixed(1)}" ${more}>${escaped(words)}</text>`;
  const parts = [
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="#fff"/>`,
    text([LEFT, 20], title, 'font-weight="bold"'),
    ...ys.map((value) => `<path d="M${LEFT} ${up(value).toFixed(1)}H${WIDTH - RIGHT}" stroke="#ddd"/>`),
    ...ys.map((value) => text([LEFT - 6, up(value) + 4], short(value), 'text-anchor="end"')),
    ...xs
      .filter((value) => value <= right)
      .map((value) => text([across(value), HEIGHT - BOTTOM + 16], short(value), 'text-anchor="middle"')),
    text([(LEFT + WIDTH) / 2, HEIGHT - 8], x, 'text-anchor="middle"'),
    text(
      [14, (TOP + HEIGHT - BOTTOM) / 2],
      y,
      `text-anchor="middle" transform="rotate(-90 14 ${(TOP + HEIGHT - BOTTOM) / 2})"`,
    ),
    ...lines.flatMap(({ name, points }, n) => {
      const color = COLORS[n % COLORS.length] ?? '#000';
      const path = thinned(points).map(([px, py]) => `${across(px).toFixed(1)} ${up(py).toFixed(1)}`);
      const at = LEFT + (n * (WIDTH - LEFT - RIGHT)) / lines.length;
      return [
        `<path d="M${path.join('L')}" fill="none" stroke="${color}" stroke-width="1.5"/>`,
        `<path d="M${at.toFixed(1)} 38h16" stroke="${color}" stroke-width="3"/>`,
        text([at + 22, 42], name),
      ];
    }),
  ];
  const head = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="12" fill="#222">`;
  return `${[head, ...parts, '</svg>'].join('\n')}\n`;
}
