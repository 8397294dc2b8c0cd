/** POST /admin/check, as a call. */
import { describe, expect, test } from 'vitest';
import type { DryRunRequest, Verdict } from '../../../src/enrollment/dry-run.ts';
import { encodePem } from '../../../src/pki/der/pem.ts';
import { makeCa, makeClient } from '../../support/certificates.ts';
import { makeKey, simpleCsr } from '../../support/csr.ts';
import { adminFixture, failure, NOW } from './support.ts';
import { expectWholeBody } from './typed.ts';

const CSR = encodePem('CERTIFICATE REQUEST', simpleCsr(makeKey(), 'device-1', ['device-1.example']));
const ISSUE: Verdict = { verdict: 'issue', subject: 'CN=device-1', sans: ['DNS:device-1.example'], notAfter: NOW };

async function asking(verdict = ISSUE) {
  const asked: DryRunRequest[] = [];
  const run = (request: DryRunRequest) => {
    asked.push(request);
    return Promise.resolve(verdict);
  };
  return { ...(await adminFixture({ dryRun: { run } })), asked };
}

describe('POST /admin/check', () => {
  test('answers with the verdict, and leaves nothing in the audit log', async () => {
    const { call, store, asked } = await asking();
    const answer = await call('POST', '/admin/check', { ca: 'devices', csr: CSR, as: { client_id: 'device-1' } });
    expectWholeBody(answer, {
      verdict: 'issue',
      subject: 'CN=device-1',
      sans: ['DNS:device-1.example'],
      not_after: new Date(NOW).toISOString(),
    });
    expect(asked).toMatchObject([{ ca: { label: 'devices' }, as: { kind: 'client_id', clientId: 'device-1' } }]);
    await call('POST', '/admin/check', { ca: 'devices', csr: CSR, as: {} });
    expect((await store.listAudit({ limit: 10 })).items).toEqual([]);
  });

  test('a refusal has its code and what the client would read', async () => {
    const refused: Verdict = { ...ISSUE, verdict: 'refuse', code: 'NAME_NOT_OWN', message: 'no', notAfter: undefined };
    const { call } = await asking(refused);
    const answer = await call('POST', '/admin/check', { ca: 'devices', csr: CSR, as: { device: 'device-1' } });
    expect(answer.statusCode).toBe(200);
    expectWholeBody(answer, {
      verdict: 'refuse',
      code: 'NAME_NOT_OWN',
      message: 'no',
      subject: 'CN=device-1',
      sans: ['DNS:device-1.example'],
      not_after: null,
    });
  });

  test('as a certificate, with those above it, and as a principal', async () => {
    const { call, asked } = await asking();
    const ca = await makeCa('CN=Maker');
    const client = await makeClient('CN=device-1', ca);
    const certificate = [client, ca].map(({ der }) => encodePem('CERTIFICATE', der)).join('');
    for (const as of [{ certificate }, { principal: 'host/a.example@EXAMPLE.COM' }])
      expect((await call('POST', '/admin/check', { ca: 'devices', csr: CSR, as })).statusCode).toBe(200);
    expect(asked.map((call) => call.as)).toMatchObject([
      { kind: 'certificate', der: client.der, further: [ca.der] },
      { kind: 'principal', principal: { components: ['host', 'a.example'], realm: 'EXAMPLE.COM' } },
    ]);
  });

  const good = { ca: 'devices', csr: CSR, as: { client_id: 'device-1' } };
  test.each<[string, unknown, RegExp]>([
    ['no ca', { csr: CSR, as: good.as }, /^ca is required$/],
    ['an unknown ca', { ...good, ca: 'nobody' }, /^ca must be the label/],
    ['no csr', { ca: 'devices', as: good.as }, /^csr is required$/],
    ['a csr that is no PEM', { ...good, csr: 'MIIB' }, /^csr must be one PKCS #10/],
    ['a certificate for a csr', { ...good, csr: CSR.replaceAll('CERTIFICATE REQUEST', 'CERTIFICATE') }, /^csr must be/],
    ['two csrs', { ...good, csr: CSR + CSR }, /^csr must be one/],
    ['a csr of broken base64', { ...good, csr: CSR.replace('M', '*') }, /^csr must be/],
    ['a malformed csr', { ...good, csr: encodePem('CERTIFICATE REQUEST', Buffer.from('3000', 'hex')) }, /^csr: /],
    ['no sender', { ca: 'devices', csr: CSR }, /^as is required$/],
    ['nobody', { ...good, as: {} }, /^as must have one of/],
    ['two senders', { ...good, as: { client_id: 'a', device: 'b' } }, /^as must have one of/],
    ['another sender', { ...good, as: { token: 'x' } }, /"as\.token"/],
    ['a text for a sender', { ...good, as: 'device-1' }, /^as must be an object/],
    ['an empty client_id', { ...good, as: { client_id: '' } }, /^as\.client_id must not be empty/],
    ['a blank client_id', { ...good, as: { client_id: ' ' } }, /^as\.client_id must be/],
    ['a device with a control character', { ...good, as: { device: 'a\n' } }, /^as\.device must be/],
    ['a principal without a realm', { ...good, as: { principal: 'alice' } }, /^as\.principal must be/],
    ['a certificate that is no PEM', { ...good, as: { certificate: 'x' } }, /^as\.certificate must be/],
    [
      'a malformed certificate',
      { ...good, as: { certificate: encodePem('CERTIFICATE', Buffer.from('3000', 'hex')) } },
      /^as\.certificate must be/,
    ],
    ['another field', { ...good, operation: 'x' }, /"operation"/],
  ])('400 that names the field: %s', async (_, body, message) => {
    const { call, asked } = await asking();
    const answer = failure(await call('POST', '/admin/check', body));
    expect([answer.statusCode, answer.code]).toEqual([400, 'FIELD_INVALID']);
    expect(answer.message).toMatch(message);
    expect(asked).toEqual([]);
  });
});
