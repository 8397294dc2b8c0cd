import { parseCertificatePolicies } from '../../../pki/x509/certificate-policies.ts';
import { findExtension } from '../../../pki/x509/extensions.ts';
import { generalNameProblem } from '../../../pki/x509/general-name.ts';
import { firstRepeated, OID } from '../../../pki/der/oids.ts';
import { extensionValue, type LintRule } from './rule.ts';

export const certificatePolicies: LintRule = {
  name: 'certificate-policies',
  source: 'RFC 5280 §4.2.1.4',
  blames: 'ca',
  check: (subject) => {
    const policies = extensionValue(subject, OID.certificatePolicies, parseCertificatePolicies);
    if (policies === undefined) return undefined;
    const oids = policies.map(({ oid }) => oid);
    const twice = firstRepeated(oids);
    if (twice !== undefined) return `the policy ${twice} must not be named twice`;
    const wrong = policies.find(
      ({ cps }) => cps !== undefined && generalNameProblem({ kind: 'uri', value: cps }) !== undefined,
    )?.cps;
    if (wrong !== undefined) return `${JSON.stringify(wrong)} is no URI of a CPS`;
    const { extensions } = subject.issuer;
    const own = findExtension(extensions, OID.certificatePolicies);
    // where policies are mapped the CA's own are called otherwise
    if (own === undefined || findExtension(extensions, OID.policyMappings) !== undefined) return undefined;
    const allowed = parseCertificatePolicies(own.value).map(({ oid }) => oid);
    if (allowed.includes(OID.anyPolicy)) return undefined;
    const beyond = oids.find((oid) => !allowed.includes(oid));
    return beyond && `the CA certificate itself is not under the policy ${beyond}`;
  },
};
