import type { LintRule } from './rule.ts';

export const version: LintRule = {
  name: 'version',
  source: 'RFC 5280 §4.1.2.1',
  blames: 'ca',
  check: ({ tbs }) => (tbs.version === 3 ? undefined : 'a certificate with extensions must be of version 3'),
};
