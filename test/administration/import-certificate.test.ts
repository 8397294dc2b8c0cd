/** Which certificates an administrator may import: those of the CA that the store does not know. */
import { expect, test } from 'vitest';
import type { AdminCall } from '../../src/administration/admin-call.ts';
import { importCertificate } from '../../src/administration/import-certificate.ts';
import type { Ca } from '../../src/ca/router.ts';
import { certificateRow } from '../../src/enrollment/certificate-row.ts';
import { EstuaryError } from '../../src/errors.ts';
import { encodePem } from '../../src/pki/der/pem.ts';
import { parseCertificate } from '../../src/pki/x509/certificate.ts';
import type { CertificateRow } from '../../src/store/certificate-store.ts';
import { makeCa, makeClient, type Issuer } from '../support/certificates.ts';

const root = await makeCa('CN=Devices');
const former = await makeCa('CN=Devices', { slot: 'former' });
const partner = await makeCa('CN=Partner');
const leafOf = (issuer: Issuer) => makeClient('CN=device-1', issuer);

const ca = {
  label: 'devices',
  certificate: parseCertificate(root.der),
  certificates: [parseCertificate(root.der)],
  renewalIssuers: [former, partner].map(({ der }) => parseCertificate(der)),
  issuedUnder: { ca: 'devices', label: null },
} as unknown as Ca;
const call: AdminCall = {
  admin: {
    display: 'Ada',
    method: 'bearer',
    key: 'ada',
    credential: 'ada',
    hasEntry: true,
    roles: [],
    grants: [],
    notAfter: undefined,
  },
  address: '192.0.2.1',
  request_id: 'call-1',
  name: 'POST /admin/certificates',
};

/** `imported`, or the code of the refusal. @param known the rows with the same serial number */
async function imported(
  { der }: Pick<Issuer, 'der'>,
  known: readonly CertificateRow[] = [],
  result: 'imported' | 'known' = 'imported',
  pem = encodePem('CERTIFICATE', der),
): Promise<unknown> {
  const store = {
    getCertificates: (_: string, of?: string) => Promise.resolve(of === undefined ? known : []),
    importCertificate: () => Promise.resolve(result),
  };
  try {
    const row = await importCertificate({ store, cas: { all: [ca] } }, call, { pem, label: 'devices' });
    return row.der.equals(der) ? 'imported' : row;
  } catch (error) {
    return error instanceof EstuaryError ? error.code : error;
  }
}

const rowOf = ({ der }: Pick<Issuer, 'der'>): CertificateRow =>
  certificateRow(der, { ca: 'devices', requester: 'x', method: 'otp', request_id: 'x' });

test('of its key, or of a former key under its name; not of a partner, nor its own', async () => {
  expect(await imported(await leafOf(root))).toBe('imported');
  expect(await imported(await leafOf(former))).toBe('imported');
  expect(await imported(await leafOf(partner))).toBe('CERTIFICATE_FOREIGN');
  expect(await imported(root)).toBe('CERTIFICATE_FOREIGN');
});

test('known: 409, unless the row has no certificate or is that of another CA', async () => {
  const [leaf, stranger] = [await leafOf(root), await leafOf(await makeCa('CN=Stranger'))];
  expect(await imported(leaf, [rowOf(stranger), rowOf(leaf)])).toBe('CERTIFICATE_KNOWN');
  expect(await imported(leaf, [rowOf(stranger)])).toBe('imported');
  expect(await imported(leaf, [{ ...rowOf(leaf), der: Buffer.alloc(0) }])).toBe('imported');
  expect(await imported(leaf, [], 'known')).toBe('CERTIFICATE_KNOWN');
});

test('one certificate in PEM; a bug is no bad input', async () => {
  const leaf = await leafOf(root);
  const pem = encodePem('CERTIFICATE', leaf.der);
  for (const text of ['', pem + pem, encodePem('CERTIFICATE', leaf.der.subarray(1))])
    expect(await imported(leaf, [], 'imported', text)).toBe('FIELD_INVALID');
  expect(await imported(leaf, [], 'imported', null as unknown as string)).toBeInstanceOf(TypeError);
});
