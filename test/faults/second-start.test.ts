/** One service per SQLite store, and what a start finds after the service was killed. */
import { hash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runAny, type CommandResult } from '../support/command.ts';
import { makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { Estuary } from '../support/estuary.ts';
import { requires } from '../support/requires.ts';
import { NODE, SERVER } from '../support/server-process.ts';
import { storedRows } from '../support/stored-rows.ts';
import { pause, until } from '../support/until.ts';

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

const UNINDEXED = `SELECT 1 FROM certificate WHERE position > (SELECT upto FROM search_progress WHERE list = 'certificate')
  UNION SELECT 1 FROM audit WHERE seq > (SELECT upto FROM search_progress WHERE list = 'audit')`;

/** The files once the first service has nothing left to write: it indexes new rows every two seconds. */
async function settledFiles(): Promise<Record<string, string>> {
  await until('all rows are indexed', async () => (await storedRows(estuary.dir, UNINDEXED)).length === 0);
  return until('nothing is written', async () => {
    const before = JSON.stringify(storeFiles());
    await pause(500);
    const now = storeFiles();
    return JSON.stringify(now) === before && now;
  });
}

describe('a second service on a store', () => {
  test.skipIf(!requires('storeInFile'))(
    'is refused with exit code 1 and the host and pid of the first, and changes nothing',
    async () => {
      const { token } = await estuary.otp({ max_uses: 2 });
      expect((await estuary.enroll(wire, { password: token })).status).toBe(200);
      const before = await settledFiles();
      const { code, output } = await command();
      expect(output).toBe(
        'estuary: could not start: the store is in use by another service: ' +
          `host ${hostname()}, pid ${estuary.server.pid} has ${join(estuary.dir, 'data/est.db')}\n`,
      );
      expect(code).toBe(1);
      expect(storeFiles()).toEqual(before);
      expect((await estuary.enroll(wire, { password: token })).status).toBe(200);
    },
  );

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
