/** What a reload keeps, and what it creates. */
import { readFileSync, writeFileSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse, stringify, type TomlTable } from 'smol-toml';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { Pkcs11Signer } from '../../src/ca/pkcs11/pkcs11-signer.ts';
import { createRouter, backendOf, type CasInForce } from '../../src/ca/create-router.ts';
import { loadConfigOnly } from '../../src/config/load.ts';
import { readMaterial } from '../../src/config/material/load-material.ts';
import { createLogger } from '../../src/log.ts';
import { FairLimiter } from '../../src/process/fair-limiter.ts';
import { caSection, section } from '../support/estuary.ts';
import { makeQuickstart } from '../support/quickstart.ts';
import { rollRoot } from '../support/rollover.ts';
import { removeFolder } from '../support/folders.ts';

let dir: string;
let made: string;
beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'estuary-router-'));
  await makeQuickstart(dir);
  rollRoot(dir);
  made = readFileSync(join(dir, 'est.toml'), 'utf8');
  // A reload opens a token anew that is not open.
  vi.spyOn(Pkcs11Signer.prototype, 'isOpen', 'get').mockReturnValue(true);
});
afterAll(() => {
  vi.restoreAllMocks();
  removeFolder(dir);
});

const context = {
  now: Date.now,
  env: process.env,
  log: createLogger('silent'),
  makeMutex: (_name: string, queueLimit: number) => new FairLimiter({ concurrency: 1, queue: queueLimit }),
  store: {
    getCertificates: () => Promise.resolve([]),
    hasOtherLabels: () => Promise.resolve(false),
    recallIntermediates: () => Promise.resolve([]),
    rememberIntermediates: () => Promise.resolve(),
    getAcmeAccount: () => Promise.resolve(undefined),
    putAcmeAccount: () => Promise.resolve(),
  },
};

/** `devices` is in a token, `lab` behind Dogtag; neither is started. */
async function cas(change: (devices: TomlTable, lab: TomlTable) => void, before?: CasInForce): Promise<CasInForce> {
  const toml = parse(made);
  const [devices, lab] = [caSection(toml, 0), caSection(toml, 1)];
  for (const table of [devices, lab]) delete table['file'];
  const token = { module: join(dir, 'est.toml'), token_label: 'est', key_label: 'ca', pin_file: 'admin/token' };
  Object.assign(devices, { driver: 'pkcs11', pkcs11: token });
  const agent = { client_certificate: 'admin/client.pem', client_key: 'admin/client.key' };
  const dogtag = { urls: ['https://127.0.0.1:1'], trust_anchors: 'ca/root.pem', profile: 'caServerCert', ...agent };
  Object.assign(lab, { driver: 'dogtag', dogtag });
  delete lab['certificate'];
  delete lab['chain'];
  change(devices, lab);
  writeFileSync(join(dir, 'est.toml'), stringify(toml));
  const { config } = await loadConfigOnly(join(dir, 'est.toml'), {});
  const material = await readMaterial(config);
  return { router: createRouter(config, material, context, before), material };
}

const footings = ({ router }: CasInForce): object[] => router.issuers.map(({ driver }) => backendOf(driver));

test.each<[string, (devices: TomlTable, lab: TomlTable) => void, boolean[]]>([
  ['nothing', () => undefined, [true, true]],
  ['the rules of labels', (...tables) => tables.forEach((table) => (table['approval'] = 'manual')), [true, true]],
  [
    'the profile',
    (...tables) => tables.forEach((table) => (section(table, 'profile')['validity_days'] = 3)),
    [true, false],
  ],
  ['the chain', (devices) => (devices['chain'] = 'ca/rollover.pem'), [true, true]],
  ['the token', (devices) => (section(devices, 'pkcs11')['max_sessions'] = 2), [false, true]],
  ['the PIN', (devices) => (section(devices, 'pkcs11')['pin_file'] = 'admin/client.key'), [false, true]],
  ['the replicas', (_, lab) => (section(lab, 'dogtag')['urls'] = ['https://127.0.0.1:2']), [true, false]],
  ['the anchors of Dogtag', (_, lab) => (section(lab, 'dogtag')['trust_anchors'] = 'admin/ca.pem'), [true, false]],
])('a change of %s: what the CAs stand on', async (_, change, kept) => {
  const before = await cas(() => undefined);
  const after = await cas(change, before);
  const known = footings(before);
  expect(footings(after).map((backend) => known.includes(backend))).toEqual(kept);
});
