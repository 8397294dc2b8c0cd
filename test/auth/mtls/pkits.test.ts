/** NIST's Public Key Interoperability Test Suite: CRLs, key changes and name constraints (fixtures/README.md). */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { describe, expect, test } from 'vitest';

import { validateClientCertificate } from '../../../src/auth/mtls/mtls.ts';
import { encodePem } from '../../../src/pki/der/pem.ts';
import { ROOT } from '../../support/root.ts';
import { NOW } from '../chain.ts';
import { clientTrust } from '../../support/client-trust.ts';

type Files = Readonly<Record<string, string>>;
const read = (): { endEntities: Files; authorities: Files; crls: Files } =>
  JSON.parse(readFileSync(join(ROOT, 'fixtures/pkits.json'), 'utf8')) as ReturnType<typeof read>;
const { endEntities, authorities, crls } = read();
const der = (base64: string): Buffer => Buffer.from(base64, 'base64');

const ANCHOR = 'TrustAnchorRootCertificate';
const trust = await clientTrust({
  trustAnchors: encodePem('CERTIFICATE', der(authorities[ANCHOR] ?? '')),
  intermediates: Object.values(authorities).map(der),
  crls: Object.entries(crls).map(([name, base64]) => ({ name, der: der(base64) })),
});

/** Where the sentence says more than that something is wrong with the path. */
const SENTENCES: Files = {
  InvalidRevokedCATest2EE: 'client certificate issuer revoked',
  InvalidRevokedEETest3EE: 'client certificate revoked',
  InvalidNegativeSerialNumberTest15EE: 'client certificate revoked',
  InvalidSeparateCertificateandCRLKeysTest20EE: 'client certificate revoked',
  InvalidSeparateCertificateandCRLKeysTest21EE: 'client certificate revocation status unknown',
  InvalidBasicSelfIssuedNewWithOldTest5EE: 'client certificate revoked',
};

describe('PKITS: the verdict that the name of each certificate tells', () => {
  test.each(Object.entries(endEntities))('%s', async (name, base64) => {
    const verdict = validateClientCertificate(trust, der(base64), [], NOW);
    if (name.startsWith('Valid')) await expect(verdict).resolves.toMatchObject({ path: expect.anything() as unknown });
    else
      await expect(verdict).rejects.toMatchObject({
        status: 401,
        message: SENTENCES[name] ?? (expect.stringContaining('certificate') as unknown),
      });
  });

  test('both verdicts are there', () => {
    const valid = Object.keys(endEntities).filter((name) => name.startsWith('Valid'));
    expect([valid.length, Object.keys(endEntities).length]).toEqual([22, 53]);
  });
});
