import { formatGeneralName, generalNameProblem, parseGeneralNames } from '../../../pki/x509/general-name.ts';
import { OID } from '../../../pki/der/oids.ts';
import { extensionValue, type LintRule } from './rule.ts';

export const sanForm: LintRule = {
  name: 'san-form',
  source: 'RFC 5280 §4.2.1.6',
  blames: 'request',
  check: (subject) => {
    for (const name of extensionValue(subject, OID.subjectAltName, parseGeneralNames) ?? []) {
      if (name.kind === 'other') return 'subjectAltName may hold DNS, IP, email and URI names only';
      const problem = generalNameProblem(name);
      if (problem !== undefined) return `subjectAltName ${JSON.stringify(formatGeneralName(name))} ${problem}`;
    }
    return undefined;
  },
};
