import { subjectProblem } from '../../../pki/x509/attribute-syntax.ts';
import type { LintRule } from './rule.ts';

export const subjectAttributes: LintRule = {
  name: 'subject-attributes',
  source: 'RFC 5280 §4.1.2.6, appendix A.1, X.501 §9.3',
  blames: 'request',
  check: ({ tbs: { subject } }) => {
    const problem = subjectProblem(subject);
    return problem && `the subject ${problem}`;
  },
};
