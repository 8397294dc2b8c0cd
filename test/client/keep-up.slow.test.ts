/** How long the daemon waits after a step. */
import { writeFileSync } from 'node:fs';
import { afterAll, expect, test, vi } from 'vitest';
import { loadClientConfig } from '../../src/client/config/load.ts';
import { DISK } from '../../src/client/keep/disk.ts';
import { keepUp } from '../../src/client/keep-up.ts';
import { Schedule } from '../../src/client/schedule.ts';
import { temporaryFolder } from '../support/openssl.ts';

const waits = vi.hoisted((): number[] => []);
vi.mock('node:timers/promises', () => ({
  setTimeout: (milliseconds: number) => {
    waits.push(milliseconds);
    return Promise.resolve();
  },
}));

const NOW = Date.now();
const folder = temporaryFolder();
afterAll(() => folder.remove());

test('after a step that did something, the next one that is due comes at once; after another, in a minute', async () => {
  const file = folder.file('client.toml');
  writeFileSync(
    file,
    `[server]\nurl = "https://est.example"\n[[certificate]]\nfolder = "${folder.file('web')}"\nsubject = "CN=web"\n`,
  );
  const config = loadClientConfig(file);
  const context = { disk: DISK, env: {}, now: () => NOW, log: () => undefined };
  const stop = new AbortController();
  let steps = 0;
  await keepUp(
    config,
    context,
    (certificate) => {
      steps += 1;
      // Such as a renewal information that says that the certificate is due.
      const { folder: kept } = new Schedule(certificate, context);
      if (steps === 1) kept.saveState({ ...kept.state(), failures: 1 });
      if (steps === 3) stop.abort();
      return Promise.resolve();
    },
    stop.signal,
  );
  expect(waits.slice(0, 2)).toEqual([1000, 60_000]);
});
