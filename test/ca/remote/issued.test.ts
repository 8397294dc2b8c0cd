/** The chain of a remote CA that is published. */
import { expect, test } from 'vitest';
import { verifiedChain } from '../../../src/ca/remote/issued.ts';
import { parseCertificate } from '../../../src/pki/x509/certificate.ts';
import { makeCa } from '../../support/certificates.ts';
import { NOW } from '../../auth/chain.ts';

test('a self-signed upstream CA is listed once, and so is each CA above another', async () => {
  const rootIssuer = await makeCa('CN=Root');
  const root = parseCertificate(rootIssuer.der);
  const issuing = parseCertificate((await makeCa('CN=Issuing', { issuer: rootIssuer })).der);
  expect(await verifiedChain([root], [root], NOW)).toEqual([root]);
  expect(await verifiedChain([root, root], [root], NOW)).toEqual([root]);
  expect(await verifiedChain([issuing, root, issuing], [root], NOW)).toEqual([issuing, root]);
});
