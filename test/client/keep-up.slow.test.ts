/** How long the daemon waits after a step. */
import { readFileSync, writeFileSync } from 'node:fs';
import { afterAll, expect, test, vi } from 'vitest';
import { loadClientConfig } from '../../src/client/config/load.ts';
import { DISK } from '../../src/client/keep/disk.ts';
import { keepUp, PIN_REJECTED } from '../../src/client/keep-up.ts';
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

test('a PIN that the token rejected is not tried for any certificate, until it changes', async () => {
  const [file, pin] = [folder.file('token.toml'), folder.file('pin')];
  writeFileSync(pin, 'wrong\n');
  const certificate = (name: string): string =>
    `[[certificate]]\nfolder = "${folder.file(name)}"\nsubject = "CN=${name}"\nkey_store = "token"\n`;
  writeFileSync(
    file,
    `[server]\nurl = "https://est.example"\n[token]\nmodule = "/p11.so"\nlabel = "tpm"\npin_file = "${pin}"\n` +
      certificate('one') +
      certificate('two'),
  );
  const stop = new AbortController();
  const logged: string[] = [];
  const tried: string[] = [];
  const log = (_level: string, _certificate: string, message: string): void => void logged.push(message);
  waits.length = 0;
  const isRejected = (): boolean => readFileSync(pin, 'utf8') === 'wrong\n';
  await keepUp(
    loadClientConfig(file),
    {
      disk: DISK,
      env: {},
      // Each look at the clock is a chance to step.
      now: () => {
        if (waits.length > 10) writeFileSync(pin, 'right\n');
        return NOW;
      },
      log,
    },
    () => {
      tried.push(readFileSync(pin, 'utf8').trim());
      if (!isRejected()) stop.abort();
      return Promise.resolve(isRejected() ? PIN_REJECTED : undefined);
    },
    stop.signal,
  );
  expect(tried).toEqual(['wrong', 'right']);
  expect(logged).toEqual([expect.stringMatching(/^the token "tpm" rejected the PIN, which is not tried again: /)]);
});
