/** `examples/kerberos`. */
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Answer } from '../support/https.ts';
import { makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { certificatePem } from '../support/estuary.ts';
import { Kdc, REALM } from '../support/kdc.ts';
import { initialToken } from '../support/negotiate.ts';
import { requires } from '../support/requires.ts';
import { issuedNames, startExample, type Example } from './support.ts';

describe.skipIf(!requires('kdc'))('machines of a Kerberos realm', () => {
  let kdc: Kdc;
  let example: Example;
  beforeAll(async () => {
    kdc = await Kdc.start();
    for (const name of ['host/web1.example.com', 'alice']) await kdc.addUser(name);
    example = await startExample('kerberos', {
      // The realm of the tests is another, and so is their host.
      edit: (text) => text.replace('est.example.com@EXAMPLE.COM', `localhost@${REALM}`),
      prepare: (dir) => copyFileSync(kdc.keytab, join(dir, 'est.keytab')),
      env: kdc.env,
    });
  });
  afterAll(async () => {
    await example.estuary.stop();
    await kdc.stop();
  });

  const enroll = async (principal: string, cn: string, dnsNames: readonly string[] = []): Promise<Answer> => {
    const token = await initialToken({ env: kdc.env, cache: await kdc.login(principal) });
    return example.estuary.enroll(onTheWire(simpleCsr(makeKey(), cn, dnsNames)), {
      headers: { Authorization: `Negotiate ${token}` },
    });
  };

  test('--check accepts it without a warning', async () => {
    expect(await example.check()).toBe('example.toml: the configuration is valid\n');
  });

  test.each([
    ['a CSR without it', []],
    ['a CSR with it', ['web1.example.com']],
  ])('a machine gets its own name: %s', async (_, dnsNames) => {
    const answer = await enroll('host/web1.example.com', 'anything', dnsNames);
    expect(answer.status).toBe(200);
    expect(issuedNames(answer)).toEqual(['CN=web1.example.com', 'DNS:web1.example.com']);
  });

  test('it renews with its certificate, for that name and no other', async () => {
    const key = makeKey();
    const csr = (...names: string[]): string => onTheWire(simpleCsr(key, 'web1.example.com', names));
    const token = await initialToken({ env: kdc.env, cache: await kdc.login('host/web1.example.com') });
    const first = await example.estuary.enroll(csr(), { headers: { Authorization: `Negotiate ${token}` } });
    const client = { cert: certificatePem(first), key: key.pem };
    const renew = (...names: string[]): Promise<Answer> =>
      example.estuary.enroll(csr(...names), { client, path: 'simplereenroll' });
    expect((await renew('web2.example.com')).status).toBe(403);
    expect(issuedNames(await renew('web1.example.com'))).toEqual(['CN=web1.example.com', 'DNS:web1.example.com']);
  });

  test('a machine does not get the name of another', async () => {
    expect((await enroll('host/web1.example.com', 'web1.example.com', ['web2.example.com'])).status).toBe(403);
  });

  test('a person gets nothing', async () => {
    expect((await enroll('alice', 'web1.example.com')).status).toBeGreaterThan(400);
  });
});
