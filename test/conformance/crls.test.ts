/** RFC 8295 §4: CRLs over EST, with and without the publication listener. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { X509Certificate } from 'node:crypto';
import { untilInCrl } from '../support/crls.ts';
import { makeKey } from '../support/csr.ts';
import { Estuary, section } from '../support/estuary.ts';
import type { Answer } from '../support/https.ts';
import { runAny } from '../support/command.ts';
import { openssl, opensslText } from '../support/openssl.ts';

const INTERVAL = 10;

describe.each([
  ['without the publication listener', false],
  ['with the publication listener', true],
])('GET crls %s', (_, published) => {
  let estuary: Estuary;

  beforeAll(async () => {
    estuary = await Estuary.start({
      listeners: published ? ['est', 'admin', 'publication'] : ['est', 'admin'],
      configure: (config) => {
        const all = { enabled: true, host: '127.0.0.1', port: 0, base_url: 'http://pki.example.test' };
        Object.assign(section(config, 'publication'), { crl_interval: INTERVAL, ...(published ? all : {}) });
      },
    });
  });
  afterAll(() => estuary.stop());

  /** The one list of an answer, DER. */
  function listOf(answer: Answer): Buffer {
    expect(answer.status).toBe(200);
    const pem = opensslText(['pkcs7', '-inform', 'DER', '-print_certs'], Buffer.from(answer.text, 'base64'));
    expect(pem.match(/-----BEGIN [A-Z0-9 ]+-----/g)).toEqual(['-----BEGIN X509 CRL-----']);
    return openssl(['crl', '-outform', 'DER'], pem);
  }

  /** What openssl reads, once it has verified the signature. */
  async function read(list: Buffer, issuer = 'ca/issuing.pem'): Promise<string> {
    const file = join(estuary.dir, 'list.crl');
    writeFileSync(file, list);
    const trust = ['-CAfile', join(estuary.dir, issuer)];
    const { output } = await runAny('openssl', ['crl', '-inform', 'DER', '-in', file, '-noout', '-text', ...trust]);
    expect(output).toContain('verify OK');
    return output;
  }

  test('needs no authentication and answers crls-only in base64', async () => {
    const answer = await estuary.est('crls');
    expect(answer.headers['content-type']).toBe('application/pkcs7-mime; smime-type=crls-only');
    expect(answer.headers['content-transfer-encoding']).toBe('base64');
    expect(await read(listOf(answer))).toContain('Issuer: O = Estuary quickstart, CN = Quickstart Devices CA');
  });

  test('by label: each CA its own', async () => {
    const list = listOf(await estuary.est('lab/crls'));
    expect(await read(list, 'ca/lab.pem')).toContain('CN = Quickstart Lab CA');
    expect((await estuary.est('nowhere/crls')).status).toBe(404);
  });

  test('a revocation is in the list within crl_interval, which openssl verifies', async () => {
    const { cert } = await estuary.enrolled(makeKey(), 'device-1');
    const { serialNumber } = new X509Certificate(cert);
    const before = listOf(await estuary.est('crls'));
    expect(await read(before)).not.toContain(serialNumber);
    const revoked = await estuary.admin('POST', `/admin/certificates/${serialNumber.toLowerCase()}/revoke`, {});
    expect(revoked.status).toBe(200);
    const list = await untilInCrl(async () => listOf(await estuary.est('crls')), serialNumber);
    expect(await read(list)).toContain(`Serial Number: ${serialNumber}`);
    expect(Number(/CRL Number:\s+(\d+)/.exec(await read(list))?.[1])).toBeGreaterThan(1);
  });

  test('many ask, one list is signed', async () => {
    const began = Date.now();
    const lists = await Promise.all(Array.from({ length: 20 }, () => estuary.est('crls')));
    // Another one is due after each half of crl_interval.
    const due = Math.floor((Date.now() - began) / (INTERVAL * 500));
    expect(new Set(lists.map(({ text }) => text)).size).toBeLessThanOrEqual(2 + due);
  });

  test('libest gets lines of 64 columns', async () => {
    const { text } = await estuary.est('crls', { headers: { 'User-Agent': 'libest' } });
    expect(Math.max(...text.split('\n').map(({ length }) => length))).toBe(64);
  });

  test('another method is 405', async () => {
    const answer = await estuary.est('crls', { method: 'POST', body: 'x' });
    expect([answer.status, answer.headers['allow']]).toEqual([405, 'GET, HEAD']);
  });

  if (published) {
    test('it is the list of the publication listener', async () => {
      const fetched = async (): Promise<Buffer> => {
        const url = `http://127.0.0.1:${estuary.server.port('publication')}/crl/devices.crl`;
        return Buffer.from(await (await fetch(url)).arrayBuffer());
      };
      let same = false;
      // Another list may be signed between the two.
      for (let i = 0; i < 3 && !same; i++) same = (await fetched()).equals(listOf(await estuary.est('crls')));
      expect(same).toBe(true);
    });
  }
});
