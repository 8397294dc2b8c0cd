import { writeFileSync } from 'node:fs';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { EstuaryError } from '../../../src/errors.ts';
import type { DogtagCa } from '../../../src/ca/dogtag/dogtag-ca.ts';
import { OID } from '../../../src/pki/der/oids.ts';
import { parseCertificate } from '../../../src/pki/x509/certificate.ts';
import type { Extension } from '../../../src/pki/x509/extensions.ts';
import { encodePem } from '../../../src/pki/der/pem.ts';
import {
  basicConstraints,
  dns,
  extKeyUsage,
  keyUsage,
  makeCa,
  makeCertificate,
  subjectAltName,
} from '../../support/certificates.ts';
import { makeKey, simpleCsr } from '../../support/csr.ts';
import { DogtagStandIn } from '../../support/dogtag-stand-in/index.ts';
import { temporaryFolder } from '../../support/openssl.ts';
import { issue, issued, newRequest, openDriver, queued, requestFor } from './support.ts';

const folder = temporaryFolder();
let standIn: DogtagStandIn;
let ca: DogtagCa;
beforeAll(async () => {
  standIn = await DogtagStandIn.start();
  ca = await openDriver(standIn.settings());
});
afterAll(async () => {
  await ca.close();
  await standIn.stop();
  folder.remove();
});
beforeEach(() => {
  standIn.state.issueInstead = undefined;
});

/** For the log: what did not fit. */
async function detailOf(issuing: Promise<unknown>): Promise<string | undefined> {
  const error = await issuing.catch((reason: unknown) => reason);
  expect(error).toMatchObject(refusal);
  return error instanceof EstuaryError ? error.detail : undefined;
}

const refusal = { status: 500, code: 'CA_ISSUED_OTHER' };

describe('what the CA issued is held against what was asked for', () => {
  const keyOf = (csr: { publicKey: { keyObject: import('node:crypto').KeyObject } }) => ({
    publicKey: csr.publicKey.keyObject,
    privateKey: makeKey().privateKey,
  });
  const day = 86_400_000;
  const make = (spec: Parameters<typeof makeCertificate>[0]): Promise<Buffer> =>
    makeCertificate({ notBefore: Date.now(), notAfter: Date.now() + day, ...spec }).then(({ der }) => der);

  test('another public key', async () => {
    standIn.state.issueInstead = () => make({ subject: 'CN=device', issuer: standIn.issuer });
    await expect(issue(ca, await newRequest('device'))).rejects.toMatchObject(refusal);
  });
  test('another subject', async () => {
    standIn.state.issueInstead = (csr) => make({ subject: 'CN=other', issuer: standIn.issuer, keys: keyOf(csr) });
    await expect(issue(ca, await newRequest('device'))).rejects.toMatchObject(refusal);
  });
  test('another subjectAltName', async () => {
    standIn.state.issueInstead = (csr) =>
      make({
        subject: 'CN=device',
        issuer: standIn.issuer,
        keys: keyOf(csr),
        extensions: [subjectAltName(dns('b.example'))],
      });
    await expect(issue(ca, await newRequest('device', ['a.example']))).rejects.toMatchObject(refusal);
  });
  test('a CA certificate', async () => {
    standIn.state.issueInstead = (csr) =>
      make({
        subject: 'CN=device',
        issuer: standIn.issuer,
        keys: keyOf(csr),
        extensions: [basicConstraints(true), keyUsage('keyCertSign')],
      });
    await expect(issue(ca, await newRequest('device'))).rejects.toMatchObject(refusal);
  });
  test('a certificate of another CA of the same name', async () => {
    const impostor = await makeCa(standIn.issuer.subject, { slot: 'impostor' });
    standIn.state.issueInstead = (csr) => make({ subject: 'CN=device', issuer: impostor, keys: keyOf(csr) });
    await expect(issue(ca, await newRequest('device'))).rejects.toMatchObject(refusal);
  });
  const whole = [keyUsage('digitalSignature', 'keyEncipherment'), extKeyUsage(OID.clientAuth, OID.serverAuth)];
  const [usages, purposes] = whole;
  test.each<[string, readonly (Extension | undefined)[], number, RegExp]>([
    [
      'one purpose too many',
      [usages, extKeyUsage(OID.clientAuth, OID.OCSPSigning)],
      90,
      /purposes include OCSPSigning/,
    ],
    ['any purpose', [usages, extKeyUsage(OID.anyExtendedKeyUsage)], 90, /purposes include anyExtendedKeyUsage/],
    ['one usage too many', [keyUsage('digitalSignature', 'keyAgreement'), purposes], 90, /contains keyAgreement/],
    ["a CA's usage", [keyUsage('digitalSignature', 'keyCertSign'), purposes], 90, /contains keyCertSign/],
    ['a validity beyond the bound', whole, 826, /beyond ca\.profile\.max_validity_days \(825\)/],
  ])('%s', async (_, extensions, days, problem) => {
    standIn.state.issueInstead = (csr) =>
      make({
        subject: 'CN=device',
        issuer: standIn.issuer,
        keys: keyOf(csr),
        serial: '0a',
        notBefore: Date.now(),
        notAfter: Date.now() + days * day,
        extensions: extensions.filter((extension) => extension !== undefined),
      });
    const request = await newRequest('device');
    expect(await detailOf(issue(ca, request))).toMatch(problem);
  });
  test.each<[string, readonly Extension[]]>([
    ['no usage and no purpose', []],
    ['less than the profile names', [keyUsage('keyEncipherment'), extKeyUsage(OID.clientAuth)]],
  ])('%s is delivered', async (_, extensions) => {
    standIn.state.issueInstead = (csr) =>
      make({ subject: 'CN=device', issuer: standIn.issuer, keys: keyOf(csr), extensions });
    await issued(ca, await newRequest('device'));
  });
  test('without key_usage in the profile, every usage of an end entity is delivered', async () => {
    const lax = await openDriver(standIn.settings(), { profile: { key_usage: [], extended_key_usage: [] } });
    standIn.state.issueInstead = (csr) =>
      make({
        subject: 'CN=device',
        issuer: standIn.issuer,
        keys: keyOf(csr),
        extensions: [keyUsage('digitalSignature', 'keyEncipherment', 'dataEncipherment')],
      });
    await issued(lax, await newRequest('device'));
    await lax.close();
  });
  test('a certificate for another key is revoked too, unless another CA issued it', async () => {
    standIn.state.issueInstead = () => make({ subject: 'CN=device', issuer: standIn.issuer });
    // The stand-in does not know what it issued instead.
    const tried = /another public key; could not be revoked: the CA does not know this certificate$/;
    expect(await detailOf(issue(ca, await newRequest('device')))).toMatch(tried);
    const impostor = await makeCa(standIn.issuer.subject, { slot: 'impostor' });
    standIn.state.issueInstead = () => make({ subject: 'CN=device', issuer: impostor });
    expect(await detailOf(issue(ca, await newRequest('device')))).toMatch(/left as it is$/);
  });
  test('a profile that leaves the subjectAltName out is delivered', async () => {
    const drops = await openDriver(standIn.settings({ profile: 'caAgentServerCert' }));
    const request = await newRequest('device', ['a.example'], makeKey('rsa2048'));
    await issued(drops, request);
    await drops.close();
  });
  test('the same at a poll', async () => {
    const queue = await openDriver(standIn.settings({ profile: 'estuaryQueue' }));
    const request = await newRequest('device');
    const reference = await queued(queue, request);
    standIn.state.issueInstead = () => make({ subject: 'CN=device', issuer: standIn.issuer });
    await standIn.decide('approve', reference);
    await expect(queue.remoteQueue.poll(reference, request)).rejects.toMatchObject(refusal);
    await queue.close();
  });
});

