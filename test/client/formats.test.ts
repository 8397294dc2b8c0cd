/** The files that `estuary client` writes, and its monitoring output. */
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { accessOf, CertificateFolder } from '../../src/client/keep/certificate-folder.ts';
import { DISK } from '../../src/client/keep/disk.ts';
import { filesOf, type Format } from '../../src/client/keep/formats.ts';
import { healthOf, metricsOf, statusOf } from '../../src/client/status.ts';
import { parseCertificate } from '../../src/pki/x509/certificate.ts';
import { makeCa, makeClient, NOT_AFTER, NOT_BEFORE } from '../support/certificates.ts';
import { configOf } from '../support/client-world.ts';
import { pkcs8Pem } from '../support/keys.ts';
import { opensslText, temporaryFolder } from '../support/openssl.ts';

const temporary = temporaryFolder();
afterAll(() => temporary.remove());

/** Installs a certificate of an issuing CA into a folder. */
async function installed(name: string, formats: readonly Format[], mode = '0600'): Promise<string> {
  const root = await makeCa('CN=Root');
  const issuing = await makeCa('CN=Issuing', { issuer: root });
  const leaf = await makeClient('CN=web', issuing);
  const path = temporary.file(name);
  const folder = new CertificateFolder(path, DISK, accessOf({ owner: undefined, group: undefined, mode }));
  folder.recover(Date.now());
  const issued = {
    certificate: parseCertificate(leaf.der),
    chain: [parseCertificate(issuing.der)],
    privateKey: pkcs8Pem(leaf.keys),
  };
  folder.install(await filesOf(issued, { formats, password: 'pass word', name }), Date.now());
  return join(path, 'live');
}

describe('formats', () => {
  test('PEM: key, certificate, chain and both; for HAProxy one file with the key', async () => {
    const live = await installed('pem', ['combined']);
    const text = (name: string): string => readFileSync(join(live, name), 'latin1');
    expect(text('fullchain.pem')).toBe(text('cert.pem') + text('chain.pem'));
    expect(text('combined.pem')).toBe(text('fullchain.pem') + text('key.pem'));
    for (const [name, mode] of [
      ['key.pem', 0o600],
      ['combined.pem', 0o600],
      ['fullchain.pem', 0o644],
    ] as const)
      expect(statSync(join(live, name)).mode & 0o777).toBe(mode);
  });

  test('mode: the group may read the key where it is wanted', async () => {
    const live = await installed('group', [], '0640');
    expect(statSync(join(live, 'key.pem')).mode & 0o777).toBe(0o640);
  });

  test('PKCS #12, as OpenSSL reads it', async () => {
    const live = await installed('p12', ['pkcs12']);
    writeFileSync(temporary.file('password'), 'pass word');
    const args = ['pkcs12', '-in', join(live, 'bundle.p12'), '-passin', `file:${temporary.file('password')}`, '-nodes'];
    const text = opensslText(args);
    expect(text.match(/BEGIN CERTIFICATE/g)).toHaveLength(2);
    expect(text).toContain('friendlyName: p12');
    const [, key = ''] = /(-----BEGIN PRIVATE KEY-----[^]*-----END PRIVATE KEY-----)/.exec(text) ?? [];
    expect(`${key}\n`).toBe(readFileSync(join(live, 'key.pem'), 'latin1'));
  });

  test('an owner that is not there is told', () => {
    expect(() => accessOf({ owner: 'nobody-has-this-name', group: undefined, mode: '0600' })).toThrow(
      'does not exist in',
    );
    expect(accessOf({ owner: 'root', group: '12', mode: '0640' }).secret).toEqual({ mode: 0o640, uid: 0, gid: 12 });
  });
});

describe('health and metrics', () => {
  test.each([
    [NOT_BEFORE + 1000, 'valid', 1],
    [NOT_BEFORE + (NOT_AFTER - NOT_BEFORE) * 0.9, 'due', 0],
    [NOT_AFTER + 1000, 'expired', 0],
  ] as const)('at %d it is %s', async (now, state, valid) => {
    const live = await installed(`status-${state}`, []);
    const { certificate } = configOf({ name: 'web', folder: join(live, '..') });
    const status = statusOf(certificate, DISK, now);
    expect(status).toMatchObject({
      state,
      subject: 'CN=web',
      not_after: new Date(NOT_AFTER).toISOString(),
      hook_pending: true,
    });
    expect(healthOf([status], now)).toMatchObject({ status: 'failing', certificates: [{ name: 'web', state }] });
    const metrics = metricsOf([status], now);
    expect(metrics).toContain(`estuary_client_certificate_valid{certificate="web"} ${valid}\n`);
    expect(metrics).toContain(`estuary_client_certificate_not_after_seconds{certificate="web"} ${NOT_AFTER / 1000}\n`);
    expect(metrics).toContain('estuary_client_hook_pending{certificate="web"} 1\n');
  });

  test('nothing there yet', () => {
    const { certificate } = configOf({ folder: temporary.file('nothing') });
    expect(statusOf(certificate, DISK, NOT_BEFORE)).toMatchObject({ state: 'missing', names: [] });
  });
});
