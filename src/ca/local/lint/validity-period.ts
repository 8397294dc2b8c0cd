import type { LintRule } from './rule.ts';

export const validityPeriod: LintRule = {
  name: 'validity-period',
  source: 'ca.profile.max_validity_days',
  blames: 'ca',
  check: ({ tbs, maxValidityDays }) => {
    // both ends belong to the period (RFC 5280 §4.1.2.5)
    const seconds = (tbs.notAfter.getTime() - tbs.notBefore.getTime()) / 1000 + 1;
    return seconds <= maxValidityDays * 86_400 ? undefined : `the validity must not exceed ${maxValidityDays} days`;
  },
};
