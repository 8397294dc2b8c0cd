/** Rounds of faults under a mixed load, and what has to hold after them. */
import { X509Certificate } from 'node:crypto';
import { ACTIVITIES } from '../mixed-load/activities.ts';
import { reloading } from '../mixed-load/administrators.ts';
import { MixedLoad } from '../mixed-load/load.ts';
import { wrongAfter } from '../mixed-load/verify.ts';
import { kerberosUser, throughDogtag } from './activities.ts';
import { FAULTS } from './faults.ts';
import { Random } from '../random.ts';
import { ChaosSetting } from './setting.ts';
import { pause } from '../until.ts';

export interface ChaosOptions {
  readonly seed: number;
  readonly rounds: number;
  /** These faults alone; absent: all. */
  readonly only?: readonly string[] | undefined;
  /** Called after each round. */
  readonly onRound?: (round: number, fault: string, ms: number) => void;
}

export interface ChaosResult {
  /** What is wrong. */
  readonly wrong: readonly string[];
  readonly faults: ReadonlySet<string>;
  /** Certificates that were answered. */
  readonly certificates: number;
}

/** Certificates that have to be answered after a fault before the next one. */
const RECOVERED = 10;
/** Longest time until the service is whole again, in milliseconds. */
const MAX_WAIT = 300_000;
/** Of the disk, for each round: what a round writes is a fraction of it. */
const MIB = 8;

/** Every fault comes once before one comes again. */
function schedule(random: Random, { rounds, only }: ChaosOptions): string[] {
  const names: string[] = [];
  while (names.length < rounds) names.push(...random.shuffled(only ?? Object.keys(FAULTS)));
  return names.slice(0, rounds);
}

export async function runChaos(options: ChaosOptions): Promise<ChaosResult> {
  const { seed, rounds, onRound = () => undefined } = options;
  const random = new Random(seed);
  const setting = await ChaosSetting.start(128 + rounds * MIB);
  try {
    const activities = [
      ...ACTIVITIES.filter((activity) => activity !== reloading),
      kerberosUser(setting),
      throughDogtag,
    ];
    const load = new MixedLoad(setting.estuary, { faults: true, activities });
    load.start();
    const names = schedule(random, options);
    await recovered(load);
    for (const [round, name] of names.entries()) {
      const begun = performance.now();
      try {
        await FAULTS[name]?.({ setting, load, random });
        await recovered(load);
      } catch (error) {
        load.book.problem(`${name}: ${String(error)}`);
      }
      onRound(round + 1, name, performance.now() - begun);
      if (load.book.problems.length > 0) break;
    }
    if (load.book.problems.length > 0) {
      // The service may be gone for good; what it has stored is another question.
      await load.abandon();
      load.book.problem(`the server said last:\n${lastWords(setting.estuary.server.output())}`);
      return { wrong: load.book.problems, faults: new Set(names), certificates: load.book.certificates.size };
    }
    await load.stop();
    const issued = [...setting.dogtag.state.certificates.values()].map(({ der }) =>
      new X509Certificate(der).serialNumber.toLowerCase(),
    );
    const wrong = await wrongAfter(load, { store: setting.store, issued });
    return { wrong, faults: new Set(names), certificates: load.book.certificates.size };
  } finally {
    await setting.stop();
  }
}

/** The end of what a server wrote: warnings and worse, and what is no line of its log. */
function lastWords(output: string): string {
  const worse = output.split('\n').filter((line) => !/^\{"level":[123]0,/.test(line));
  return worse.slice(-20).join('\n');
}

/** All parts are well, and devices get certificates again. */
async function recovered(load: MixedLoad): Promise<void> {
  const deadline = performance.now() + MAX_WAIT;
  const before = load.book.certificates.size;
  let state = '';
  while (performance.now() < deadline) {
    state = await load.estuary.admin('GET', '/readyz').then(
      ({ json }) => JSON.stringify(json),
      (error: unknown) => String(error),
    );
    if (state.includes('"status":"ok"') && load.book.certificates.size >= before + RECOVERED) return;
    await pause(200);
  }
  load.book.problem(`not whole again: ${state}, ${load.book.certificates.size - before} certificates`);
}
