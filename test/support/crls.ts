/** How soon a revocation is in a CRL. */
import { expect } from 'vitest';
import { parseCertificateList, revokedEntries } from '../../src/pki/x509/crl.ts';
import { until } from './until.ts';

/**
 * Called when a certificate has been revoked: waits for a list that has it. A list without it was signed before the
 * revocation, and none is given out after its end. So relying parties know within `crl_interval`, however slow the test is.
 *
 * @param serialNumber in hex
 * @returns the DER of the list
 */
export function untilInCrl(fetchList: () => Promise<Buffer>, serialNumber: string): Promise<Buffer> {
  const revokedAt = Date.now();
  return until('a CRL with the certificate', async () => {
    const askedAt = Date.now();
    const der = await fetchList();
    const list = parseCertificateList(der);
    expect(list.nextUpdate?.getTime()).toBeGreaterThan(askedAt);
    for (const entry of revokedEntries(list)) if (entry.serialNumber === serialNumber.toLowerCase()) return der;
    expect(list.thisUpdate.getTime()).toBeLessThanOrEqual(revokedAt);
    return undefined;
  });
}
