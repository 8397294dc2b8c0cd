/** Seeded mutations of valid DER: whatever comes, the readers throw DerError or EstuaryError, or nothing. */
import { readFileSync } from 'node:fs';

import { afterAll, describe, expect, test } from 'vitest';

import { EstuaryError } from '../../src/errors.ts';
import { lint } from '../../src/ca/local/lint/index.ts';
import { parseCertificate, parsePemCertificates, verifyCertificateSignature } from '../../src/pki/x509/certificate.ts';
import { parseCsr, verifyCsr } from '../../src/pki/pkcs10/csr.ts';
import { DerError } from '../../src/pki/der/der.ts';
import { formatGeneralName, parseGeneralNames } from '../../src/pki/x509/general-name.ts';
import { formatName, parseDistinguishedName, parseName } from '../../src/pki/x509/name.ts';
import { certsOnly, parseCertsOnly } from '../../src/pki/cms/pkcs7.ts';
import { makeCa } from '../support/ca.ts';
import { buildCsr, challengePassword, dns, email, extensionRequest, ip, makeKey, san, uri } from '../support/csr.ts';
import { temporaryFolder } from '../support/openssl.ts';
import { mutate, random } from './mutation.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());
const made = makeCa(folder.file, 'fuzz', {
  kind: 'ec:P-256',
  extensions: ['nameConstraints=permitted;DNS:example', 'crlDistributionPoints=URI:http://a.example/'],
});
const [ca] = parsePemCertificates(readFileSync(made.certificate, 'utf8'));
if (ca === undefined) throw new Error('no certificate');

const requests = (['P-256', 'ed25519', 'rsa2048', 'P-384'] as const).map((kind) =>
  buildCsr(makeKey(kind), {
    ...(kind === 'P-384' ? { hash: 'sha384' } : {}),
    attributes: [
      extensionRequest(san(dns('a.example'), ip(10, 0, 0, 1), email('a@b.example'), uri('urn:x:y'))),
      challengePassword('secret'),
    ],
  }),
);

const ROUNDS = 4000;
const SEEDS = [1, 2, 3, 4];

/** Runs `read` over mutations and returns the seeds whose exception is of another class than allowed. */
async function survive(
  inputs: readonly Buffer[],
  seed: number,
  allowed: (error: unknown) => boolean,
  read: (der: Buffer) => unknown,
): Promise<string[]> {
  const next = random(seed);
  const strange: string[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const der = mutate(inputs[round % inputs.length] ?? Buffer.alloc(0), next);
    try {
      await read(der);
    } catch (error) {
      if (!allowed(error)) strange.push(`round ${round}: ${String(error)} for ${der.toString('hex')}`);
    }
  }
  return strange;
}

const isDerError = (error: unknown): boolean => error instanceof DerError;
const isRefusal = (error: unknown): boolean => error instanceof EstuaryError && error.status === 400;

describe.each(SEEDS)('seed %i', (seed) => {
  test('a request is accepted or refused with 400', async () => {
    expect(await survive(requests, seed, isRefusal, (der) => verifyCsr(parseCsr(der)))).toEqual([]);
  });

  test('a certificate is read or DerError is thrown; its signature is checked without an exception', async () => {
    const read = async (der: Buffer): Promise<unknown> => {
      const certificate = parseCertificate(der);
      formatName(certificate.subject);
      return verifyCertificateSignature(certificate, certificate);
    };
    expect(await survive([ca.der], seed, isDerError, read)).toEqual([]);
  });

  test('a TBSCertificate is linted without an exception', async () => {
    const context = { issuer: ca, signatureAlgorithm: ca.signatureAlgorithm, maxValidityDays: 397 };
    expect(
      await survive(
        [ca.tbs],
        seed,
        () => false,
        (der) => lint(der, context),
      ),
    ).toEqual([]);
  });

  test('certs-only messages, names and SANs are read or DerError is thrown', async () => {
    expect(await survive([certsOnly([ca.der])], seed, isDerError, parseCertsOnly)).toEqual([]);
    expect(await survive([ca.subject.der], seed, isDerError, (der) => formatName(parseName(der)))).toEqual([]);
    const names = requests.flatMap((der) => parseCsr(der).extensions.map(({ value }) => value));
    const format = (der: Buffer): unknown => parseGeneralNames(der).map(formatGeneralName);
    expect(await survive(names, seed, isDerError, format)).toEqual([]);
  });

  test('the text of any name that is read is read again', async () => {
    const again = (der: Buffer): void => {
      let text;
      try {
        text = formatName(parseName(der));
      } catch {
        return; // no name
      }
      try {
        expect(formatName(parseDistinguishedName(text))).toBe(text);
      } catch (error) {
        // an empty value, or one that its usual string type does not hold, can be written but not asked for
        if (!(error instanceof RangeError)) throw error;
      }
    };
    expect(await survive([ca.subject.der, ca.issuer.der], seed, () => false, again)).toEqual([]);
  });
});
