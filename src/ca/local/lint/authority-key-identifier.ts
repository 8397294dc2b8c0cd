import { parseAuthorityKeyIdentifier } from '../../../pki/x509/extensions.ts';
import { OID } from '../../../pki/der/oids.ts';
import { subjectKeyIdentifier } from '../../../pki/x509/public-key.ts';
import { extensionValue, type LintRule } from './rule.ts';

export const authorityKeyIdentifier: LintRule = {
  name: 'authority-key-identifier',
  source: 'RFC 5280 §4.2.1.1',
  blames: 'ca',
  check: (subject) => {
    const { issuer } = subject;
    const identifier = extensionValue(subject, OID.authorityKeyIdentifier, parseAuthorityKeyIdentifier)?.keyIdentifier;
    if (identifier === undefined) return 'authorityKeyIdentifier must be present, with a key identifier';
    return identifier.equals(issuer.subjectKeyIdentifier ?? subjectKeyIdentifier(issuer.spki))
      ? undefined
      : "authorityKeyIdentifier must be the CA certificate's subjectKeyIdentifier";
  },
};
