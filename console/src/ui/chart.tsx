/** Counts over time, drawn by uPlot (loaded on demand), with a table of the numbers for screen readers. */
import { useEffect, useRef } from 'preact/hooks';
import type uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { theme } from '../preferences.ts';

export interface Series {
  readonly name: string;
  /** A custom property of the style sheet. */
  readonly color: string;
  readonly values: readonly number[];
}

interface ChartProps {
  readonly title: string;
  /** When each value's interval begins, ISO 8601. */
  readonly times: readonly string[];
  readonly series: readonly Series[];
}

const HEIGHT = 220;

export function Chart({ title, times, series }: ChartProps) {
  const place = useRef<HTMLDivElement>(null);
  const colors = theme.value;
  useEffect(() => {
    const element = place.current;
    if (element === null) return undefined;
    let plot: uPlot | undefined;
    let isGone = false;
    void import('uplot').then(({ default: Plot }) => {
      if (isGone) return;
      const data: uPlot.AlignedData = [
        times.map((time) => Date.parse(time) / 1000),
        ...series.map(({ values }) => [...values]),
      ];
      plot = new Plot(optionsOf(Plot, element, series), data, element);
    });
    const watch = new ResizeObserver(() => plot?.setSize({ width: element.clientWidth, height: HEIGHT }));
    watch.observe(element);
    return () => {
      isGone = true;
      watch.disconnect();
      plot?.destroy();
    };
  }, [times, series, colors]);
  return (
    <figure class="chart">
      <div ref={place} role="img" aria-label={`${title}: ${series.map(summary).join(', ')}`} />
      <figcaption>
        {series.map((one) => (
          <span key={one.name} class={`key ${one.color}`}>
            {summary(one)}
          </span>
        ))}
      </figcaption>
    </figure>
  );
}

const summary = ({ name, values }: Series): string => `${name} ${values.reduce((sum, one) => sum + one, 0)}`;

function optionsOf(Plot: typeof uPlot, element: HTMLElement, series: readonly Series[]): uPlot.Options {
  const style = getComputedStyle(element);
  const color = (name: string): string => resolved(element, `--${name}`, style);
  const axis = {
    stroke: color('soft'),
    grid: { stroke: color('line'), width: 1 },
    ticks: { show: false },
    font: `12px ${style.fontFamily}`,
  };
  return {
    width: element.clientWidth,
    height: HEIGHT,
    tzDate: (seconds) => Plot.tzDate(new Date(seconds * 1000), 'UTC'),
    cursor: { y: false, drag: { x: false, y: false } },
    legend: { show: false },
    scales: { y: { range: (_plot, _low, high) => [0, Math.max(high * 1.1, 4)] } },
    axes: [
      { ...axis, values: (_plot, at) => at.map(timeWords) },
      { ...axis, size: 42 },
    ],
    series: [
      {},
      ...series.map((one) => ({
        label: one.name,
        stroke: color(one.color),
        fill: `color-mix(in srgb, ${color(one.color)} 14%, transparent)`,
        width: 2,
        points: { show: false },
      })),
    ],
  };
}

/** Of a day its date, of an hour its time, UTC. */
function timeWords(seconds: number): string {
  const at = new Date(seconds * 1000).toISOString();
  return at.includes('T00:00') ? at.slice(5, 10) : at.slice(11, 16);
}

/** A canvas does not know `light-dark()`: the element's own color is what it comes to. */
function resolved(element: HTMLElement, property: string, style: CSSStyleDeclaration): string {
  const before = element.style.color;
  element.style.color = `var(${property})`;
  const color = style.color;
  element.style.color = before;
  return color;
}
