/** `estuary client enroll` against Estuary, from the command line. */
import { readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { createPublicKey, X509Certificate } from 'node:crypto';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { estuaryClient, liveCertificate, liveVersion } from '../support/estuary-client.ts';
import { Estuary } from '../support/estuary.ts';
import { makeKey } from '../support/csr.ts';

let estuary: Estuary;
let fingerprint: string;
let url: string;

beforeAll(async () => {
  estuary = await Estuary.start();
  fingerprint = new X509Certificate(estuary.root).fingerprint256;
  url = `https://localhost:${estuary.server.port('est')}`;
});
afterAll(() => estuary.stop());

async function tokenFile(name: string): Promise<string> {
  const { token } = await estuary.otp({ client_id: name });
  const file = join(estuary.dir, `${name}.otp`);
  writeFileSync(file, token, { mode: 0o600 });
  return file;
}

const out = (name: string): string => join(estuary.dir, `client-${name}`);

describe('estuary client enroll', () => {
  test('with a one-time password and the fingerprint of the CA, on an empty machine', async () => {
    const args = ['--url', url, '--ca-fingerprint', fingerprint, '--otp-file', await tokenFile('dev-1')];
    const { code, stdout, output } = await estuaryClient([
      'enroll',
      ...args,
      '--out',
      out('dev-1'),
      '--subject',
      'CN=dev-1',
      '--dns',
      'a.example,b.example',
    ]);
    expect(output).not.toContain('error');
    expect(code).toBe(0);
    expect(stdout.toString()).toBe(`${out('dev-1')}/live\n`);
    const certificate = new X509Certificate(readFileSync(join(out('dev-1'), 'live/cert.pem')));
    expect(certificate.subject).toBe('CN=dev-1');
    expect(certificate.subjectAltName).toBe('DNS:a.example, DNS:b.example');
    const key = join(out('dev-1'), 'live/key.pem');
    expect(createPublicKey(readFileSync(key)).equals(certificate.publicKey)).toBe(true);
    expect(statSync(key).mode & 0o777).toBe(0o600);
    expect(readdirSync(out('dev-1')).sort()).toEqual([
      'ca.pem',
      'client.toml',
      'live',
      'state.json',
      'trust',
      'versions',
    ]);
  });

  test('renew takes the configuration that enroll has left, and goes with the certificate', async () => {
    const before = liveCertificate(out('dev-1'));
    const config = join(out('dev-1'), 'client.toml');
    const untouched = await estuaryClient(['renew', '--config', config]);
    expect([untouched.code, liveVersion(out('dev-1'))]).toEqual([0, 1]);
    const { code, output } = await estuaryClient(['renew', '--config', config, '--force']);
    expect(output).toContain('has a new certificate');
    expect([code, liveVersion(out('dev-1'))]).toEqual([0, 2]);
    const after = liveCertificate(out('dev-1'));
    expect(after.serialNumber).not.toBe(before.serialNumber);
    expect(after.spki.equals(before.spki)).toBe(false);
    expect(after.subject.der.equals(before.subject.der)).toBe(true);
    const status = await estuaryClient(['status', '--config', config, '--json']);
    expect(status.code).toBe(0);
    expect(JSON.parse(status.stdout.toString())).toMatchObject({
      status: 'ok',
      certificates: [{ name: 'client-dev-1', state: 'valid', serial: after.serialNumber, hook_pending: false }],
    });
  });

  test('with a client certificate', async () => {
    const identity = await estuary.enrolled(makeKey(), 'dev-2');
    const [cert, key] = [join(estuary.dir, 'idevid.pem'), join(estuary.dir, 'idevid.key')];
    writeFileSync(cert, identity.cert);
    writeFileSync(key, identity.key, { mode: 0o600 });
    const ca = join(estuary.dir, 'ca/root.pem');
    const args = [
      '--url',
      url,
      '--ca',
      ca,
      '--cert',
      cert,
      '--key',
      key,
      '--out',
      out('dev-2'),
      '--subject',
      'CN=dev-2',
    ];
    const { code, output } = await estuaryClient(['enroll', ...args]);
    expect([code, output]).toEqual([0, expect.stringContaining('has a new certificate')]);
  });

  test('another fingerprint is not a CA of this server: nothing is sent, nothing is written', async () => {
    const other = fingerprint.replace(/^../, fingerprint.startsWith('00') ? '01' : '00');
    const args = ['--url', url, '--ca-fingerprint', other, '--otp-file', await tokenFile('dev-3')];
    const { code, output } = await estuaryClient(['enroll', ...args, '--out', out('dev-3'), '--subject', 'CN=dev-3']);
    expect(code).toBe(1);
    expect(output).toContain('no CA certificate of the server has the fingerprint');
    expect(readdirSync(out('dev-3'))).not.toContain('live');
  });

  test.each([
    [['--url', 'https://localhost'], '--out DIR is required', 1],
    [['--url', 'http://localhost', '--subject', 'CN=a'], 'server.url: "http://localhost" is not an https URL', 2],
    [['--url', 'https://localhost', '--subject', 'a'], 'certificate[0].subject: "a" is not of the form type=value', 2],
    [['--url', 'https://localhost'], 'certificate[0].subject: the certificate has no name', 2],
    [['--url', 'https://localhost', '--subject', 'CN=a', '--ca-fingerprint', 'ab'], 'server.ca_fingerprint: "ab"', 2],
    [
      ['--url', 'https://localhost', '--subject', 'CN=a', '--key-type', 'ec:P-25'],
      'nearest known one is "ec:P-256"',
      2,
    ],
    [['--url', 'https://localhost', '--subject', 'CN=a', '--wait', 'x'], '--wait must be a whole number', 1],
    [['--url', 'https://127.0.0.1:1', '--subject', 'CN=a'], 'no CA is trusted yet. Set server.ca_fingerprint', 1],
  ])('%j: %s', async (args, message, expected) => {
    const folder = message.startsWith('--out') ? [] : ['--out', out('bad')];
    const { code, output } = await estuaryClient(['enroll', ...args, ...folder]);
    expect(output).toContain(message);
    expect(code).toBe(expected);
  });
});
