import { readFileSync } from 'node:fs';

import { afterAll, describe, expect, test } from 'vitest';

import type { CaDriver } from '../../src/ca/driver.ts';
import { Ca, CaRouter } from '../../src/ca/router.ts';
import { parsePemCertificates } from '../../src/pki/x509/certificate.ts';
import { makeCa } from '../support/ca.ts';
import { fileCa, fileCaConfig } from '../support/file-ca.ts';
import { temporaryFolder } from '../support/openssl.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());
const made = makeCa(folder.file, 'router', { kind: 'ec:P-256' });
const config = fileCaConfig('x', false, { certificate: made.certificate, chain: made.root, key: made.privateKey });

const makeRouted = (label: string, isDefault = false): Promise<Ca> => fileCa(folder, label, isDefault);

describe('RFC 7030 §3.2.2: the label routes to its CA', () => {
  test('a label finds its CA, none the default', async () => {
    const devices = await makeRouted('devices', true);
    const lab = await makeRouted('lab');
    const router = new CaRouter([lab, devices]);
    expect(router.find('lab')).toBe(lab);
    expect(router.find('devices')).toBe(devices);
    expect(router.find(undefined)).toBe(devices);
    expect(router.all).toEqual([lab, devices]);
  });

  test.each(['', 'LAB', 'unknown', '__proto__', 'constructor'])('an unknown label (%j) is 404', async (label) => {
    const router = new CaRouter([await makeRouted('lab', true)]);
    expect(() => router.find(label)).toThrow(expect.objectContaining({ status: 404, code: 'UNKNOWN_LABEL' }));
  });

  test('two CAs of one label, no default, or two defaults are refused', async () => {
    const [a, b, c] = [await makeRouted('a', true), await makeRouted('b'), await makeRouted('c', true)];
    const again = await makeRouted('a');
    const unusable: unknown = expect.objectContaining({ status: 500, code: 'CA_UNUSABLE' });
    expect(() => new CaRouter([a, again])).toThrow(unusable);
    expect(() => new CaRouter([b])).toThrow(unusable);
    expect(() => new CaRouter([a, c])).toThrow(unusable);
    expect(() => new CaRouter([])).toThrow(unusable);
  });
});

describe('the CA certificate is what the driver has now', () => {
  const driver = (chain: () => readonly Buffer[]): CaDriver => {
    const unused = () => Promise.reject(new Error('not part of this test'));
    return { chain, issue: unused, revoke: unused, health: unused, close: unused };
  };

  test('read once, and again after the driver changed it', () => {
    const [own, root] = [made.certificate, made.root].map(
      (path) => parsePemCertificates(readFileSync(path, 'utf8'))[0]?.der ?? Buffer.alloc(0),
    );
    let current = own;
    const ca = new Ca(
      config,
      driver(() => (current === undefined ? [] : [current])),
    );
    expect(ca.certificate.der).toEqual(own);
    expect(ca.certificate).toBe(ca.certificate);
    current = root;
    expect(ca.certificate.der).toEqual(root);
  });

  test('503 while the driver does not know it', () => {
    const ca = new Ca(
      config,
      driver(() => []),
    );
    for (const part of ['certificate', 'chain'] as const)
      expect(() => ca[part]).toThrow(expect.objectContaining({ status: 503, code: 'CA_UNAVAILABLE' }));
  });
});
