import { namesMatch } from '../../../pki/x509/name-matching.ts';
import type { LintRule } from './rule.ts';

export const subjectIsNotIssuer: LintRule = {
  name: 'subject-is-not-issuer',
  source: 'RFC 5280 §3.2, §6.1',
  blames: 'request',
  check: ({ tbs, issuer }) =>
    namesMatch(tbs.subject, issuer.subject)
      ? "the subject must not be the CA's own: the certificate would pass for self-issued"
      : undefined,
};
