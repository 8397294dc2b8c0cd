import { findExtension } from '../../../pki/x509/extensions.ts';
import { OID } from '../../../pki/der/oids.ts';
import type { LintRule } from './rule.ts';

export const subjectOrSan: LintRule = {
  name: 'subject-or-san',
  source: 'RFC 5280 §4.1.2.6, §4.2.1.6',
  blames: 'request',
  check: ({ tbs }) => {
    const san = findExtension(tbs.extensions, OID.subjectAltName);
    if (tbs.subject.rdns.length > 0)
      return san?.critical === true ? 'subjectAltName must not be critical beside a subject' : undefined;
    if (san === undefined) return 'an empty subject needs a subjectAltName';
    return san.critical ? undefined : 'subjectAltName must be critical when the subject is empty';
  },
};
