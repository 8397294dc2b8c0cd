import { parseKeyUsage } from '../../../pki/x509/extensions.ts';
import { OID } from '../../../pki/der/oids.ts';
import { usagesOfKey } from '../key-usage.ts';
import { extensionValue, type LintRule } from './rule.ts';

export const keyUsage: LintRule = {
  name: 'key-usage',
  source: 'RFC 5280 §4.2.1.3, RFC 3279 §2.3, RFC 5480 §3, RFC 8410 §5',
  blames: 'ca',
  check: (subject) => {
    const usages = extensionValue(subject, OID.keyUsage, parseKeyUsage);
    if (usages === undefined) return undefined;
    if (usages.includes('keyCertSign') || usages.includes('cRLSign'))
      return 'an end entity must sign neither certificates nor CRLs';
    const wrong = usages.find((usage) => !usagesOfKey(subject.publicKey).includes(usage));
    if (wrong !== undefined) return `a ${subject.publicKey.keyType} key has no use ${wrong}`;
    const only = usages.find((usage) => usage === 'encipherOnly' || usage === 'decipherOnly');
    return only !== undefined && !usages.includes('keyAgreement') ? `${only} needs keyAgreement` : undefined;
  },
};
