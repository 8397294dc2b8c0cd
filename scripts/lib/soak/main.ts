/** `scripts/soak [--minutes N] [--warm-up N] [--docs]`: a mixed load on the built server, its figures, and two plots. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { ROOT } from '../../../test/support/root.ts';
import { svgOf } from '../plot.ts';
import { growth, soak, type Sample, type Soaked } from './soak.ts';

const HELP = `scripts/soak [--minutes 30] [--warm-up 10] [--docs] [--plots FOLDER]

  --minutes N     how long the load lasts
  --warm-up N     minutes after which memory has to be flat, within 10 % (a third of --minutes)
  --plots FOLDER  where the plots go (.cache/soak)
  --docs          writes the figures into docs/internals/performance.md, and the plots into docs/plots

Exit code 1 where anything was answered that should not have been, is not stored, or memory grew.`;

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '30' },
    'warm-up': { type: 'string' },
    plots: { type: 'string', default: join(ROOT, '.cache', 'soak') },
    docs: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

/** Memory may be so much larger in the end than after the warm-up. */
const FLAT = 1.1;
const PAGE = join(ROOT, 'docs/internals/performance.md');
const [BEGIN, END] = ['<!-- figures of scripts/soak --docs -->', '<!-- end of figures -->'];

function minutes(option: 'minutes' | 'warm-up', fallback?: number): number {
  const value = values[option] === undefined ? fallback : Number(values[option]);
  if (value !== undefined && value > 0 && value <= 24 * 60) return value;
  console.error(`--${option}: not a number of minutes`);
  return process.exit(2);
}

const quantile = (sorted: readonly number[], share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;

/** Samples joined to so many seconds each. */
function joined(
  samples: readonly Sample[],
  seconds: number,
): { readonly minute: number; readonly times: readonly number[] }[] {
  const buckets = new Map<number, number[]>();
  for (const sample of samples) {
    const bucket = Math.floor(sample.seconds / seconds);
    buckets.set(bucket, [...(buckets.get(bucket) ?? []), ...sample.times]);
  }
  // The last one is cut short.
  return [...buckets].slice(0, -1).map(([bucket, times]) => ({
    minute: ((bucket + 0.5) * seconds) / 60,
    times: times.sort((a, b) => a - b),
  }));
}

function plots({ samples }: Soaked): Readonly<Record<string, string>> {
  const each = Math.max(2, Math.ceil(samples.length / 120));
  const buckets = joined(samples, each);
  const memory = samples.map(({ seconds, memory: mib }) => [seconds / 60, mib] as const);
  const time = (share: number) => buckets.map(({ minute, times }) => [minute, quantile(times, share)] as const);
  return {
    'soak-memory.svg': svgOf({
      title: 'Soak: memory of all processes of the server',
      x: 'minutes',
      y: 'MiB',
      lines: [{ name: 'resident', points: memory }],
    }),
    'soak-answers.svg': svgOf({
      title: 'Soak: answers a second',
      x: 'minutes',
      y: 'answers a second',
      lines: [
        { name: 'all activities', points: buckets.map(({ minute, times }) => [minute, times.length / each] as const) },
      ],
    }),
    'soak-times.svg': svgOf({
      title: 'Soak: how long answers took',
      x: 'minutes',
      y: 'ms',
      lines: [
        { name: 'p50', points: time(0.5) },
        { name: 'p99', points: time(0.99) },
      ],
    }),
  };
}

function figures({ samples, book, wrong }: Soaked, warmUp: number): string {
  const length = samples.at(-1)?.seconds ?? 0;
  const after = samples.filter(({ seconds }) => seconds >= warmUp).map(({ memory }) => memory);
  const rows = [...book.outcomes].map(([activity, outcomes]) => {
    const texts = [...outcomes].sort().map(([outcome, count]) => `${count} × ${outcome}`);
    return `| ${activity} | ${texts.join(', ')} |`;
  });
  const grown = ((growth(samples, warmUp) - 1) * 100).toFixed(1);
  return [
    `${(length / 60).toFixed(1)} minutes on ${cpus().length} cores, Node ${process.versions.node}, with the load on the same cores: ${book.total} answers, ` +
      `${book.certificates.size} certificates, ${book.revoked.size} revocations; ` +
      `${(((samples.at(-1)?.cpu ?? 0) / Math.max(1, length)) * 100).toFixed(0)} % of a core for the server. ` +
      `Memory after ${(warmUp / 60).toFixed(1)} minutes: ${Math.min(...after).toFixed(0)} to ${Math.max(...after).toFixed(0)} MiB, ` +
      `its last quarter ${grown} % above the first. ${wrong.length === 0 ? 'Nothing was wrong: no unexpected answer, every answered certificate is stored, the audit chain is whole.' : `WRONG: ${wrong.length}`}`,
    '',
    '| activity | answers |',
    '|---|---|',
    ...rows,
  ].join('\n');
}

async function main(): Promise<void> {
  const length = minutes('minutes');
  const warmUp = minutes('warm-up', length / 3) * 60;
  let last = 0;
  const soaked = await soak(length * 60, ({ seconds, memory, times }) => {
    if (seconds - last < 30) return;
    last = seconds;
    console.error(
      `${(seconds / 60).toFixed(1)} min: ${memory.toFixed(0)} MiB, ${times.length} answers in the last second`,
    );
  });
  const folder = values.docs ? join(ROOT, 'docs', 'plots') : values.plots;
  mkdirSync(folder, { recursive: true });
  for (const [name, svg] of Object.entries(plots(soaked))) writeFileSync(join(folder, name), svg);
  const text = figures(soaked, warmUp);
  console.log(text);
  if (values.docs) {
    const page = readFileSync(PAGE, 'utf8');
    const [before = '', rest = ''] = page.split(BEGIN);
    const [, after = ''] = rest.split(END);
    writeFileSync(PAGE, `${before}${BEGIN}\n\n${text}\n\n${END}${after}`);
  }
  for (const problem of soaked.wrong) console.error(`WRONG: ${problem}`);
  if (growth(soaked.samples, warmUp) > FLAT) console.error('WRONG: memory grew by more than 10 % after the warm-up');
  if (soaked.wrong.length > 0 || growth(soaked.samples, warmUp) > FLAT) process.exitCode = 1;
}

if (values.help) console.log(HELP);
else await main();
