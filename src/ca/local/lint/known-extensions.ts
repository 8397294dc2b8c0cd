import { OID, oidName } from '../../../pki/der/oids.ts';
import { reservedExtension } from '../../../pki/x509/reserved-extensions.ts';
import type { LintRule } from './rule.ts';

/** Extension → whether it is critical; undefined: another rule decides. */
const KNOWN: ReadonlyMap<string, boolean | undefined> = new Map<string, boolean | undefined>([
  [OID.basicConstraints, true],
  [OID.keyUsage, true],
  [OID.extKeyUsage, false],
  [OID.subjectKeyIdentifier, false],
  [OID.authorityKeyIdentifier, false],
  [OID.subjectAltName, undefined],
  [OID.cRLDistributionPoints, false],
  [OID.authorityInfoAccess, false],
  [OID.certificatePolicies, false],
]);

export const knownExtensions: LintRule = {
  name: 'known-extensions',
  source: 'RFC 5280 §4.2.1, §4.2.2',
  blames: 'ca',
  check: ({ tbs, further }) => {
    for (const { oid, critical } of tbs.extensions) {
      const isOfProfile = further?.has(oid) === true && reservedExtension(oid) === undefined;
      if (!KNOWN.has(oid) && !isOfProfile) return `the extension ${oidName(oid)} is not one that this CA issues`;
      const expected = isOfProfile ? further.get(oid) : KNOWN.get(oid);
      if (expected !== undefined && expected !== critical)
        return `the extension ${oidName(oid)} must ${expected ? '' : 'not '}be critical`;
    }
    return undefined;
  },
};
