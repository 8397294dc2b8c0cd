/** Shared by the tests of client trust and of CRLs: a small hierarchy, its CRLs, and queries about certificates. */
import type { ClientTrust } from '../../../src/auth/mtls/client-trust.ts';
import { validateClientCertificate } from '../../../src/auth/mtls/mtls.ts';
import { encodePem } from '../../../src/pki/der/pem.ts';
import { makeCa, makeClient, makeCrl, type CrlSpec, type Issuer } from '../../support/certificates.ts';
import type { CrlFile } from '../../support/client-trust.ts';
import { NOW } from '../chain.ts';

export const DAY = 86_400_000;

export const pem = (...certificates: readonly Issuer[]): string =>
  certificates.map(({ der }) => encodePem('CERTIFICATE', der)).join('');

export const root = await makeCa('CN=Root');
export const intermediate = await makeCa('CN=Intermediate', { issuer: root, serial: '0c0a' });
export const good = await makeClient('CN=good', root, { serial: '600d' });

export const crl = async (issuer: Issuer, spec: CrlSpec = {}): Promise<CrlFile> => ({
  name: 'test.crl',
  der: await makeCrl(issuer, { nextUpdate: NOW + DAY, ...spec }),
});

/** The error for a certificate, or undefined. */
export async function refusal(
  trust: ClientTrust,
  leaf: Pick<Issuer, 'der'>,
  now = NOW,
  expiredGraceSeconds = 0,
): Promise<string | undefined> {
  return validateClientCertificate(trust, leaf.der, [], now, { expiredGraceSeconds }).then(
    () => undefined,
    (error: unknown) => (error instanceof Error ? error.message : 'thrown'),
  );
}
