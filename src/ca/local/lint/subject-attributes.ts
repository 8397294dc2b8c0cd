import { attributeProblem } from '../../../pki/x509/attribute-syntax.ts';
import { isDerOrdered } from '../../../pki/x509/name.ts';
import type { LintRule } from './rule.ts';

export const subjectAttributes: LintRule = {
  name: 'subject-attributes',
  source: 'RFC 5280 §4.1.2.6, appendix A.1',
  blames: 'request',
  check: ({ tbs: { subject } }) => {
    if (!isDerOrdered(subject)) return 'the subject has a multi-valued RDN that is not in DER order';
    const problem = subject.rdns.flat().map(attributeProblem).find(Boolean);
    return problem && `the subject ${problem}`;
  },
};
