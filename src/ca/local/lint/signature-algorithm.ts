import { algorithmFitsKey, parseSignatureAlgorithm } from '../../../pki/x509/signature-algorithms.ts';
import type { LintRule } from './rule.ts';

export const signatureAlgorithm: LintRule = {
  name: 'signature-algorithm',
  source: 'RFC 5280 §4.1.1.2',
  blames: 'ca',
  check: ({ tbs, issuer, signatureAlgorithm: outer }) => {
    if (!tbs.signature.equals(outer)) return 'the signature algorithm inside must be the one outside';
    return algorithmFitsKey(parseSignatureAlgorithm(outer), issuer.publicKey)
      ? undefined
      : "the signature algorithm must be one of the CA key's";
  },
};
