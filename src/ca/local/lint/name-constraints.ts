import { parseGeneralNames } from '../../../pki/x509/general-name.ts';
import { nameConstraintProblem, parseNameConstraints } from '../../../pki/x509/name-constraints.ts';
import { altNamesInSubject } from '../../../pki/x509/subject-names.ts';
import { findExtension } from '../../../pki/x509/extensions.ts';
import { OID } from '../../../pki/der/oids.ts';
import { extensionValue, type LintRule } from './rule.ts';

export const nameConstraints: LintRule = {
  name: 'name-constraints',
  source: 'RFC 5280 §4.2.1.10',
  blames: 'request',
  check: (subject) => {
    const extension = findExtension(subject.issuer.extensions, OID.nameConstraints);
    if (extension === undefined) return undefined;
    const names = extensionValue(subject, OID.subjectAltName, parseGeneralNames) ?? [];
    const all = [...names, ...altNamesInSubject(subject.tbs.subject)];
    return nameConstraintProblem(parseNameConstraints(extension.value), subject.tbs.subject, all, true);
  },
};
