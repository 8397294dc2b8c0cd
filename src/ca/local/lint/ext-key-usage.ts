import { parseExtKeyUsage } from '../../../pki/x509/extensions.ts';
import { OID, oidName } from '../../../pki/der/oids.ts';
import { extensionValue, type LintRule } from './rule.ts';

export const extKeyUsage: LintRule = {
  name: 'ext-key-usage',
  source: 'RFC 5280 §4.2.1.12',
  blames: 'ca',
  check: (subject) => {
    const purposes = extensionValue(subject, OID.extKeyUsage, parseExtKeyUsage);
    if (purposes === undefined) return undefined;
    if (new Set(purposes).size !== purposes.length) return 'a purpose must not be named twice';
    const { extKeyUsage: allowed } = subject.issuer;
    if (allowed === undefined || allowed.includes(OID.anyExtendedKeyUsage)) return undefined;
    const beyond = purposes.find((purpose) => !allowed.includes(purpose));
    return beyond && `the CA certificate itself is not for ${oidName(beyond)}`;
  },
};
