import { attributeValues } from '../../../pki/name.ts';
import { parseGeneralNames, type GeneralName } from '../../../pki/general-name.ts';
import { nameConstraintProblem, parseNameConstraints } from '../../../pki/name-constraints.ts';
import { findExtension } from '../../../pki/extensions.ts';
import { OID } from '../../../pki/oids.ts';
import { extensionValue, type LintRule, type LintSubject } from './rule.ts';

/** Names the constraints apply to: SANs, and emailAddress in the subject where no email SAN stands (RFC 5280 §4.2.1.10). */
function constrainedNames(subject: LintSubject): GeneralName[] {
  const names = extensionValue(subject, OID.subjectAltName, parseGeneralNames) ?? [];
  if (names.some(({ kind }) => kind === 'email')) return names;
  const emails = attributeValues(subject.tbs.subject, OID.emailAddress);
  return [...names, ...emails.map((value): GeneralName => ({ kind: 'email', value }))];
}

export const nameConstraints: LintRule = {
  name: 'name-constraints',
  source: 'RFC 5280 §4.2.1.10',
  blames: 'request',
  check: (subject) => {
    const extension = findExtension(subject.issuer.extensions, OID.nameConstraints);
    if (extension === undefined) return undefined;
    return nameConstraintProblem(parseNameConstraints(extension.value), subject.tbs.subject, constrainedNames(subject));
  },
};
