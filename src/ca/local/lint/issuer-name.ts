import type { LintRule } from './rule.ts';

export const issuerName: LintRule = {
  name: 'issuer-name',
  source: 'RFC 5280 §4.1.2.4',
  blames: 'ca',
  check: ({ tbs, issuer }) => {
    if (tbs.issuer.rdns.length === 0) return 'the issuer must not be empty';
    return tbs.issuer.der.equals(issuer.subject.der)
      ? undefined
      : "the issuer must be the CA certificate's subject, byte for byte";
  },
};
