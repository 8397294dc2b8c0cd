/** What `kill -9` may leave at any point of an enrollment. */
import { execFileSync } from 'node:child_process';
import { randomInt, X509Certificate } from 'node:crypto';
import { Agent } from 'node:https';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { certificatesOf, Estuary } from '../support/estuary.ts';
import { NODE, SERVER } from '../support/server-process.ts';
import { storedRows } from '../support/stored-rows.ts';
import { isStoreInPostgres } from '../support/wanted-store.ts';
import { pause, until } from '../support/until.ts';

/** The nightly run sets 100. */
const ROUNDS = Number(process.env['KILL_ROUNDS'] ?? 5);
const CLIENTS = 6;

let estuary: Estuary;

beforeAll(async () => {
  estuary = await Estuary.start();
});
afterAll(() => estuary.stop());

interface Answered {
  readonly name: string;
  readonly serial: string;
}

/**
 * Each client enrolls with single-use tokens, one after the other, until they are used or the server is gone.
 *
 * @param round names the devices
 * @param longest milliseconds within which the server is killed; undefined: it is not
 * @returns how long the enrollments took, in milliseconds
 */
async function load(round: string, answered: Answered[], longest?: number): Promise<number> {
  const tokens = await Promise.all(
    Array.from({ length: CLIENTS * 4 }, async (_, i) => {
      const name = `${round}-${i}`;
      return { name, ...(await estuary.otp({ client_id: name })) };
    }),
  );
  const key = makeKey();
  const start = performance.now();
  const clients = Array.from({ length: CLIENTS }, async (_, client) => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    for (const { name, token } of tokens.slice(client * 4, client * 4 + 4)) {
      const answer = await estuary
        .enroll(onTheWire(simpleCsr(key, name)), { password: token, agent })
        .catch(() => undefined);
      if (answer === undefined) break;
      if (answer.status !== 200) continue;
      const [der] = certificatesOf(answer);
      if (der !== undefined) answered.push({ name, serial: new X509Certificate(der).serialNumber.toLowerCase() });
    }
    agent.destroy();
  });
  if (longest !== undefined) {
    await pause(randomInt(longest));
    estuary.server.signal('SIGKILL');
    await estuary.server.exited;
  }
  await Promise.all(clients);
  return performance.now() - start;
}

test(
  'kill -9 at any point of an enrollment under load: no answered certificate is missing, no single-use token yields two certificates, no reservation stays open',
  { timeout: 1_500_000 },
  async () => {
    const answered: Answered[] = [];
    // What it takes on this machine, by a server that has just started, as each of the others will have.
    const longest = Math.ceil(await load('unharmed', answered));
    const before = answered.length;
    const isEnough = (): boolean => answered.length - before > ROUNDS / 4;
    for (let round = 0; round < ROUNDS || !isEnough(); round++) {
      // Longer where the machine has become slower.
      await load(`r${round}`, answered, longest * (1 + Math.floor(round / ROUNDS)));
      await estuary.restart();
    }

    const stored = await storedRows<{ serial: string; subject: string }>(
      estuary.dir,
      'SELECT serial, subject FROM certificate',
    );
    const serials = new Set(stored.map(({ serial }) => serial));
    expect(answered.filter(({ serial }) => !serials.has(serial))).toEqual([]);
    // Every token belongs to one name, and every name to one token.
    expect(new Set(stored.map(({ subject }) => subject)).size).toBe(stored.length);
    const open = (): Promise<readonly object[]> => storedRows(estuary.dir, 'SELECT request_id FROM reservation');
    // Nodes of one database look every few seconds for what nobody is at work on any more.
    if (isStoreInPostgres()) await until('every reservation is closed', async () => (await open()).length === 0);
    expect(await open()).toEqual([]);
    // A use is taken exactly where there is a certificate.
    const consumed = await storedRows<{ client_id: string }>(estuary.dir, 'SELECT client_id FROM otp WHERE uses = 1');
    expect(consumed.map(({ client_id }) => `CN=${client_id}`).sort()).toEqual(
      stored.map(({ subject }) => subject).sort(),
    );

    const verdict = execFileSync(NODE, [SERVER, 'audit', 'verify', '--config', join(estuary.dir, 'est.toml')]);
    expect(verdict.toString()).toMatch(/\d+ records/);
  },
);
