/** `examples/factory`. */
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { encodePem } from '../../src/pki/der/pem.ts';
import { parseDistinguishedName } from '../../src/pki/x509/name.ts';
import { makeCa, makeClient, type Issuer } from '../support/certificates.ts';
import { buildCsr, makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { certificatePem, type ClientIdentity } from '../support/estuary.ts';
import { pkcs8Pem } from '../support/keys.ts';
import { exampleFile, issuedNames, startExample, type Example } from './support.ts';

const pem = (issuer: Issuer): string => encodePem('CERTIFICATE', issuer.der);
const root = await makeCa('CN=Maker Root,O=Maker');
const issuing = await makeCa('CN=Maker Devices CA,O=Maker', { issuer: root });

/** An IDevID with its chain. */
async function idevId(serialNumber: string, issuer: Issuer = issuing): Promise<ClientIdentity> {
  const leaf = await makeClient(`serialNumber=${serialNumber},CN=Model X,O=Maker`, issuer);
  return { cert: pem(leaf) + pem(issuer), key: pkcs8Pem(leaf.keys) };
}

let example: Example;
beforeAll(async () => {
  example = await startExample('factory', {
    prepare: (dir) => {
      mkdirSync(join(dir, 'manufacturer'));
      writeFileSync(join(dir, 'manufacturer/cas.pem'), pem(root) + pem(issuing));
      appendFileSync(join(dir, 'tls/client-anchors.pem'), pem(root));
    },
  });
  const csv = readFileSync(exampleFile('factory', 'devices.csv'), 'latin1');
  const { status, text } = await example.admin('/admin/devices', csv, 'text/csv');
  expect({ status, text }).toMatchObject({ status: 200 });
});
afterAll(() => example.estuary.stop());

const enroll = (client: ClientIdentity, cn = 'anything', dnsNames: readonly string[] = []) =>
  example.estuary.enroll(onTheWire(simpleCsr(makeKey(), cn, dnsNames)), { client });

describe('factory IDevIDs to LDevIDs', () => {
  test('--check accepts it without a warning', async () => {
    expect(await example.check()).toBe('example.toml: the configuration is valid\n');
  });

  test('a device on the list gets its serial number as its name, whatever it asks for', async () => {
    const answer = await enroll(await idevId('4711'), 'press-8');
    expect(answer.status).toBe(200);
    expect(issuedNames(answer)).toEqual(['CN=4711,O=Example']);
  });

  test('it renews with what it got, and for no other name', async () => {
    const key = makeKey();
    const first = await example.estuary.enroll(onTheWire(simpleCsr(key)), { client: await idevId('4712') });
    expect(issuedNames(first)).toEqual(['CN=4712,O=Example']);
    const client = { cert: certificatePem(first), key: key.pem };
    const renew = (subject: string, path: string) =>
      example.estuary.enroll(onTheWire(buildCsr(key, { subject: parseDistinguishedName(subject).der })), {
        client,
        path,
      });
    expect((await renew('CN=4711,O=Example', 'simplereenroll')).status).toBe(403);
    expect((await renew('CN=4711,O=Example', 'simpleenroll')).status).toBe(403);
    const renewed = await renew('CN=4712,O=Example', 'simplereenroll');
    expect(renewed.status).toBe(200);
    expect(issuedNames(renewed)).toEqual(['CN=4712,O=Example']);
  });

  test('a device that is not on the list', async () => {
    const answer = await enroll(await idevId('4713'));
    expect({ status: answer.status, text: answer.text }).toMatchObject({ status: 403 });
    expect(answer.text).toContain('device not registered');
  });

  test('a device with another name in addition to its serial number', async () => {
    expect((await enroll(await idevId('4711'), 'x', ['admin.example.com'])).status).toBe(400);
  });

  test('a device under another CA of that manufacturer, of the same name', async () => {
    const namesake = await makeCa('CN=Maker Devices CA,O=Maker', { issuer: root, slot: 'namesake' });
    const answer = await enroll(await idevId('4711', namesake));
    expect([answer.status, answer.text]).toEqual([403, 'device not registered']);
  });

  test('a device of another manufacturer, whatever name that takes', async () => {
    const other = await makeCa('CN=Maker Devices CA,O=Maker', { slot: 'other' });
    // The handshake ends, or nobody is authenticated.
    const status = await enroll(await idevId('4711', other)).then(
      (answer) => answer.status,
      () => 401,
    );
    expect(status).toBe(401);
  });
});
