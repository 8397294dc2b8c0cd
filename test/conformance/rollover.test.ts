/** RFC 7030 §4.1.3, RFC 4210 §4.4: a CA and its root get new keys, and existing clients continue. */
import { X509Certificate } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import {
  caSection,
  certificatePem,
  certificatesOf,
  Estuary,
  section,
  type ClientIdentity,
} from '../support/estuary.ts';
import { opensslText } from '../support/openssl.ts';
import { rollIssuing, rollRoot } from '../support/rollover.ts';

let estuary: Estuary;
const key = makeKey();

const at = (name: string): string => join(estuary.dir, name);
const derOf = (name: string): Buffer => new X509Certificate(readFileSync(at(name))).raw;

async function restartWith(configure: Parameters<Estuary['reconfigure']>[0]): Promise<void> {
  estuary.reconfigure(configure);
  await estuary.server.stop();
  await estuary.restart();
}

/** What openssl says to a client's certificate, with one root trusted and further certificates to build the path from. */
function verify({ cert }: ClientIdentity, root: string, ...untrusted: string[]): string {
  writeFileSync(at('client.pem'), cert);
  const more = untrusted.flatMap((name) => ['-untrusted', at(name)]);
  return opensslText([
    'verify',
    '-x509_strict',
    '-purpose',
    'sslclient',
    '-CAfile',
    at(root),
    ...more,
    at('client.pem'),
  ]);
}

const renew = (client: ClientIdentity, path = 'simplereenroll', name = 'device-1') =>
  estuary.enroll(onTheWire(simpleCsr(key, name)), { path, client });

describe('a root key rollover', () => {
  let chain: string[];
  let before: ClientIdentity;
  let after: ClientIdentity;

  beforeAll(async () => {
    estuary = await Estuary.start();
    before = await estuary.enrolled(key);
    chain = rollRoot(estuary.dir);
    await restartWith((config) => {
      Object.assign(caSection(config), { certificate: 'ca/new-issuing.pem', chain: 'ca/rollover.pem' });
    });
    after = await estuary.enrolled(key);
  });

  afterAll(() => estuary.stop());

  test('cacerts: the issuing CA, the new root, then OldWithOld, OldWithNew and NewWithOld', async () => {
    const answer = await estuary.est('cacerts');
    expect(answer.status).toBe(200);
    expect(certificatesOf(answer)).toEqual(['ca/new-issuing.pem', ...chain].map(derOf));
  });

  test('GET /admin/cas shows the same', async () => {
    const { json } = await estuary.admin('GET', '/admin/cas/devices');
    const pems = json['chain'];
    const ders = Array.isArray(pems) ? pems.map((pem) => new X509Certificate(String(pem)).raw) : [];
    expect(ders).toEqual(['ca/new-issuing.pem', ...chain].map(derOf));
    expect(json).toMatchObject({ health: 'ok' });
  });

  test('openssl takes a new certificate with the old root alone, by NewWithOld', () => {
    expect(verify(after, 'ca/root.pem', 'ca/new-issuing.pem', 'ca/new-with-old.pem')).toContain('OK');
    expect(() => verify(after, 'ca/root.pem', 'ca/new-issuing.pem')).toThrow();
  });

  test('openssl takes an old certificate with the new root alone, by OldWithNew', () => {
    expect(verify(before, 'ca/new-root.pem', 'ca/issuing.pem', 'ca/old-with-new.pem')).toContain('OK');
    expect(() => verify(before, 'ca/new-root.pem', 'ca/issuing.pem')).toThrow();
  });

  test.each(['ca/root.pem', 'ca/new-root.pem'])(
    'old and new certificates authenticate with %s trusted',
    async (root) => {
      for (const mode of ['optional', 'required']) {
        await restartWith((config) => {
          Object.assign(section(config, 'tls', 'client_auth'), { trust_anchors: root, mode });
        });
        for (const client of [before, after]) {
          const answer = await renew(client);
          expect(answer.status, answer.text).toBe(200);
          const fresh = { cert: certificatePem(answer), key: key.pem };
          expect(verify(fresh, 'ca/new-root.pem', 'ca/new-issuing.pem')).toContain('OK');
        }
      }
    },
    60_000,
  );

  test('the server refuses to start with a root that nothing links to the chain', async () => {
    const stranger = readFileSync(at('admin/ca.pem'), 'latin1');
    writeFileSync(at('ca/stranger.pem'), readFileSync(at('ca/rollover.pem'), 'latin1') + stranger);
    estuary.reconfigure((config) => void (caSection(config)['chain'] = 'ca/stranger.pem'));
    await estuary.server.stop();
    await expect(estuary.restart()).rejects.toThrow(
      /ca\[devices\]\.chain: "CN=Quickstart Admin CA,O=Estuary quickstart" is neither above the CA nor linked to it/,
    );
  });
});

describe("a rollover of the issuing CA's key", () => {
  let before: ClientIdentity;
  let after: ClientIdentity;

  beforeAll(async () => {
    estuary = await Estuary.start();
    before = await estuary.enrolled(key);
    rollIssuing(estuary.dir, 'ca/next');
    const chain = ['ca/root.pem', 'ca/issuing.pem'].map((name) => readFileSync(at(name), 'latin1'));
    writeFileSync(at('ca/next-chain.pem'), chain.join(''));
    await restartWith((config) => {
      const ca = caSection(config);
      Object.assign(ca, { certificate: 'ca/next.pem', chain: 'ca/next-chain.pem' });
      section(ca, 'file')['private_key'] = 'ca/next.key';
      section(ca, 'profile')['renewal_issuers'] = 'ca/issuing.pem';
    });
    after = await estuary.enrolled(key);
  });

  afterAll(() => estuary.stop());

  test('cacerts has the CA, its root, and the earlier CA', async () => {
    const names = ['ca/next.pem', 'ca/root.pem', 'ca/issuing.pem'];
    expect(certificatesOf(await estuary.est('cacerts'))).toEqual(names.map(derOf));
  });

  test('RFC 7030 §4.2.2: a certificate of the earlier key is renewed, by the new one', async () => {
    const answer = await renew(before);
    expect(answer.status, answer.text).toBe(200);
    const renewed = { cert: certificatePem(answer), key: key.pem };
    expect(verify(renewed, 'ca/root.pem', 'ca/next.pem')).toContain('OK');
    expect(() => verify(renewed, 'ca/root.pem', 'ca/issuing.pem')).toThrow();
    expect((await renew(renewed)).status).toBe(200);
    expect((await renew(after)).status).toBe(200);
  });

  test('and one of another CA is not', async () => {
    const other = await estuary.enrolled(key, 'device-1', [], 'lab/simpleenroll');
    expect((await renew(other)).status).toBe(403);
  });

  test('without renewal_issuers it has to enroll anew', async () => {
    await restartWith((config) => {
      delete section(caSection(config), 'profile')['renewal_issuers'];
    });
    expect((await renew(before)).status).toBe(403);
    expect((await renew(after)).status).toBe(200);
  });
});
