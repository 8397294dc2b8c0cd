/** A mixed load on one server, with samples of its memory and its responses every second. */
import { setTimeout as sleep } from 'node:timers/promises';
import { configureMixedLoad } from '../../../test/support/mixed-load/configure.ts';
import type { Book } from '../../../test/support/mixed-load/book.ts';
import { MixedLoad } from '../../../test/support/mixed-load/load.ts';
import { wrongAfter } from '../../../test/support/mixed-load/verify.ts';
import { Estuary } from '../../../test/support/estuary.ts';
import { cpuSeconds, residentMiB } from '../bench/measure.ts';

export interface Sample {
  /** Since the load began. */
  readonly seconds: number;
  /** MiB of all processes of the server together; what they share counts for each. */
  readonly memory: number;
  /** Seconds of CPU that these have used so far. */
  readonly cpu: number;
  /** Answers since the last sample, and how long they took, in ascending order of milliseconds. */
  readonly times: readonly number[];
}

export interface Soaked {
  readonly samples: readonly Sample[];
  readonly book: Book;
  /** What is wrong: unexpected answers, certificates that are not stored, a chain that is broken. */
  readonly wrong: readonly string[];
}

/** @param onSample is told once a second */
export async function soak(seconds: number, onSample: (sample: Sample) => void = () => undefined): Promise<Soaked> {
  const estuary = await Estuary.start({
    listeners: ['est', 'admin', 'publication'],
    configure: configureMixedLoad,
    env: { NODE_ENV: 'production' },
  });
  try {
    const load = new MixedLoad(estuary);
    const samples: Sample[] = [];
    const begun = performance.now();
    load.start();
    while (performance.now() - begun < seconds * 1000) {
      await sleep(1000);
      const { pid } = estuary.server;
      const sample = {
        seconds: (performance.now() - begun) / 1000,
        memory: residentMiB(pid),
        cpu: cpuSeconds(pid),
        times: load.book.takeTimes().sort((a, b) => a - b),
      };
      samples.push(sample);
      onSample(sample);
    }
    await load.stop();
    return { samples, book: load.book, wrong: await wrongAfter(load) };
  } finally {
    await estuary.stop();
  }
}

/**
 * What the memory grew by after the warm-up: the mean of the last quarter of what follows it, by that of the first quarter.
 *
 * @param warmUp seconds
 * @returns 1 for memory that is flat
 */
export function growth(samples: readonly Sample[], warmUp: number): number {
  const after = samples.filter(({ seconds }) => seconds >= warmUp).map(({ memory }) => memory);
  const quarter = Math.max(1, Math.floor(after.length / 4));
  const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
  return mean(after.slice(-quarter)) / mean(after.slice(0, quarter));
}
