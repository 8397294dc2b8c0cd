/** A fuzzer for tests: with a watchdog, a TLS server to speak to, and a list of what it finds. */
import { afterAll, beforeAll } from 'vitest';
import { temporaryFolder } from '../support/openssl.ts';
import { Coverage } from './coverage.ts';
import { Fuzzer, type Finding } from './fuzzer.ts';
import type { Target } from './target.ts';
import { TlsProbe } from './tls-probe.ts';
import { Watchdog } from './watchdog.ts';

export interface Fuzzing {
  readonly of: (target: Target, findings: Finding[], seconds?: number) => Fuzzer;
  /** The TLS server, once the tests have begun. */
  readonly probe: () => TlsProbe;
}

/** Called once by a test file; closes what it opens at the end of the file. */
export function fuzzing(): Fuzzing {
  const folder = temporaryFolder();
  const watchdog = new Watchdog(folder.file('hang'));
  const coverage = new Coverage();
  let probe: TlsProbe;
  beforeAll(async () => {
    probe = await TlsProbe.open();
  });
  afterAll(async () => {
    await probe.close();
    await watchdog.stop();
    folder.remove();
  });
  const of: Fuzzing['of'] = (target, findings, seconds = 0) =>
    new Fuzzer({
      target,
      seed: 1,
      seconds,
      coverage,
      watchdog,
      probe,
      corpus: [],
      onFinding: (finding) => findings.push(finding),
      onReached: () => undefined,
    });
  return { of, probe: () => probe };
}
