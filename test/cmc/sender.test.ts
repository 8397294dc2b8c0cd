/** Who signs the responses of CMC, and which method a sender used (docs/guides/cmc.md). */
import { expect, test } from 'vitest';
import type { Ca } from '../../src/ca/router.ts';
import {
  certificateIdentity,
  methodOf,
  responderFor,
  secretIdentity,
  type CmcParties,
  type Responder,
} from '../../src/cmc/sender.ts';
import { parseCertificate } from '../../src/pki/x509/certificate.ts';
import { makeCa, makeClient } from '../support/certificates.ts';

test('RFC 5272 §4.2: the configured responder signs for every CA; without it, the CA signs if it can', () => {
  const signerOf = (name: string) => ({ name }) as unknown as Responder['signer'];
  const caWith = (driver: object): Ca => ({ driver }) as unknown as Ca;
  const partiesWith = (responder: Responder | undefined): CmcParties => ({
    ...{ responder, raCertificates: [], secrets: new Map() },
  });
  const configured = { signer: signerOf('configured'), certificates: [Buffer.of(1)] };
  const signing = caWith({ cmsSigner: signerOf('CA'), cmsCertificates: [Buffer.of(2)] });
  const neither = caWith({});
  for (const ca of [signing, neither]) expect(responderFor(partiesWith(configured), ca)).toBe(configured);
  expect(responderFor(partiesWith(undefined), signing)).toEqual({
    ...{ signer: signerOf('CA'), certificates: [Buffer.of(2)] },
  });
  expect(responderFor(partiesWith(undefined), neither)).toBeUndefined();
});

test('a requester used a shared secret or a certificate, as its key in the queue says', async () => {
  const issuing = await makeCa('CN=Issuing');
  const certificate = parseCertificate((await makeClient('CN=device-1', issuing)).der);
  expect(methodOf(secretIdentity('device 7').requester)).toBe('cmc');
  expect(methodOf(certificateIdentity(certificate, parseCertificate(issuing.der)).requester)).toBe('mtls');
});
