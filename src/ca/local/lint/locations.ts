import { parseAuthorityInfoAccess, parseCrlDistributionPoints } from '../../../pki/x509/extensions.ts';
import { generalNameProblem } from '../../../pki/x509/general-name.ts';
import { OID } from '../../../pki/der/oids.ts';
import { extensionValue, type LintRule } from './rule.ts';

export const locations: LintRule = {
  name: 'locations',
  source: 'RFC 5280 §4.2.1.13, §4.2.2.1',
  blames: 'ca',
  check: (subject) => {
    const points = extensionValue(subject, OID.cRLDistributionPoints, parseCrlDistributionPoints);
    if (points?.length === 0) return 'cRLDistributionPoints must name a location';
    const access = extensionValue(subject, OID.authorityInfoAccess, parseAuthorityInfoAccess);
    const urls = [...(points ?? []), ...(access?.ocsp ?? []), ...(access?.caIssuers ?? [])];
    if (access !== undefined && access.ocsp.length + access.caIssuers.length === 0)
      return 'authorityInfoAccess must name a location';
    const wrong = urls.find((value) => generalNameProblem({ kind: 'uri', value }) ?? !/^(http|ldap)s?:/i.test(value));
    return wrong === undefined ? undefined : `${JSON.stringify(wrong)} is not a URL to fetch from`;
  },
};