describe('what is submitted', () => {
  test("a profile's own input class is found in its template", async () => {
    const user = await openDriver(standIn.settings({ profile: 'caUserCert' }));
    await queued(user, await newRequest('user'));
    await user.close();
  });
  test('a profile that the CA does not have is an error of the configuration', async () => {
    const nosuch = await openDriver(standIn.settings({ profile: 'nosuch' }));
    await expect(issue(nosuch, await newRequest('device'))).rejects.toMatchObject({ status: 500, code: 'CA_REFUSED' });
    await nosuch.close();
  });
  test('a subject that is not in the CSR is refused: the PKCS#10 goes on as it came', async () => {
    const request = await requestFor(simpleCsr(makeKey(), 'asked'));
    const { subject } = await newRequest('mapped');
    await expect(ca.prepare({ ...request, subject })).rejects.toMatchObject({
      status: 403,
      code: 'SUBJECT_NOT_IN_CSR',
    });
  });
});

describe('ca.certificate pins the CA', () => {
  const pem = (der: Buffer): string => {
    const path = folder.file('pinned.pem');
    writeFileSync(path, encodePem('CERTIFICATE', der));
    return path;
  };
  test('the same certificate: it works, and is known before the server is', async () => {
    standIn.server.faults.undeployed = true;
    const pinned = await openDriver(standIn.settings(), { certificate: pem(standIn.issuer.der) });
    expect(pinned.chain().map((der) => parseCertificate(der).subject.der)).toEqual([
      parseCertificate(standIn.issuer.der).subject.der,
    ]);
    standIn.server.faults.undeployed = false;
    await pinned.close();
    const up = await openDriver(standIn.settings(), { certificate: pem(standIn.issuer.der) });
    await issued(up, await newRequest('pinned'));
    await up.close();
  });
  test('another certificate: nothing is submitted', async () => {
    const other = await makeCa('CN=Another CA', { slot: 'another' });
    const pinned = await openDriver(standIn.settings(), { certificate: pem(other.der) });
    await expect(pinned.health()).resolves.toMatchObject({ health: 'down' });
    const before = standIn.server.count('POST /ca/rest/certrequests');
    await expect(issue(pinned, await newRequest('pinned'))).rejects.toMatchObject({ status: 503 });
    expect(standIn.server.count('POST /ca/rest/certrequests')).toBe(before);
    await pinned.close();
  });
});
