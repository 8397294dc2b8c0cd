/** Which certificates belong to which label, if several labels share a CA key. */
import { describe, expect, test } from 'vitest';
import { LabelBoundary } from '../../src/ca/router.ts';
import { unavailable } from '../../src/errors.ts';
import { parseCertificate } from '../../src/pki/x509/certificate.ts';
import type { CertificateRow } from '../../src/store/certificate-store.ts';
import { certificateRow, reservation } from '../store/rows.ts';
import { makeCa, makeClient } from '../support/certificates.ts';

const ca = await makeCa('CN=Devices');
const other = await makeCa('CN=Other');
const { der } = await makeClient('CN=device-1', ca);
const certificate = parseCertificate(der);
const issuer = parseCertificate(ca.der);
const serial = certificate.serialNumber;

const row = (label: string | null, more: Partial<CertificateRow> = {}): CertificateRow =>
  certificateRow(reservation({ ca: 'devices', label, serial }), { der, ...more });

interface Known {
  readonly rows?: readonly CertificateRow[];
  readonly isShared?: boolean;
  readonly isRemote?: boolean;
  readonly hasOtherLabels?: () => Promise<boolean>;
}

function boundary(labels: readonly string[], known: Known = {}) {
  const { rows = [], isShared = true, isRemote = false, hasOtherLabels = () => Promise.resolve(false) } = known;
  const asked: string[] = [];
  const store = {
    getCertificates: (wanted: string, of?: string) => {
      asked.push(`${wanted === serial} ${of}`);
      return Promise.resolve(rows);
    },
    hasOtherLabels,
  };
  return { asked, made: new LabelBoundary({ ca: 'devices', labels, isShared, isRemote, store }) };
}

describe('a certificate is one of the label that it was asked for at', () => {
  test.each<[string, CertificateRow, readonly string[], boolean]>([
    ["the CA's own label, there", row(null), ['devices'], true],
    ["the CA's own label, at a further one", row(null), ['guests'], false],
    ['a further label, there', row('guests'), ['guests'], true],
    ["a further label, at the CA's own", row('guests'), ['devices'], false],
    ['a further label, at another one', row('guests'), ['staff'], false],
    ['a further label, where renewal_labels names it', row('guests'), ['staff', 'guests'], true],
    ['a label that is no more', row('gone'), ['devices', 'guests'], false],
  ])('issued at %s', async (_, known, labels, expected) => {
    const { made, asked } = boundary(labels, { rows: [known] });
    expect(await made.admits(certificate, issuer, true)).toBe(expected);
    // one of a renewal_issuers that the store knows as another label's is no less that
    expect(await made.admits(certificate, issuer, false)).toBe(expected);
    expect(asked).toEqual(['true devices', 'true devices']);
  });

  test("a certificate of the CA's key that the store does not know belongs to no label; one of a renewal_issuers is accepted", async () => {
    const foreign = row('guests', { der: (await makeClient('CN=device-1', other)).der });
    for (const rows of [[], [foreign]]) {
      const { made } = boundary(['devices'], { rows });
      expect([await made.admits(certificate, issuer, true), await made.admits(certificate, issuer, false)]).toEqual([
        false,
        true,
      ]);
    }
  });

  test('a certificate of a CA elsewhere counts only where the store has recorded it for the label', async () => {
    for (const [rows, expected] of [
      [[], false],
      [[row(null)], true],
      [[row('guests')], false],
    ] as const) {
      const { made } = boundary(['devices'], { rows, isShared: false, isRemote: true });
      expect([await made.admits(certificate, issuer, true), await made.admits(certificate, issuer, false)]).toEqual([
        expected,
        expected,
      ]);
    }
  });

  test('where the CA has one label, and the store knows of no other, nothing is looked up', async () => {
    const { made, asked } = boundary(['devices'], { isShared: false });
    expect(await made.admits(certificate, issuer, true)).toBe(true);
    expect(asked).toEqual([]);
  });

  test('a label that left the configuration keeps its certificates to itself', async () => {
    const hasOtherLabels = () => Promise.resolve(true);
    const { made } = boundary(['devices'], { isShared: false, hasOtherLabels, rows: [row('gone')] });
    expect(await made.admits(certificate, issuer, true)).toBe(false);
  });

  test('a store that cannot say is asked again', async () => {
    let fails = true;
    const hasOtherLabels = () =>
      fails ? Promise.reject(unavailable('STORE_UNAVAILABLE', 'busy')) : Promise.resolve(false);
    const { made } = boundary(['devices'], { isShared: false, hasOtherLabels });
    await expect(made.admits(certificate, issuer, true)).rejects.toMatchObject({ status: 503 });
    fails = false;
    expect(await made.admits(certificate, issuer, true)).toBe(true);
  });
});

const foreignDer = (await makeClient('CN=device-1', other)).der;

describe('recorded for the label', () => {
  test.each<[string, readonly CertificateRow[], readonly string[], boolean]>([
    ["the CA's own label", [row(null)], ['devices'], true],
    ['a further label', [row('guests')], ['guests'], true],
    ['another label', [row('guests')], ['devices'], false],
    ["the CA's own label, asked at a further one", [row(null)], ['guests'], false],
    ['another certificate with the serial number', [row(null, { der: foreignDer })], ['devices'], false],
    ['both', [row(null, { der: foreignDer }), row(null)], ['devices'], true],
    ['a row without the certificate', [row(null, { der: Buffer.alloc(0) })], ['devices'], false],
    ['nothing', [], ['devices'], false],
  ])('%s', async (_, rows, labels, expected) => {
    const { made, asked } = boundary(labels, { rows });
    expect(await made.hasRecorded(certificate)).toBe(expected);
    expect(asked).toEqual(['true devices']);
  });
});
