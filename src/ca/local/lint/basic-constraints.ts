import { parseBasicConstraints } from '../../../pki/x509/extensions.ts';
import { OID } from '../../../pki/der/oids.ts';
import { extensionValue, type LintRule } from './rule.ts';

export const basicConstraints: LintRule = {
  name: 'basic-constraints',
  source: 'RFC 5280 §4.2.1.9',
  blames: 'ca',
  check: (subject) => {
    const constraints = extensionValue(subject, OID.basicConstraints, parseBasicConstraints);
    if (constraints === undefined) return 'basicConstraints must be present';
    if (constraints.ca) return 'an end entity must not be a CA';
    return constraints.pathLength === undefined ? undefined : 'pathLenConstraint is for CAs only';
  },
};
