import { parseSubjectKeyIdentifier } from '../../../pki/x509/extensions.ts';
import { OID } from '../../../pki/der/oids.ts';
import { subjectKeyIdentifier as identifierOf } from '../../../pki/x509/public-key.ts';
import { extensionValue, type LintRule } from './rule.ts';

export const subjectKeyIdentifier: LintRule = {
  name: 'subject-key-identifier',
  source: 'RFC 5280 §4.2.1.2',
  blames: 'ca',
  check: (subject) => {
    const identifier = extensionValue(subject, OID.subjectKeyIdentifier, parseSubjectKeyIdentifier);
    if (identifier === undefined) return 'subjectKeyIdentifier must be present';
    return identifier.equals(identifierOf(subject.tbs.spki))
      ? undefined
      : 'subjectKeyIdentifier must be the SHA-1 of the public key';
  },
};
