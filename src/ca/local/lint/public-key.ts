import { publicKeyProblem, samePublicKey } from '../../../pki/x509/public-key.ts';
import type { LintRule } from './rule.ts';

export const publicKey: LintRule = {
  name: 'public-key',
  source: 'RFC 5280 §4.1.2.7, NIST SP 800-57 part 1 §5.6.1',
  blames: 'request',
  check: ({ publicKey: key, issuer }) => {
    if (samePublicKey(key, issuer.publicKey)) return "the public key must not be the CA's own";
    const problem = publicKeyProblem(key);
    return problem && `the public key ${problem.reason}`;
  },
};
