import { CertificatePolicyExtension } from '@peculiar/x509';
import { describe, expect, test } from 'vitest';
import { DerError, oid, sequence, utf8String } from '../../../src/pki/der/der.ts';
import { OID } from '../../../src/pki/der/oids.ts';
import { encodeCertificatePolicies, parseCertificatePolicies } from '../../../src/pki/x509/extensions.ts';

describe('RFC 5280 §4.2.1.4: certificatePolicies', () => {
  test('what is written is read, here and by @peculiar/x509', () => {
    const policies = [
      { oid: '1.2.3', cps: 'https://pki.example.com/cps' },
      { oid: '1.2.4', cps: undefined },
    ];
    const der = encodeCertificatePolicies(policies);
    expect(parseCertificatePolicies(der)).toEqual(policies);
    expect(encodeCertificatePolicies(parseCertificatePolicies(der))).toEqual(der);
    const theirs = new CertificatePolicyExtension(['1.2.3', '1.2.4']);
    expect(parseCertificatePolicies(Buffer.from(theirs.value))).toEqual([{ oid: '1.2.3' }, { oid: '1.2.4' }]);
  });

  test('a qualifier of another kind is left out', () => {
    const notice = sequence(oid('1.3.6.1.5.5.7.2.2'), sequence(utf8String('notice')));
    expect(parseCertificatePolicies(sequence(sequence(oid('1.2.3'), sequence(notice))))).toEqual([{ oid: '1.2.3' }]);
  });

  test.each([
    ['none', sequence()],
    ['a policy that is no sequence', sequence(oid('1.2.3'))],
    ['a policy without an OID', sequence(sequence())],
    ['a field too many', sequence(sequence(oid('1.2.3'), sequence(), sequence()))],
    ['a qualifier without a value', sequence(sequence(oid('1.2.3'), sequence(sequence(oid(OID.cpsQualifier)))))],
  ])('refused: %s', (_, der) => {
    expect(() => parseCertificatePolicies(der)).toThrow(DerError);
  });
});
