/** A change of the configuration, a pass, and the retirement of a CA's key, for holders that really enrolled, renewed and got cacerts. */
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { X509Certificate } from 'node:crypto';
import { join } from 'node:path';
import { parse, stringify, type TomlTable } from 'smol-toml';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { FleetReport } from '../../src/main/fleet-check/fleet-check.ts';
import { makeKey, onTheWire, simpleCsr, type KeyKind } from '../support/csr.ts';
import { caSection, certificatePem, type ClientIdentity, Estuary, section } from '../support/estuary.ts';
import { estuary as command } from '../support/local-command.ts';
import { rollIssuing } from '../support/rollover.ts';

let estuary: Estuary;
const file = (name: string) => join(estuary.dir, name);
const serialOf = ({ cert }: ClientIdentity): string => new X509Certificate(cert).serialNumber.toLowerCase();
const held = new Map<string, ClientIdentity>();
const heldBy = (name: string): ClientIdentity => held.get(name) ?? expect.fail(name);

async function enroll(name: string, kind: KeyKind = 'P-256') {
  const key = makeKey(kind);
  const { token } = await estuary.otp();
  const options = { path: 'devices/simpleenroll', password: token };
  return keep(name, await estuary.enroll(onTheWire(simpleCsr(key, name)), options), key.pem);
}
async function renew(name: string) {
  const key = makeKey();
  const options = { path: 'devices/simplereenroll', client: heldBy(name) };
  return keep(name, await estuary.enroll(onTheWire(simpleCsr(key, name)), options), key.pem);
}
function keep(name: string, answer: Awaited<ReturnType<Estuary['enroll']>>, key: string): ClientIdentity {
  expect(answer.status, answer.text).toBe(200);
  const identity = { cert: certificatePem(answer), key };
  held.set(name, identity);
  return identity;
}
async function use(client: ClientIdentity) {
  expect((await estuary.est('devices/cacerts', { client })).status).toBe(200);
}

const check = (...args: string[]) => command(['check', '--fleet', ...args], { env: process.env });
async function report(against = true): Promise<FleetReport & { readonly code: number }> {
  const options = against ? ['--against', file('old.toml')] : [];
  const { code, out, err } = await check('--config', file('new.toml'), ...options, '--json');
  expect(err).toBe('');
  return { ...(JSON.parse(out) as FleetReport), code };
}
function write(change: (config: TomlTable) => void): void {
  const config = parse(readFileSync(file('old.toml'), 'utf8'));
  change(config);
  writeFileSync(file('new.toml'), stringify(config));
}
const profile = (config: TomlTable) => section(caSection(config), 'profile');
const found = (entries: FleetReport['stranded']) => entries.map(({ code, subject, serial }) => [code, subject, serial]);
const known = () => estuary.admin('GET', '/admin/fleet/summary');

