import { expect, test } from 'vitest';

import { boundsProblem, CERTIFICATE_BOUNDS } from '../../../src/pki/x509/certificate-bounds.ts';
import { DerError } from '../../../src/pki/der/der.ts';
import type { Extension } from '../../../src/pki/x509/extensions.ts';
import { dns, extension, extKeyUsage, makeCa, makeClient, subjectAltName } from '../../support/certificates.ts';

const root = await makeCa('CN=Root');
const times = <T>(count: number, make: (n: number) => T): T[] => Array.from({ length: count }, (_, n) => make(n));
const rdns = (count: number): string => times(count, (n) => `CN=${n}`).join(',');

interface Shape {
  readonly subject?: string;
  readonly issuerName?: string;
  readonly extensions?: readonly Extension[];
}
const certificate = async ({ subject = 'CN=a', ...spec }: Shape): Promise<Buffer> =>
  (await makeClient(subject, root, spec)).der;

const names = (count: number): Extension => subjectAltName(...times(count, (n) => dns(`a${n}`)));
const unknown = (size: number, arc = 1): Extension => extension(`1.3.6.1.4.1.99999.${arc}`, false, Buffer.alloc(size));

test.each<[string, Shape, string | undefined]>([
  ['an ordinary one', {}, undefined],
  ['64 attributes in the subject', { subject: rdns(64) }, undefined],
  ['65 attributes in the subject', { subject: rdns(65) }, 'its subject has more than 64 attributes'],
  ['500 RDNs', { subject: rdns(500) }, /its subject has \d+ octets, more than 4096/.source],
  ['65 attributes in one RDN', { subject: rdns(65).replaceAll(',', '+') }, 'its subject has more than 64 attributes'],
  ['65 attributes in the issuer', { issuerName: rdns(65) }, 'its issuer has more than 64 attributes'],
  ['one long attribute', { subject: `CN=${'a'.repeat(4090)}` }, /its subject has \d+ octets, more than 4096/.source],
  ['a large extension that is not parsed', { extensions: [unknown(12_000)] }, undefined],
  ['a large one of ML-DSA', { extensions: [unknown(20_000)] }, undefined],
  ['more than 24 KiB', { extensions: [unknown(25_000)] }, /it has \d+ octets, more than 24576/.source],
  ['64 extensions', { extensions: times(64, (n) => unknown(1, n)) }, undefined],
  ['65 extensions', { extensions: times(65, (n) => unknown(1, n)) }, 'it has more than 64 extensions'],
  ['1000 alternative names', { extensions: [names(1000)] }, undefined],
  ['1001 alternative names', { extensions: [names(1001)] }, 'it has more than 1000 subject alternative names'],
  [
    'a large extKeyUsage',
    { extensions: [extKeyUsage(...times(400, (n) => `1.3.6.1.4.1.99999.${n}`))] },
    /an extension has \d+ octets, more than 4096/.source,
  ],
])('bounds of a presented certificate: %s', async (_, shape, problem) => {
  const found = boundsProblem(await certificate(shape));
  if (problem === undefined) expect(found).toBeUndefined();
  else expect(found).toMatch(new RegExp(`^${problem}$`));
});

test('what is cut off is malformed, wherever the cut is', async () => {
  const der = await certificate({ extensions: [names(2)] });
  for (let length = 0; length < der.length; length++)
    expect(() => boundsProblem(der.subarray(0, length))).toThrow(DerError);
  expect(CERTIFICATE_BOUNDS.certificate).toBe(24_576);
});
