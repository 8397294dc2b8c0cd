/** A fleet behind a proxy that loses responses. */
import { X509Certificate } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { random } from '../fuzz/mutation.ts';
import { makeKey, onTheWire, simpleCsr, type TestKey } from '../support/csr.ts';
import { certificatesOf, Estuary, section } from '../support/estuary.ts';
import { call } from '../support/https.ts';
import { storedRows } from '../support/stored-rows.ts';
import { TcpRelay } from '../support/tcp-relay.ts';

const DEVICES = 60;
/** At a time. */
const CROWD = 10;
const MOST_AT_ONCE = 10;
const MOST_ROUNDS = 40;
const SEED = 20261122;

let estuary: Estuary;
let relay: TcpRelay;
const dice = random(SEED);

beforeAll(async () => {
  estuary = await Estuary.start({
    configure: (config) => {
      const otp = section(config, 'otp');
      otp['retry_window'] = 3600;
      // One failure would be too many.
      otp['max_failures'] = 1;
    },
  });
  relay = await TcpRelay.start(estuary.server.port('est'));
  // A handshake is some 2,000 octets from the server, with its tickets 2,600, an answer 1,500.
  relay.allow(() => (dice(10) < 3 ? Infinity : 1500 + dice(3000)));
});
afterAll(async () => {
  await relay.die();
  await estuary.stop();
});

/** The serial number of a 200, the status of another answer; undefined where it was lost, or says to ask again (503: the first is still under way). */
async function ask(name: string, key: TestKey, token: string): Promise<string | undefined> {
  try {
    const answer = await call({
      port: relay.port,
      path: '/.well-known/est/simpleenroll',
      method: 'POST',
      headers: {
        Authorization: `Basic ${Buffer.from(`${name}:${token}`).toString('base64')}`,
        'Content-Type': 'application/pkcs10',
      },
      body: onTheWire(simpleCsr(key, name)),
      tls: { ca: estuary.root },
    });
    if (answer.status === 503) return undefined;
    const [der] = answer.status === 200 ? certificatesOf(answer) : [];
    return der === undefined ? `${answer.status} ${answer.text}` : new X509Certificate(der).serialNumber.toLowerCase();
  } catch {
    return undefined;
  }
}

interface Fared {
  readonly name: string;
  readonly answers: readonly string[];
  readonly asked: number;
}

/** Asks, up to ten times at once, until it has an answer. */
async function device(name: string, key: TestKey): Promise<Fared> {
  const { token } = await estuary.otp({ client_id: name });
  let asked = 0;
  for (let round = 0; round < MOST_ROUNDS; round++) {
    const width = 1 + dice(MOST_AT_ONCE);
    asked += width;
    const answers = await Promise.all(Array.from({ length: width }, () => ask(name, key, token)));
    const got = answers.filter((answer) => answer !== undefined);
    if (got.length > 0) return { name, answers: got, asked };
  }
  return { name, answers: [], asked };
}

test(
  `${DEVICES} devices repeat each request up to ${MOST_AT_ONCE} times at once through a proxy that loses answers: one certificate each, no lockout`,
  { timeout: 600_000 },
  async () => {
    const key = makeKey();
    const names = Array.from({ length: DEVICES }, (_, i) => `device-${i}`);
    const fared: Fared[] = [];
    const left = names[Symbol.iterator]();
    await Promise.all(
      Array.from({ length: CROWD }, async () => {
        for (const name of left) fared.push(await device(name, key));
      }),
    );

    // Every device ends with its certificate, and all its answers hold the same one.
    expect(fared.filter(({ answers }) => new Set(answers).size !== 1)).toEqual([]);
    expect(fared.reduce((sum, { asked }) => sum + asked, 0)).toBeGreaterThan(3 * DEVICES);
    const serials = new Map(fared.map(({ name, answers: [serial] }) => [name, serial]));

    const stored = await storedRows<{ name: string; serial: string }>(
      estuary.dir,
      'SELECT substr(subject, 4) AS name, serial FROM certificate ORDER BY name',
    );
    expect(stored).toEqual([...names].sort().map((name) => ({ name, serial: serials.get(name) })));
    expect(await storedRows(estuary.dir, 'SELECT id FROM otp WHERE uses <> 1')).toEqual([]);
    for (const table of ['reservation', 'failure', 'lockout'])
      expect(await storedRows(estuary.dir, `SELECT * FROM ${table}`)).toEqual([]);
  },
);
