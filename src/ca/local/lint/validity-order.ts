import type { LintRule } from './rule.ts';

export const validityOrder: LintRule = {
  name: 'validity-order',
  source: 'RFC 5280 §4.1.2.5',
  blames: 'ca',
  check: ({ tbs }) => (tbs.notBefore < tbs.notAfter ? undefined : 'notBefore must be before notAfter'),
};
