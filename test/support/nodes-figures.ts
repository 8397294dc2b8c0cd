/** What the rounds of the chaos of several nodes came to: a line of JSON each, where `CHAOS_REPORT` names a file, and their sum. */
import { appendFileSync } from 'node:fs';

export interface RoundFigures {
  readonly seed: number;
  readonly round: number;
  readonly fault: string;
  readonly certificates: number;
  /** Answers 503, and requests without an answer. */
  readonly refused: number;
  readonly unanswered: number;
  /** The longest time in which nobody was given a certificate, ms. */
  readonly longestPause: number;
  /** From the end of the fault until every node said that it takes requests, ms. */
  readonly recovery: number;
}

const REPORT = process.env['CHAOS_REPORT'];

export function report(figures: RoundFigures): void {
  if (REPORT !== undefined) appendFileSync(REPORT, `${JSON.stringify(figures)}\n`);
}

/** A table of all rounds, a line for each fault. */
export function summary(rounds: readonly RoundFigures[]): string {
  const faults = [...new Set(rounds.map(({ fault }) => fault))].sort();
  const sum = (values: readonly number[]): number => values.reduce((all, value) => all + value, 0);
  const seconds = (values: readonly number[]): string => (Math.max(0, ...values) / 1000).toFixed(1);
  const line = (name: string, some: readonly RoundFigures[]): string =>
    `| ${[
      name,
      some.length,
      sum(some.map(({ certificates }) => certificates)),
      sum(some.map(({ refused }) => refused)),
      sum(some.map(({ unanswered }) => unanswered)),
      seconds(some.map(({ longestPause }) => longestPause)),
      seconds(some.map(({ recovery }) => recovery)),
    ].join(' | ')} |`;
  return [
    '| fault | rounds | certificates | 503 | no answer | longest pause, s | longest recovery, s |',
    '|---|--:|--:|--:|--:|--:|--:|',
    ...faults.map((name) =>
      line(
        name,
        rounds.filter(({ fault }) => fault === name),
      ),
    ),
    line('all', rounds),
  ].join('\n');
}
