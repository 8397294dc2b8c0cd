/** Asks for the status of a certificate: openssl reads the requests and signs the responses. */
import { readFileSync, writeFileSync } from 'node:fs';
import { afterAll, expect, test } from 'vitest';
import { DerError } from '../../../src/pki/der/der.ts';
import { ocspRequestFor, readOcspStatus } from '../../../src/pki/ocsp/ocsp-client.ts';
import { failureResponse } from '../../../src/pki/ocsp/ocsp.ts';
import { type Certificate, parsePemCertificates } from '../../../src/pki/x509/certificate.ts';
import { openssl, temporaryFolder } from '../../support/openssl.ts';

const DAY = 86_400_000;
const folder = temporaryFolder();
afterAll(() => folder.remove());

function made(name: string, ...more: readonly string[]): Certificate {
  const [key, out] = [folder.file(`${name}.key`), folder.file(`${name}.pem`)];
  const self = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '9'];
  openssl([...self, '-subj', `/CN=${name}`, '-keyout', key, '-out', out, ...more]);
  const [certificate] = parsePemCertificates(readFileSync(out, 'latin1'));
  if (certificate === undefined) throw new Error(name);
  return certificate;
}
const by = (ca: string): string[] => ['-CA', folder.file(`${ca}.pem`), '-CAkey', folder.file(`${ca}.key`)];

const issuer = made('issuer');
made('other');
made('delegate', ...by('issuer'), '-addext', 'extendedKeyUsage=OCSPSigning');
made('impostor', ...by('issuer'));
const device = made('device', ...by('issuer'), '-set_serial', '0x00c0ffee');

function answer(state: 'V' | 'R' | undefined, signer = 'issuer'): Buffer {
  const [index, request, response] = [folder.file('index'), folder.file('request'), folder.file('response')];
  const line = `${state ?? ''}\t400101000000Z\t${state === 'R' ? '260101000000Z' : ''}\tC0FFEE\tunknown\t/CN=device\n`;
  writeFileSync(index, state === undefined ? '' : line);
  writeFileSync(request, ocspRequestFor(device, issuer));
  const signing = ['-rsigner', folder.file(`${signer}.pem`), '-rkey', folder.file(`${signer}.key`), '-ndays', '1'];
  openssl([
    'ocsp',
    '-index',
    index,
    '-CA',
    folder.file('issuer.pem'),
    ...signing,
    '-reqin',
    request,
    '-respout',
    response,
  ]);
  return readFileSync(response);
}

test.each([
  ['V', 'good'],
  ['R', 'revoked'],
  [undefined, 'unknown'],
] as const)(
  'RFC 6960 §2.2: an entry %s in the index of openssl is %s, from the CA and from its responder',
  async (state, status) => {
    for (const signer of ['issuer', 'delegate'])
      expect(await readOcspStatus(answer(state, signer), device, issuer, Date.now()), signer).toBe(status);
  },
);

test('a response of anybody else, about another certificate, of another time, or without a status says nothing', async () => {
  const read = (der: Buffer, of = device, now = Date.now()) => readOcspStatus(der, of, issuer, now);
  for (const signer of ['other', 'impostor']) expect(await read(answer('R', signer)), signer).toBeUndefined();
  expect(await read(answer('R'), made('device-2', ...by('issuer')))).toBeUndefined();
  for (const days of [-2, 2]) expect(await read(answer('R'), device, Date.now() + days * DAY)).toBeUndefined();
  expect(await read(failureResponse('tryLater'))).toBeUndefined();
  await expect(read(Buffer.from('<html>'))).rejects.toThrow(DerError);
});

test('a certificate of another CA with a negative serial number is asked for (RFC 5280 §4.1.2.2)', () => {
  const request = ocspRequestFor(made('negative', ...by('issuer'), '-set_serial', '-5'), issuer);
  expect(request.includes(Buffer.from('0201fb', 'hex'))).toBe(true);
});
