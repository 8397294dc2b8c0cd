/** One service per SQLite store, and what a start finds after the service was killed. */
import { hash } from 'node:crypto';
import { copyFileSync, linkSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runAny, type CommandResult } from '../support/command.ts';
import { makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { Estuary } from '../support/estuary.ts';
import { requires } from '../support/requires.ts';
import { until } from '../support/until.ts';
import { NODE, SERVER } from '../support/server-process.ts';

const wire = onTheWire(simpleCsr(makeKey()));
let estuary: Estuary;

beforeAll(async () => {
  estuary = await Estuary.start({ built: true });
});
afterAll(() => estuary.stop());

const command = (...args: string[]): Promise<CommandResult> =>
  runAny(NODE, [SERVER, '--config', join(estuary.dir, 'est.toml'), ...args]);

/** Digests of what a start would write to. The database's `-shm` is where its readers, too, leave their marks. */
function storeFiles(): Record<string, string> {
  const data = join(estuary.dir, 'data');
  const entries = readdirSync(data, { withFileTypes: true }).filter((entry) => entry.isFile());
  const names = entries.map(({ name }) => name).filter((name) => !name.endsWith('-shm'));
  return Object.fromEntries(names.map((name) => [name, hash('sha256', readFileSync(join(data, name)))]));
}

describe('a second service on a store', () => {
  test.skipIf(!requires('storeInFile'))(
    'is refused with exit code 1 and the host and pid of the first, and changes nothing',
    async () => {
      const { token } = await estuary.otp({ max_uses: 2 });
      expect((await estuary.enroll(wire, { password: token })).status).toBe(200);
      // The first service has work in the background, which would change its files too.
      estuary.server.signal('SIGSTOP');
      const before = storeFiles();
      const { code, output } = await command();
      const after = storeFiles();
      estuary.server.signal('SIGCONT');
      expect(output).toBe(
        'estuary: could not start: the store is in use by another service: ' +
          `host ${hostname()}, pid ${estuary.server.pid} has ${join(estuary.dir, 'data/est.db')}\n`,
      );
      expect(code).toBe(1);
      expect(after).toEqual(before);
      expect((await estuary.enroll(wire, { password: token })).status).toBe(200);
    },
  );

  test.skipIf(!requires('storeInFile'))('a hard link to its database is refused, and the first goes on', async () => {
    const store = join(estuary.dir, 'data/est.db');
    linkSync(store, join(estuary.dir, 'data/link.db'));
    const { code, output } = await command();
    const { token } = await estuary.otp();
    expect((await estuary.enroll(wire, { password: token })).status).toBe(200);
    rmSync(join(estuary.dir, 'data/link.db'));
    expect([code, output]).toEqual([1, expect.stringContaining(`${store} has 2 hard links; remove the others`)]);
  });

  test('--check and `audit verify` work while the service runs', async () => {
    expect((await command('--check')).code).toBe(0);
    const verified = await command('audit', 'verify');
    expect(verified.stdout.toString()).toMatch(/^the audit log is intact/);
    expect(verified.code).toBe(0);
  });

  test('starts at once after the first was killed', async () => {
    estuary.server.signal('SIGKILL');
    await estuary.server.exited;
    await estuary.restart();
    expect((await estuary.est('cacerts')).status).toBe(200);
  });
});

describe.skipIf(!requires('storeInFile'))('a file of the store that changes under the service', () => {
  test.each([
    ['removed or moved', 'est.db', false],
    ['replaced', 'est.db', true],
    ['removed or moved', 'est.db-wal', false],
    ['replaced', 'est.db-wal', true],
  ])(
    '%s: %s: the next answers are 503, the log names it, and put back it works again',
    async (what, name, isReplaced) => {
      const file = join(estuary.dir, 'data', name);
      const { token } = await estuary.otp({ max_uses: 3 });
      expect((await estuary.enroll(wire, { password: token })).status).toBe(200);
      renameSync(file, `${file}.away`);
      if (isReplaced) copyFileSync(`${file}.away`, file);
      expect((await estuary.enroll(wire, { password: token })).status).toBe(503);
      // Its state is at most a second old.
      await until('the server is not ready', async () => (await estuary.admin('GET', '/readyz')).status === 503);
      await until('the log names the file', () =>
        estuary.server.output().includes(`${file} was ${what} while the server runs`),
      );
      renameSync(`${file}.away`, file);
      await until('the server is ready', async () => (await estuary.admin('GET', '/readyz')).status === 200);
      expect((await estuary.enroll(wire, { password: token })).status).toBe(200);
    },
  );
});
