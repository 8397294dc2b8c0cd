import { spawnSync } from 'node:child_process';
import { createPrivateKey } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { afterAll, expect, test } from 'vitest';
import { FileSigner } from '../../../src/ca/local/index.ts';
import { bitString, sequence } from '../../../src/pki/der/der.ts';
import { parsePemCertificates } from '../../../src/pki/x509/certificate.ts';
import {
  buildTbsCertList,
  encodeCrlEntry,
  parseCertificateList,
  REVOCATION_REASONS,
  revokedEntries,
} from '../../../src/pki/x509/crl.ts';
import { CA_KINDS, type CaKind, makeCa } from '../../support/ca.ts';
import { opensslText, temporaryFolder } from '../../support/openssl.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());
const thisUpdate = new Date(Math.floor(Date.now() / 1000) * 1000);
const nextUpdate = new Date(thisUpdate.getTime() + 3_600_000);

async function list(kind: CaKind, entries: readonly Buffer[], number = 1): Promise<{ der: Buffer; issuer: string }> {
  const ca = makeCa(folder.file, `crl-${kind}`, { kind });
  const [certificate] = parsePemCertificates(readFileSync(ca.certificate, 'latin1'));
  if (certificate?.subjectKeyIdentifier === undefined) throw new Error('no CA certificate');
  const signer = new FileSigner(createPrivateKey(readFileSync(ca.privateKey, 'latin1')));
  const tbs = buildTbsCertList({
    signatureAlgorithm: signer.signatureAlgorithm,
    issuer: certificate.subject.der,
    thisUpdate,
    nextUpdate,
    authorityKeyIdentifier: certificate.subjectKeyIdentifier,
    number,
    entries,
  });
  const der = sequence(tbs, signer.signatureAlgorithm, bitString(await signer.sign(tbs)));
  return { der, issuer: ca.certificate };
}

/** What openssl says about it, with the verdict on the signature. */
function inOpenssl({ der, issuer }: { der: Buffer; issuer: string }): string {
  writeFileSync(folder.file('list.crl'), der);
  const args = ['crl', '-inform', 'DER', '-in', folder.file('list.crl'), '-noout', '-text', '-verify'];
  const { stdout, stderr } = spawnSync('openssl', [...args, '-CAfile', issuer], { encoding: 'utf8', timeout: 60_000 });
  return stdout + stderr;
}

test.each(CA_KINDS)('RFC 5280 §5: openssl verifies a v2 CRL signed with %s', async (kind) => {
  const text = inOpenssl(await list(kind, [], 4711));
  expect(text).toContain('verify OK');
  expect(text).toContain('Version 2');
  expect(text).toMatch(/X509v3 CRL Number:\s+4711/);
  expect(text).toContain('X509v3 Authority Key Identifier');
  expect(text).toContain('No Revoked Certificates');
});

test('entries carry serial, time, reason and invalidity date; unspecified carries no reason', async () => {
  const entries = REVOCATION_REASONS.map((reason, n) =>
    encodeCrlEntry({
      serialNumber: `f${n}00`,
      revocationDate: new Date('2026-03-04T05:06:07Z'),
      reason,
      invalidityDate: n === 1 ? new Date('2026-03-01T00:00:00Z') : undefined,
    }),
  );
  const made = await list('ec:P-256', entries);
  const text = inOpenssl(made);
  expect(text).toContain('verify OK');
  expect(text).toContain('Serial Number: F000\n        Revocation Date: Mar  4 05:06:07 2026 GMT\n');
  expect(text).toMatch(/Key Compromise\s+Invalidity Date:\s+Mar {2}1 00:00:00 2026 GMT/);
  for (const words of ['CA Compromise', 'Affiliation Changed', 'Superseded', 'Cessation Of Operation'])
    expect(text).toContain(words);
  for (const words of ['Certificate Hold', 'Privilege Withdrawn', 'AA Compromise']) expect(text).toContain(words);
  const read = [...revokedEntries(parseCertificateList(made.der))];
  expect(read.map(({ serialNumber }) => serialNumber)).toEqual(REVOCATION_REASONS.map((_, n) => `f${n}00`));
  expect(read[0]?.extensions).toEqual([]);
});

test('RFC 5280 §5.1.2.4: from 2050 on times are GeneralizedTime', () => {
  const date = new Date('2050-01-01T00:00:00Z');
  const entry = encodeCrlEntry({
    serialNumber: '01',
    revocationDate: date,
    reason: 'unspecified',
    invalidityDate: undefined,
  });
  expect(opensslText(['asn1parse', '-inform', 'DER'], entry)).toContain('GENERALIZEDTIME   :20500101000000Z');
});
