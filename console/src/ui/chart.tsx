/** Counts over time as stacked bars: an interval without events is empty, and nothing is drawn between intervals. */

export interface Series {
  readonly name: string;
  /** A class of the style sheet. */
  readonly kind: string;
  readonly values: readonly number[];
}

interface ChartProps {
  readonly title: string;
  /** The full name of each interval. */
  readonly names: readonly string[];
  /** The text below each interval; it may be empty. */
  readonly ticks: readonly string[];
  readonly series: readonly Series[];
}

const HEIGHT = 100;
/** Gap as a part of an interval's width. */
const GAP = 0.12;

export function Chart({ title, names, ticks, series }: ChartProps) {
  const totals = names.map((_, at) => series.reduce((sum, { values }) => sum + (values[at] ?? 0), 0));
  const most = roundUp(Math.max(...totals, 4));
  return (
    <figure class="chart">
      <div class="plot">
        <div class="scale" aria-hidden="true">
          <span>{most.toLocaleString('en')}</span>
          <span>{(most / 2).toLocaleString('en')}</span>
          <span>0</span>
        </div>
        <svg
          viewBox={`0 0 ${names.length} ${HEIGHT}`}
          preserveAspectRatio="none"
          role="img"
          aria-label={`${title}: ${series.map(summary).join(', ')}`}
        >
          {names.map((name, at) => (
            <Interval key={name} at={at} name={name} series={series} most={most} />
          ))}
        </svg>
        <div class="ticks" aria-hidden="true">
          {ticks.map((tick, at) => (
            <span key={names[at] ?? at}>{tick}</span>
          ))}
        </div>
      </div>
      <figcaption>
        {series.map((line) => (
          <span key={line.name} class={`key ${line.kind}`}>
            {summary(line)}
          </span>
        ))}
      </figcaption>
    </figure>
  );
}

const summary = ({ name, values }: Series): string =>
  `${name} ${values.reduce((sum, value) => sum + value, 0).toLocaleString('en')}`;

interface IntervalProps extends Pick<ChartProps, 'series'> {
  readonly at: number;
  readonly name: string;
  readonly most: number;
}

function Interval({ at, name, series, most }: IntervalProps) {
  let top = HEIGHT;
  const words = series
    .filter(({ values }) => (values[at] ?? 0) > 0)
    .map((line) => `${line.name} ${line.values[at] ?? 0}`);
  return (
    <g>
      <title>{`${name}: ${words.length === 0 ? 'no events' : words.join(', ')}`}</title>
      <rect class="back" x={at} width="1" height={HEIGHT} />
      {series.map(({ name: of, kind, values }) => {
        const height = (HEIGHT * (values[at] ?? 0)) / most;
        top -= height;
        return height > 0 && <rect key={of} class={kind} x={at + GAP} y={top} width={1 - 2 * GAP} height={height} />;
      })}
    </g>
  );
}

/** To 4, 10, 20, 40, 100 …, whose half is a whole number. */
function roundUp(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 4, 10].map((step) => step * power).find((step) => step >= value) ?? value;
}
