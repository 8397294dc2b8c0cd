import type { LintRule } from './rule.ts';

export const validityWithinCa: LintRule = {
  name: 'validity-within-ca',
  source: 'RFC 5280 §6.1.3',
  blames: 'ca',
  check: ({ tbs, issuer }) =>
    tbs.notBefore >= issuer.notBefore && tbs.notAfter <= issuer.notAfter
      ? undefined
      : 'the validity must lie within that of the CA certificate',
};
