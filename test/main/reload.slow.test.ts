/** Reloads of a running service, and their audit records. */
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { Estuary, section } from '../support/estuary.ts';

const WAIT = { timeout: 60_000, interval: 50 };
let estuary: Estuary;
let good: string;

beforeAll(async () => {
  estuary = await Estuary.start();
  good = readFileSync(configFile(), 'utf8');
});
beforeEach(() => writeFileSync(configFile(), good));
afterAll(() => estuary.stop());

const configFile = (): string => join(estuary.dir, 'est.toml');
const logged = (message: string) => estuary.server.log().filter(({ msg }) => msg === message);
const readyz = () => estuary.admin('GET', '/readyz').then(({ json }) => json);
const ofReloads = (): unknown[] =>
  readFileSync(join(estuary.dir, 'data/audit.log'), 'utf8')
    .split('\n')
    .filter((line) => line.includes('"config.reload"'));

async function reload(outcome: string): Promise<void> {
  // The line of an earlier reload would count as this one.
  await estuary.outputSoFar();
  const before = logged(outcome).length;
  estuary.server.signal('SIGHUP');
  await expect.poll(() => logged(outcome).length, WAIT).toBe(before + 1);
}

const adminStatus = () => estuary.admin('GET', '/admin/otp').then(({ status }) => status);

const otherToken = (): void =>
  estuary.reconfigure((config) => {
    const token = { token_hash: `sha256:${'0'.repeat(64)}`, description: 'another' };
    section(config, 'admin', 'bearer_token')['tokens'] = [token];
  });

describe('a reload', () => {
  test('applies, and has one audit record', async () => {
    const before = ofReloads().length;
    otherToken();
    await reload('configuration reloaded');
    expect(await adminStatus()).toBe(401);
    expect(ofReloads()).toHaveLength(before + 1);
    writeFileSync(configFile(), good);
    await reload('configuration reloaded');
    expect(await adminStatus()).toBe(200);
  });

  test('that fails changes nothing, has one record, and `/readyz` names it until one succeeds', async () => {
    const before = ofReloads().length;
    otherToken();
    appendFileSync(configFile(), '\n[mistake]\n');
    await reload('reload failed; the old configuration stays in force');
    expect(await adminStatus()).toBe(200);
    expect(await readyz()).toMatchObject({ status: 'degraded', parts: { reload: 'degraded' } });
    // The record is written after the line of the log.
    await expect
      .poll(() => ofReloads().slice(before), WAIT)
      .toEqual([expect.stringContaining('"outcome":"failure"') as unknown]);
    writeFileSync(configFile(), good);
    await reload('configuration reloaded');
    expect((await readyz())['status']).toBe('ok');
  });

  test('next to files that cannot be used succeeds and lists them; what was read before stays in force', async () => {
    const files = ['tls/server.key', 'tls/client-anchors.pem', 'ca/issuing.key'];
    const contents = files.map((name) => readFileSync(join(estuary.dir, name)));
    for (const name of files) writeFileSync(join(estuary.dir, name), 'nothing');
    const { status, json } = await estuary.admin('POST', '/admin/reload');
    for (const [index, name] of files.entries()) writeFileSync(join(estuary.dir, name), contents[index] ?? '');
    expect(status).toBe(200);
    expect(json).toMatchObject({
      faults: [
        expect.objectContaining({ key: 'tls.private_key' }),
        expect.objectContaining({ key: 'tls.client_auth.trust_anchors' }),
        expect.objectContaining({ key: 'ca[devices].file.private_key' }),
      ],
    });
    expect(ofReloads().at(-1)).toContain('what was read before stays in force');
    expect(await readyz()).toMatchObject({ status: 'degraded', parts: { files: 'degraded' } });
    await reload('configuration reloaded');
    expect((await readyz())['status']).toBe('ok');
  });

  test('that names other files, which cannot be read, succeeds; what was read before stays in force', async () => {
    estuary.reconfigure((config) => {
      Object.assign(section(config, 'tls'), { certificate: 'no.pem' });
      Object.assign(section(config, 'tls', 'client_auth'), { trust_anchors: 'none.pem' });
    });
    // Had no value before.
    estuary.reconfigure((config) => void (config['cmc'] = { ra_certificates: ['none.pem'] }));
    const { status, json } = await estuary.admin('POST', '/admin/reload');
    expect(status).toBe(200);
    expect(json['faults']).toEqual([
      expect.objectContaining({ key: 'cmc.ra_certificates[0]' }),
      expect.objectContaining({ key: 'tls.certificate', message: expect.stringContaining('no.pem') as string }),
      expect.objectContaining({ key: 'tls.client_auth.trust_anchors' }),
    ]);
    // A new connection gets the former certificate.
    expect((await estuary.est('cacerts')).status).toBe(200);
    writeFileSync(configFile(), good);
    await reload('configuration reloaded');
    expect((await readyz())['status']).toBe('ok');
  });
});

test('the stop of the service is recorded', async () => {
  expect(await estuary.server.stop()).toEqual({ code: 0, signal: null });
  const last = readFileSync(join(estuary.dir, 'data/audit.log'), 'utf8').trimEnd().split('\n').at(-1);
  expect(last).toContain('"type":"service.stop"');
});
