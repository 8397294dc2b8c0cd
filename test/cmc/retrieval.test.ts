/** RFC 5272 §6.9 and §6.10: the certificates of the addressed CA, and only its latest CRL. */
import { expect, test } from 'vitest';
import type { Ca } from '../../src/ca/router.ts';
import { getCert, getCrl, type CrlSource } from '../../src/cmc/retrieval.ts';
import { parseCertificate } from '../../src/pki/x509/certificate.ts';
import { contextConstructed, explicit } from '../../src/pki/der/der.ts';
import type { GeneralName } from '../../src/pki/x509/general-name.ts';
import { parseCertificateList } from '../../src/pki/x509/crl.ts';
import { parseDistinguishedName } from '../../src/pki/x509/name.ts';
import type { CertificateStore } from '../../src/store/certificate-store.ts';
import { makeCa, makeClient, makeCrl } from '../support/certificates.ts';
import { outcome } from './support.ts';

test('another issuer, a CA without CRLs and a time before the latest CRL are rejected', async () => {
  const issuing = await makeCa('CN=Issuing');
  const certificate = parseCertificate(issuing.der);
  const der = await makeCrl(issuing);
  const UPDATED = parseCertificateList(der).thisUpdate.getTime();
  // It was signed later than its thisUpdate says.
  const crls = { current: () => Promise.resolve({ this_update: UPDATED + 60_000, der }) } as unknown as CrlSource;
  const ask = (issuer: string, time?: number, statusSigner: object | undefined = {}): Promise<string> => {
    const ca = { certificate, driver: { statusSigner } } as unknown as Ca;
    const value = { issuerName: parseDistinguishedName(issuer), ...(time !== undefined && { time: new Date(time) }) };
    return outcome(() => getCrl(4, value, ca, crls));
  };
  expect(await ask('CN=issuing')).toBe('ok');
  expect(await ask('CN=Issuing', UPDATED)).toBe('ok');
  expect(await ask('CN=Issuing', UPDATED - 1)).toBe('400 badRequest [4]');
  expect(await ask('CN=Other')).toBe('400 badRequest [4]');
});

test('RFC 5272 §6.9: a certificate by the name of its issuer and its serial number', async () => {
  const { der } = await makeClient('CN=device-1', await makeCa('CN=Issuing'));
  const ca = { issuer: { label: 'devices' } } as unknown as Ca;
  const ask = (issuerName: GeneralName, ...rows: Buffer[]): Promise<string> => {
    const store = { getCertificates: () => Promise.resolve(rows.map((row) => ({ der: row }))) };
    const value = { issuerName, serialNumber: parseCertificate(der).serialNumber };
    return outcome(async () => {
      const answer = await getCert(4, value, ca, store as unknown as CertificateStore);
      expect(answer).toEqual({ kind: 'done', bodyPart: 4, certificates: [der] });
    });
  };
  const named = (subject: string): GeneralName => {
    return { kind: 'other', tag: contextConstructed(4), der: explicit(4, parseDistinguishedName(subject).der) };
  };
  const UNKNOWN = '400 badCertId [4]';
  expect(await ask(named('CN=issuing'), der)).toBe('ok');
  expect(await ask(named('CN=Other'), der)).toBe(UNKNOWN);
  expect(await ask(named('CN=Issuing'))).toBe(UNKNOWN);
  // A restored row may lack its certificate.
  expect(await ask(named('CN=Issuing'), Buffer.alloc(0))).toBe(UNKNOWN);
  expect(await ask(named('CN=Issuing'), Buffer.alloc(0), der)).toBe('ok');
  expect(await ask({ kind: 'dns', value: 'issuing' }, der)).toBe(UNKNOWN);
  const other = explicit(0, parseDistinguishedName('CN=Issuing').der);
  expect(await ask({ kind: 'other', tag: contextConstructed(0), der: other }, der)).toBe(UNKNOWN);
});
