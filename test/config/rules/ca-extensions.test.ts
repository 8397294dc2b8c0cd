/** What `[[ca.profile.extensions]]` and `[[ca.profile.policies]]` may say. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { OID } from '../../../src/pki/der/oids.ts';
import { configFolder, toml } from '../support.ts';
import type { ConfigFolder } from '../support.ts';

let folder: ConfigFolder;
beforeAll(async () => {
  folder = await configFolder();
});
afterAll(() => folder.remove());

const extension = (...lines: string[]): string => ['[[ca.profile.extensions]]', ...lines].join('\n');
const ROLE = 'oid = "1.3.6.1.4.1.55555.1"';
const problems = async (text: string): Promise<string[]> =>
  (await folder.problems(toml(text))).map((line) => line.replace('est.toml: ca[devices].profile.', ''));

test('fixed and copied extensions, and policies with and without a CPS', async () => {
  const { config } = await folder.load(
    toml(
      [
        '[ca.profile]',
        'policies = ["1.2.3", { oid = "1.2.4", cps = "https://pki.example.com/cps" }]',
        extension(ROLE, 'from = "csr"'),
        extension('oid = "1.3.6.1.5.5.7.1.24"', 'critical = true', 'value = "3003020105"'),
      ].join('\n'),
    ),
  );
  expect(config.ca[0]?.profile.policies).toEqual([
    { oid: '1.2.3' },
    { oid: '1.2.4', cps: 'https://pki.example.com/cps' },
  ]);
  expect(config.ca[0]?.profile.extensions).toEqual([
    { oid: '1.3.6.1.4.1.55555.1', critical: false, from: 'csr' },
    { oid: '1.3.6.1.5.5.7.1.24', critical: true, value: '3003020105' },
  ]);
});

describe('never an extension that makes a CA, nor one that Estuary sets itself', () => {
  test.each([
    [OID.basicConstraints, 'basicConstraints is set by Estuary (never a CA)'],
    [OID.keyUsage, 'keyUsage is set by Estuary (key_usage)'],
    [OID.nameConstraints, 'nameConstraints is only for CA certificates'],
    [OID.policyConstraints, 'policyConstraints is only for CA certificates'],
    [OID.policyMappings, 'policyMappings is only for CA certificates'],
    [OID.inhibitAnyPolicy, 'inhibitAnyPolicy is only for CA certificates'],
    [OID.netscapeCertType, 'netscapeCertType may make a certificate a CA'],
    [OID.proxyCertInfo, 'proxyCertInfo lets a certificate issue other certificates (RFC 3820)'],
    [OID.subjectAltName, 'subjectAltName is set by Estuary (san)'],
    [OID.extKeyUsage, 'extKeyUsage is set by Estuary (extended_key_usage)'],
    [OID.microsoftApplicationPolicies, 'microsoftApplicationPolicies replaces extKeyUsage (extended_key_usage)'],
    [OID.certificatePolicies, 'certificatePolicies is set by Estuary (policies)'],
    [OID.subjectKeyIdentifier, 'subjectKeyIdentifier is set by Estuary (from the key)'],
    [OID.authorityKeyIdentifier, "authorityKeyIdentifier is set by Estuary (from the CA's key)"],
    [OID.cRLDistributionPoints, 'cRLDistributionPoints is set by Estuary (publication)'],
    [OID.authorityInfoAccess, 'authorityInfoAccess is set by Estuary (publication)'],
    [OID.ocspNoCheck, 'ocspNoCheck exempts a certificate from revocation'],
  ])('%s: %s', async (oid, reason) => {
    const allowed = '(the dotted OID of an extension that Estuary leaves to the profile)';
    for (const how of ['from = "csr"', 'value = "3000"'])
      expect(await problems(extension(`oid = "${oid}"`, how))).toEqual([`extensions[0].oid: ${reason} ${allowed}`]);
  });
});

describe('an extension that is refused', () => {
  const allowed = '(hex digits, two a byte: one DER value of at most 4096 bytes)';
  test.each([
    [
      'no OID',
      extension('oid = "role"', 'from = "csr"'),
      'extensions[0].oid: "role" is not a dotted OID (the dotted OID of an extension that Estuary leaves to the profile)',
    ],
    ['no hex', extension(ROLE, 'value = "0x0500"'), `extensions[0].value: the value is not hex ${allowed}`],
    ['half a byte', extension(ROLE, 'value = "050"'), `extensions[0].value: the value is not hex ${allowed}`],
    [
      'two values',
      extension(ROLE, 'value = "05000500"'),
      `extensions[0].value: the value is not one DER value: the value: trailing bytes ${allowed}`,
    ],
    [
      'half a value',
      extension(ROLE, 'value = "3003020105ff"'),
      `extensions[0].value: the value is not one DER value: the value: trailing bytes ${allowed}`,
    ],
    [
      'a value that is broken within',
      extension(ROLE, 'value = "30020409"'),
      `extensions[0].value: the value is not one DER value: the value: truncated value ${allowed}`,
    ],
    [
      'a string in pieces',
      extension(ROLE, 'value = "2403040101"'),
      `extensions[0].value: the value is not one DER value: the value: unexpected tag ${allowed}`,
    ],
    [
      'too long',
      extension(ROLE, `value = "0482100${'0'.repeat(8195)}"`),
      `extensions[0].value: the value has more than 4096 bytes ${allowed}`,
    ],
    [
      'nothing to set',
      extension(ROLE),
      'extensions[0]: has neither value nor from (value = "hex of the DER", or from = "csr")',
    ],
    [
      'both',
      extension(ROLE, 'value = "0500"', 'from = "csr"'),
      'extensions[0]: has both value and from (value = "hex of the DER", or from = "csr")',
    ],
    ['another source', extension(ROLE, 'from = "client"'), 'extensions[0].from: "client" is not known ("csr")'],
    [
      'one twice',
      `${extension(ROLE, 'value = "0500"')}\n${extension(ROLE, 'from = "csr"')}`,
      'extensions[1].oid: 1.3.6.1.4.1.55555.1 occurs twice (each extension once)',
    ],
    [
      'an account by request',
      extension(`oid = "${OID.microsoftSid}"`, 'from = "csr"'),
      'extensions[0].from: is "csr", and 1.3.6.1.4.1.311.25.2 names an account of a domain, which anybody could then claim (leave it out)',
    ],
    [
      'a policy twice',
      '[ca.profile]\npolicies = ["1.2.3", "1.2.3"]',
      'policies: 1.2.3 occurs twice (each policy once)',
    ],
    [
      'a CPS that is no URL',
      '[ca.profile]\npolicies = [{ oid = "1.2.3", cps = "cps" }]',
      'policies[0].cps: "cps" is not a URL (an http or https URL such as "https://pki.example.com/cps")',
    ],
  ])('%s', async (_, text, problem) => {
    expect(await problems(text)).toEqual([problem]);
  });
});

test('for a CA behind Dogtag PKI, whose own profile decides, they are refused', async () => {
  const ca = `[[ca]]
label = "devices"
default = true
driver = "dogtag"
[ca.dogtag]
urls = ["https://pki1:8443"]
trust_anchors = "a.pem"
client_certificate = "a.pem"
client_key = "a.key"
[ca.profile]
backdate_seconds = 60
policies = ["1.2.3"]
${extension(ROLE, 'from = "csr"')}`;
  expect(await folder.problems(toml('', { ca }))).toEqual(
    ['backdate_seconds', 'policies', 'extensions'].map(
      (key) => `est.toml: ca[devices].profile.${key}: is given, and the profile of Dogtag decides it (leave it out)`,
    ),
  );
});
