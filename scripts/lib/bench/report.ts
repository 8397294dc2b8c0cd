/** The tables of `scripts/bench`: medians over its rounds. */
import { svgOf } from '../plot.ts';
import type { Measurement } from './measure.ts';
import type { Row, ServerName } from './rows.ts';

/** What one server did in one row, with so many clients, in all rounds. */
export interface Series {
  readonly row: Row;
  readonly clients: number;
  readonly server: ServerName;
  readonly rounds: readonly Measurement[];
}

const HEAD = [
  '| enrollments | clients | server | per second | per CPU second | CPU ms each | p50 ms | p95 ms | p99 ms | loop p99 ms | MiB | failures |',
  '|---|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|---|',
];

export function table(series: readonly Series[]): string {
  return [...HEAD, ...series.map(line)].join('\n');
}

function line({ row, clients, server, rounds }: Series): string {
  const of = (value: (one: Measurement) => number, digits = 0): string => median(rounds.map(value)).toFixed(digits);
  const failures = new Map<string, number>();
  for (const { result } of rounds)
    for (const [what, count] of Object.entries(result.failures)) failures.set(what, (failures.get(what) ?? 0) + count);
  const cells = [
    row.name,
    clients,
    server,
    of(perSecond),
    of(perCpuSecond),
    of((one) => 1000 / perCpuSecond(one), 2),
    ...[0.5, 0.95, 0.99].map((share) => of(({ result }) => percentile(result.latencies, share), 1)),
    rounds.every(({ loopDelay }) => loopDelay !== undefined) ? of(({ loopDelay }) => loopDelay ?? NaN, 1) : '–',
    of(({ memory }) => memory),
    [...failures].map(([what, count]) => `${count} × ${what}`).join(', ') || 'none',
  ];
  return `| ${cells.join(' | ')} |`;
}

/** By the number of clients, for each row: SVG documents by their files' names. */
export function plots(series: readonly Series[]): (readonly [file: string, svg: string])[] {
  const rows = [...new Map(series.map(({ row }) => [row.id, row])).values()];
  return rows.flatMap((row) =>
    PLOTS.map(({ file, y, value }) => {
      const own = series.filter(({ row: { id } }) => id === row.id);
      const lines = [...new Set(own.map(({ server }) => server))].map((server) => ({
        name: server,
        points: own
          .filter((one) => one.server === server)
          .map(({ clients, rounds }) => [clients, median(rounds.map(value))] as const)
          .toSorted(([one], [other]) => one - other),
      }));
      return [`bench-${row.id}-${file}.svg`, svgOf({ title: row.name, x: 'clients', y, lines })] as const;
    }),
  );
}

const PLOTS = [
  { file: 'rate', y: 'per CPU second', value: (one: Measurement) => perCpuSecond(one) },
  { file: 'p99', y: 'p99, ms', value: ({ result }: Measurement) => percentile(result.latencies, 0.99) },
];

/** What Estuary does per CPU second, in relation to the others, and resumed to new connections. */
export function ratios(series: readonly Series[]): string {
  const find = (row: string, clients: number, server: ServerName): Series | undefined =>
    series.find((one) => one.row.id === row && one.clients === clients && one.server === server);
  const lines: string[] = [];
  for (const own of series.filter(({ server }) => server === 'Estuary')) {
    const { row, clients } = own;
    const against = (other: Series | undefined, what: string): string[] =>
      other === undefined ? [] : [`${ratio(own, other)} % of ${what}`];
    const parts = [
      ...against(find(row.id, clients, 'the floor'), 'the floor'),
      ...against(find(row.id, clients, 'libest'), 'libest'),
      ...(row.id === 'resumed' ? against(find('new', clients, 'Estuary'), 'new connections') : []),
    ];
    if (parts.length > 0) lines.push(`- ${row.name}, ${clients} clients: ${parts.join(', ')}`);
  }
  return lines.length === 0 ? '' : ['Estuary per CPU second (medians):', ...lines].join('\n');
}

const ratio = (one: Series, other: Series): string =>
  ((100 * median(one.rounds.map(perCpuSecond))) / median(other.rounds.map(perCpuSecond))).toFixed(0);

export const perSecond = ({ result }: Measurement): number => result.latencies.length / result.elapsed;
export const perCpuSecond = ({ result, cpu }: Measurement): number => result.latencies.length / cpu;

function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN;
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const [low, high] = [sorted[(sorted.length - 1) >> 1], sorted[sorted.length >> 1]];
  return low === undefined || high === undefined ? NaN : (low + high) / 2;
}
