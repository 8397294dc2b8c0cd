/** One fault costs one thing: labels with faults next to a label without one, at the start, at a reload and in between. */
import { execFileSync } from 'node:child_process';
import { createPrivateKey, createPublicKey } from 'node:crypto';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TomlTable } from 'smol-toml';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { encodePem } from '../../src/pki/der/pem.ts';
import { OID } from '../../src/pki/der/oids.ts';
import { dns, extKeyUsage, makeCa, makeClient, subjectAltName } from '../support/certificates.ts';
import { runAny } from '../support/command.ts';
import { makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { caSection, Estuary, section } from '../support/estuary.ts';
import { openTls } from '../support/https.ts';
import { NODE, SERVER } from '../support/server-process.ts';

let estuary: Estuary;
const key = makeKey();
const file = (name: string): string => join(estuary.dir, name);

/** Labels with one fault each. */
const FAULTY = ['expired', 'keyless', 'locked'] as const;

async function withFaults(config: TomlTable, dir: string): Promise<void> {
  const pem = (name: string, der: Buffer): void => writeFileSync(join(dir, name), encodePem('CERTIFICATE', der));
  const expired = await makeCa('CN=Expired', { notAfter: Date.UTC(2026, 1, 1) });
  pem('ca/expired.pem', expired.der);
  writeFileSync(join(dir, 'ca/expired.key'), expired.keys.privateKey.export({ type: 'pkcs8', format: 'pem' }));
  const locked = await makeCa('CN=Locked');
  pem('ca/locked.pem', locked.der);
  const encrypted = { type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'the right one' } as const;
  writeFileSync(join(dir, 'ca/locked.key'), locked.keys.privateKey.export(encrypted));
  writeFileSync(join(dir, 'ca/locked.pass'), 'a wrong one\n');
  pem('ca/keyless.pem', (await makeCa('CN=Keyless')).der);
  pem('ca/edge.pem', (await makeCa('CN=Edge')).der);
  const common = (label: string) => ({ label, certificate: `ca/${label}.pem`, chain: `ca/${label}.pem` });
  const inFile = (label: string, more = {}) => ({
    ...common(label),
    driver: 'file',
    file: { private_key: `ca/${label}.key`, ...more },
  });
  config['ca'] = [
    ...(Array.isArray(config['ca']) ? config['ca'] : []),
    inFile('expired'),
    inFile('keyless'),
    inFile('locked', { password_file: 'ca/locked.pass' }),
    {
      label: 'edge',
      driver: 'est',
      upstream_trust_anchors: 'ca/edge.pem',
      est: {
        url: 'https://127.0.0.1:1/.well-known/est',
        tls_trust_anchors: 'ca/edge.pem',
        client_certificate: 'admin/client.pem',
        client_key: 'admin/client.key',
      },
    },
  ];
}

const enroll = async (label: string): Promise<number> => {
  const otp = await estuary.otp();
  const path = `${label}/simpleenroll`;
  const { status } = await estuary.enroll(onTheWire(simpleCsr(key, 'device-1')), { password: otp.token, path });
  const { uses } = (await estuary.admin('GET', `/admin/otp/${otp.id}`)).json;
  expect(uses, 'uses of the token').toBe(status === 200 ? 1 : 0);
  return status;
};

beforeAll(async () => {
  // The configuration is changed between two starts, because making certificates takes a while.
  estuary = await Estuary.start();
  await estuary.server.stop();
  const made: { config?: TomlTable } = {};
  estuary.reconfigure((config) => void (made.config = config));
  const { config = {} } = made;
  await withFaults(config, estuary.dir);
  estuary.reconfigure((now) => void Object.assign(now, { ca: config['ca'] }));
  await estuary.restart();
});
afterAll(() => estuary.stop());

describe('after a start next to faults', () => {
  test.each(FAULTY)('"%s" answers 503, uses no token, and its cacerts continue', async (label) => {
    expect(await enroll(label)).toBe(503);
    expect((await estuary.est(`${label}/cacerts`)).status).toBe(200);
    expect((await estuary.admin('GET', `/readyz?ca=${label}`)).status).toBe(503);
    expect((await estuary.admin('GET', `/admin/cas/${label}`)).json['health']).toBe('down');
  });

  test('doctor and the log name each fault', async () => {
    const { code, output } = await runAny(NODE, [SERVER, 'doctor', '--config', file('est.toml')]);
    expect(code).toBe(1);
    for (const label of [...FAULTY, 'edge']) expect(output).toMatch(new RegExp(`^failed +ca: ${label}: `, 'm'));
    const log = await estuary.outputSoFar();
    for (const name of ['ca[expired].certificate', 'ca[keyless].file.private_key', 'ca[locked].file.private_key'])
      expect(log).toContain(name);
  });
});

test('--check ends with 2 for files, and with 0 for what has expired', async () => {
  const check = async (label: string) => {
    const config = file(`only-${label}.toml`);
    const text = readFileSync(file('est.toml'), 'utf8');
    const [before = '', ...tables] = text.split(/^(?=\[\[ca\]\])/m);
    const kept = tables.filter((table) => ['devices', label].some((wanted) => table.includes(`label = "${wanted}"`)));
    writeFileSync(config, before + kept.join(''));
    return runAny(NODE, [SERVER, '--config', config, '--check']);
  };
  expect(await check('expired')).toMatchObject({ code: 0, output: expect.stringContaining('expired on') as string });
  for (const label of ['keyless', 'locked']) expect((await check(label)).code, label).toBe(2);
});

test('a passphrase that is corrected counts at the next reload', async () => {
  writeFileSync(file('ca/locked.pass'), 'the right one\n');
  expect((await estuary.admin('POST', '/admin/reload')).status).toBe(200);
  expect(await enroll('locked')).toBe(200);
});

test('a CA keeps its certificate and key at a reload with a key that does not match', async () => {
  const names = ['ca/issuing.pem', 'ca/issuing.key'].map(file);
  const before = names.map((name) => readFileSync(name));
  execFileSync('openssl', [
    'genpkey',
    '-algorithm',
    'EC',
    '-pkeyopt',
    'ec_paramgen_curve:P-256',
    '-out',
    names[1] ?? '',
  ]);
  expect((await estuary.admin('POST', '/admin/reload')).status).toBe(200);
  expect(await enroll('devices')).toBe(200);
  rmSync(names[0] ?? '');
  expect((await estuary.admin('POST', '/admin/reload')).status).toBe(200);
  expect(await enroll('devices')).toBe(200);
  for (const [index, name] of names.entries()) writeFileSync(name, before[index] ?? '');
});

test('listeners serve a TLS certificate that has expired, after a reload and after a start', async () => {
  const keysIn = (name: string) => {
    const privateKey = createPrivateKey(readFileSync(file(name)));
    return { privateKey, publicKey: createPublicKey(privateKey) };
  };
  const subject = 'CN=Quickstart Root CA,O=Estuary quickstart';
  const root = { subject, kind: 'ec:P-256' as const, keys: keysIn('ca/root.key'), der: Buffer.of() };
  const server = await makeClient('CN=localhost', root, {
    keys: keysIn('tls/server.key'),
    notAfter: Date.UTC(2026, 1, 1),
    extensions: [extKeyUsage(OID.serverAuth), subjectAltName(dns('localhost'))],
  });
  const before = readFileSync(file('tls/server.pem'));
  writeFileSync(file('tls/server.pem'), encodePem('CERTIFICATE', server.der));
  expect((await estuary.admin('POST', '/admin/reload')).status).toBe(200);
  const served = () =>
    Promise.all(
      (['est', 'admin'] as const).map(async (listener) => {
        const socket = await openTls(
          estuary.server.port(listener),
          { ca: estuary.root },
          { rejectUnauthorized: false },
        );
        const { raw } = socket.getPeerCertificate();
        socket.destroy();
        return raw.equals(server.der);
      }),
    );
  expect(await served()).toEqual([true, true]);
  await estuary.server.stop();
  await estuary.restart();
  expect(await served()).toEqual([true, true]);
  const { output } = await runAny(NODE, [SERVER, 'doctor', '--config', file('est.toml')]);
  expect(output).toMatch(/tls\.certificate: the certificate expired on .*clients that check it do not connect/);
  writeFileSync(file('tls/server.pem'), before);
});

test('exit code 1 for a TLS key that is missing, and 2 for a mistake', async () => {
  await estuary.server.stop();
  const start = () => runAny(NODE, [SERVER, '--config', file('est.toml')]);
  const tlsKey = readFileSync(file('tls/server.key'));
  rmSync(file('tls/server.key'));
  const missing = await start();
  writeFileSync(file('tls/server.key'), tlsKey);
  expect(missing).toMatchObject({ code: 1, output: expect.stringContaining('tls.private_key: cannot read') as string });
  estuary.reconfigure((config) => void (section(caSection(config), 'profile')['validity_days'] = -1));
  expect((await start()).code).toBe(2);
});
