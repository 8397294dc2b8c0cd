import { Tag } from '../../../pki/der/der.ts';
import type { LintRule } from './rule.ts';

const fits = (date: Date, tag: number): boolean =>
  tag === (date.getUTCFullYear() < 2050 ? Tag.UTC_TIME : Tag.GENERALIZED_TIME);

export const validityEncoding: LintRule = {
  name: 'validity-encoding',
  source: 'RFC 5280 §4.1.2.5',
  blames: 'ca',
  check: ({ tbs: { notBefore, notAfter, timeTags } }) =>
    fits(notBefore, timeTags[0]) && fits(notAfter, timeTags[1])
      ? undefined
      : 'times must be UTCTime through 2049 and GeneralizedTime from 2050 on',
};
