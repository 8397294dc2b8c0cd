import { OID, oidName } from '../../../pki/der/oids.ts';
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
]);

export const knownExtensions: LintRule = {
  name: 'known-extensions',
  source: 'RFC 5280 §4.2.1, §4.2.2',
  blames: 'ca',
  check: ({ tbs }) => {
    for (const { oid, critical } of tbs.extensions) {
      if (!KNOWN.has(oid)) return `the extension ${oidName(oid)} is not one that this CA issues`;
      const expected = KNOWN.get(oid);
      if (expected !== undefined && expected !== critical)
        return `the extension ${oidName(oid)} must ${expected ? '' : 'not '}be critical`;
    }
    return undefined;
  },
};
