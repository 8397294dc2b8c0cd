/** RFC 5272 §6.10: the CRL of the addressed CA, and only the latest. */
import { expect, test } from 'vitest';
import type { Ca } from '../../src/ca/router.ts';
import { getCrl, type CrlSource } from '../../src/cmc/retrieval.ts';
import { parseCertificate } from '../../src/pki/x509/certificate.ts';
import { parseDistinguishedName } from '../../src/pki/x509/name.ts';
import { makeCa } from '../support/certificates.ts';
import { outcome } from './support.ts';

test('another issuer, a CA without CRLs and a time before the latest CRL are rejected', async () => {
  const certificate = parseCertificate((await makeCa('CN=Issuing')).der);
  const UPDATED = 1_000_000;
  const crls = { current: () => Promise.resolve({ this_update: UPDATED, der: Buffer.of(1) }) } as unknown as CrlSource;
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
