/** A generated private key is never written to the store, the log or the disk. */
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { buildCsr, commonName, makeKey, onTheWire, simpleCsr, type KeyKind } from '../support/csr.ts';
import { caSection, Estuary, section, type ClientIdentity } from '../support/estuary.ts';
import { temporaryFolder } from '../support/openssl.ts';
import { readPkcs8, readServerKey } from '../support/server-key.ts';
import { storedElsewhere } from '../support/stored-rows.ts';

const KEYS = 100;
/** Asked for at a time; one in ten is RSA, which takes its time. */
const BATCH: readonly KeyKind[] = [
  ...(['P-256', 'ed25519', 'P-384', 'P-256', 'ed25519', 'P-384', 'P-256', 'ed25519', 'P-256'] as const),
  'rsa2048',
];

const temporary = temporaryFolder();
let estuary: Estuary;
beforeAll(async () => {
  mkdirSync(temporary.path, { recursive: true });
  estuary = await Estuary.start({
    env: { TMPDIR: temporary.path },
    // one device asks for the keys of all
    configure: (config) => {
      Object.assign(section(caSection(config, 0), 'profile'), { mtls_subject: 'any' });
      section(config, 'serverkeygen')['encryption'] = 'optional';
    },
  });
});
afterAll(async () => {
  await estuary.stop();
  temporary.remove();
});

/** The private value of a JWK: a scalar, or an RSA exponent and its two primes. */
function privateValues(pkcs8: Buffer): Buffer[] {
  const { d, p, q } = readPkcs8(pkcs8).export({ format: 'jwk' });
  return [d, p, q].flatMap((value) => (typeof value === 'string' ? [Buffer.from(value, 'base64url')] : []));
}

/** The octets, their hex, and what every base64 text that has them inside contains, whatever stands before. */
function spellings(value: Buffer): Buffer[] {
  const base64 = [0, 1, 2].map((shift) => {
    const text = Buffer.concat([Buffer.alloc(shift), value])
      .toString('base64')
      .replace(/=+$/, '');
    return text.slice(4, -4);
  });
  return [value, ...[value.toString('hex'), value.toString('hex').toUpperCase(), ...base64].map((s) => Buffer.from(s))];
}

function everything(folder: string): Buffer[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name)));
}

/** Other clients that enroll and fetch the CA certificates all the while; `stop` tells how often they did. */
function startLoad(client: ClientIdentity): { stop: () => Promise<number> } {
  const body = onTheWire(simpleCsr(makeKey(), 'load'));
  let stopped = false;
  const worker = async (): Promise<number> => {
    let rounds = 0;
    while (!stopped) {
      expect((await estuary.enroll(body, { client })).status).toBe(200);
      expect((await estuary.est('cacerts')).status).toBe(200);
      rounds++;
    }
    return rounds;
  };
  const workers = Promise.all([worker(), worker()]);
  return {
    stop: async () => {
      stopped = true;
      const [one, other] = await workers;
      return Math.min(one, other);
    },
  };
}

test(`none of ${KEYS} keys, generated under load, is in the store, the WAL, the log, the audit file or the temporary folder`, async () => {
  const client = await estuary.enrolled(makeKey());
  const csrs = BATCH.map((kind) => makeKey(kind));
  const answers = [];
  const load = startLoad(client);
  try {
    for (let i = 0; i < KEYS; i += BATCH.length) {
      const batch = csrs.map((key, n) => {
        const body = onTheWire(buildCsr(key, { subject: commonName(`secret-${i + n}`) }));
        return estuary.enroll(body, { path: 'serverkeygen', client });
      });
      answers.push(...(await Promise.all(batch)).map(readServerKey));
    }
  } finally {
    expect(await load.stop()).toBeGreaterThan(0);
  }
  const search = async (): Promise<Buffer> => {
    const files = [...everything(estuary.dir), ...everything(temporary.path)];
    return Buffer.concat([...files, await storedElsewhere(estuary.dir), log()]);
  };
  const log = (): Buffer => Buffer.from(estuary.server.output());
  await estuary.outputSoFar();
  const running = await search();
  await estuary.server.stop();
  const stopped = await search();
  await estuary.restart();

  // the search finds what is there: every certificate
  expect(answers).toHaveLength(KEYS);
  for (const { certificate } of answers) expect(stopped.includes(certificate.raw)).toBe(true);
  const found = answers.filter(({ key }) =>
    privateValues(key)
      .flatMap(spellings)
      .some((spelling) => running.includes(spelling) || stopped.includes(spelling)),
  );
  expect(found).toEqual([]);
});
