/** A certificate of any validity in the store of a server. */
import { createPrivateKey, createPublicKey, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { encodePem } from '../../src/pki/der/pem.ts';
import { parsePemCertificates } from '../../src/pki/x509/certificate.ts';
import { makeClient } from './certificates.ts';
import type { TestKey } from './csr.ts';
import type { ClientIdentity, Estuary } from './estuary.ts';

const DAY = 86_400_000;

export interface ImportOptions {
  /** The time left, in milliseconds; absent: it expired a day ago. */
  readonly end?: number;
  readonly ca?: 'devices' | 'lab';
}

/** Signs a certificate with a CA of the quickstart, and imports it. */
export async function importCertificate(
  estuary: Estuary,
  key: TestKey,
  cn: string,
  { end = -DAY, ca = 'devices' }: ImportOptions = {},
): Promise<ClientIdentity & { serial: string }> {
  const file = (name: string) => readFileSync(join(estuary.dir, 'ca', name), 'latin1');
  const name = ca === 'devices' ? 'issuing' : 'lab';
  const [issuing] = parsePemCertificates(file(`${name}.pem`));
  if (issuing === undefined) throw new Error('no CA');
  const privateKey = createPrivateKey(file(`${name}.key`));
  const keys = { privateKey, publicKey: createPublicKey(file(`${name}.pem`)) };
  const subject = new X509Certificate(issuing.der).subject.split('\n').toReversed().join(',');
  const issuer = { subject, kind: 'ec:P-256', keys, der: issuing.der } as const;
  const own = { privateKey: createPrivateKey(key.pem), publicKey: createPublicKey(key.pem) };
  const notAfter = Date.now() + end;
  const { der } = await makeClient(`CN=${cn}`, issuer, { keys: own, notBefore: Date.now() - 9 * DAY, notAfter });
  const cert = encodePem('CERTIFICATE', der);
  const { status, json } = await estuary.admin('POST', '/admin/certificates', { ca, pem: cert });
  if (status !== 201) throw new Error(`the import answered ${status}: ${JSON.stringify(json)}`);
  return { cert, key: key.pem, serial: new X509Certificate(cert).serialNumber.toLowerCase() };
}