describe('check --fleet', () => {
  let clung: ClientIdentity;
  beforeAll(async () => {
    estuary = await Estuary.start({ configure: (config) => void (profile(config)['renewal_grace_days'] = 10) });
    copyFileSync(file('est.toml'), file('old.toml'));
    await use(await enroll('plain'));
    await renew('plain');
    await use(heldBy('plain'));
    await use(await enroll('strong', 'P-384'));
    // Its client goes on with the former certificate, of another key type.
    clung = await enroll('clinging', 'P-384');
    await renew('clinging');
    await known();
    await use(clung);
    // This one does not: it authenticated only to renew.
    await enroll('moved', 'P-384');
    await use(await renew('moved'));
    await known();
  });
  afterAll(() => estuary.stop());

  const NAMES = ['plain', 'strong', 'clinging', 'moved'];

  test('a key type less strands the former certificate too that is still used, and no other former one', async () => {
    write((config) => void (profile(config)['key_types'] = ['ec:P-256', 'rsa:2048']));
    expect(found((await report()).stranded)).toEqual([
      ['KEY_TYPE_NOT_ALLOWED', 'CN=strong', serialOf(heldBy('strong'))],
      ['KEY_TYPE_NOT_ALLOWED', 'CN=clinging', serialOf(clung)],
    ]);
    const { code, out } = await check('--config', file('new.toml'), '--against', file('old.toml'));
    expect(code).toBe(3);
    expect(out).toMatch(/^stranded: KEY_TYPE_NOT_ALLOWED \(2\)\n {2}devices {2}CN=strong /);
    expect(out).toContain(`${NAMES.length} holders checked, 2 stranded, 0 untrusting\n`);
  });

  test('a wrong configuration is exit code 2, an unreadable store 1, and the old configuration names the store', async () => {
    write((config) => void (section(config, 'tls')['min_version'] = 'SSLv3'));
    expect((await check('--config', file('new.toml'), '--json')).code).toBe(2);
    write((config) => void (config['store'] = { path: 'data/none.db' }));
    expect((await check('--config', file('new.toml'), '--json')).code).toBe(1);
    expect(await report()).toMatchObject({ checked: NAMES.length, stranded: [], not_judged: [], code: 0 });
  });

  test('directly after a clean stop, it knows what happened last', async () => {
    await use(await enroll('last', 'P-384'));
    await estuary.server.stop();
    write((config) => void (profile(config)['key_types'] = ['ec:P-256', 'rsa:2048']));
    const { checked, stranded } = await report();
    expect(checked).toBe(NAMES.length + 1);
    expect(stranded.map(({ subject }) => subject)).toEqual(['CN=strong', 'CN=clinging', 'CN=last']);
    await estuary.restart();
  });

  test('a certificate whose successor has authenticated gets no pass', async () => {
    const old = await enroll('spare');
    const pass = () => estuary.admin('POST', `/admin/certificates/${serialOf(old)}/rescue`, { for_seconds: 60 });
    await renew('spare');
    expect((await pass()).status).toBe(201);
    await use(heldBy('spare'));
    expect(await pass()).toMatchObject({ status: 409, json: { code: 'RESCUE_NEEDLESS' } });
    for (const mode of ['required', 'none']) {
      estuary.reconfigure((config) => void (section(config, 'tls', 'client_auth')['mode'] = mode));
      await estuary.server.stop();
      await estuary.restart();
      const answer = await estuary.admin('POST', `/admin/certificates/${serialOf(heldBy('spare'))}/rescue`, {
        for_seconds: 60,
      });
      expect(answer).toMatchObject({ status: 409, json: { code: 'RESCUE_IMPOSSIBLE' } });
    }
  });
});

describe('the retirement of the key of a CA', () => {
  beforeAll(async () => {
    estuary = await Estuary.start();
    await enroll('first');
    await enroll('second');
    rollIssuing(estuary.dir, 'ca/next');
    estuary.reconfigure((config) => {
      caSection(config)['certificate'] = 'ca/next.pem';
      section(caSection(config), 'file')['private_key'] = 'ca/next.key';
      profile(config)['renewal_issuers'] = 'ca/issuing.pem';
    });
    await estuary.server.stop();
    await estuary.restart();
  });
  afterAll(() => estuary.stop());

  const issuers = async () => (await estuary.admin('GET', '/admin/cas/devices/rollover')).json['issuers'];
  const former = (holders: number, informed: number) => ({ current: false, holders, informed });

  test('waits for each holder to renew and to use the new certificate', async () => {
    expect(await issuers()).toMatchObject([
      { current: true, holders: 0, can_be_retired: false, in_the_way: [] },
      { ...former(2, 0), can_be_retired: false, in_the_way: [{ subject: 'CN=first' }, { subject: 'CN=second' }] },
    ]);
    await use(heldBy('first'));
    expect(await issuers()).toMatchObject([{}, former(2, 1)]);
    for (const name of ['first', 'second']) await renew(name);
    expect(await issuers()).toMatchObject([{ holders: 2 }, { ...former(2, 1), can_be_retired: false }]);
    await use(heldBy('first'));
    expect(await issuers()).toMatchObject([
      { holders: 2 },
      { ...former(1, 0), in_the_way: [{ subject: 'CN=second' }] },
    ]);
    await use(heldBy('second'));
    expect(await issuers()).toMatchObject([
      { holders: 2, informed: 2, can_be_retired: false },
      { ...former(0, 0), can_be_retired: true, latest_expiry: null, in_the_way: [] },
    ]);
  });
});
