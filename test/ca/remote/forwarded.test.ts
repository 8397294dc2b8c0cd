/** A CSR goes to a remote CA as the device signed it, so content that nobody judged is rejected first. */
import { expect, test } from 'vitest';
import { CsrAttributes } from '../../../src/ca/csr-attributes.ts';
import { checkForwarded } from '../../../src/ca/remote/forwarded.ts';
import { oid as oidValue, sequence } from '../../../src/pki/der/der.ts';
import { OID } from '../../../src/pki/der/oids.ts';
import { encodeCsrAttrs, encodeRequestTemplate } from '../../../src/pki/pkcs10/csrattrs.ts';
import { encodeExtensions, encodeExtKeyUsage } from '../../../src/pki/x509/extensions.ts';
import { newCaConfig } from '../../support/file-ca.ts';
import { temporaryFolder } from '../../support/openssl.ts';

const OTHER = '1.3.6.1.4.1.55555.7';
const TEMPLATE = '1.3.6.1.4.1.311.21.7';
const MAC = '1.3.6.1.1.1.1.22';
const folder = temporaryFolder();
const { profile: usual } = newCaConfig(folder, 'edge', true);
folder.remove();

const extension = (oid: string, value = sequence()) => ({ oid, critical: false, value });
const policies = (oid: string): Buffer => sequence(sequence(oidValue(oid)));

interface At {
  readonly purposes?: readonly string[];
  readonly forwards?: readonly string[];
  readonly asks?: ConstructorParameters<typeof CsrAttributes>[0];
  readonly upstreamAsks?: Buffer | Error;
}

function check(
  extensions: readonly ReturnType<typeof extension>[],
  attributes: readonly string[],
  { purposes = ['clientAuth'], forwards = [], asks, upstreamAsks }: At = {},
): Promise<void> {
  const driver = {
    chain: () => [],
    issue: () => Promise.reject(new Error('nothing is issued')),
    csrAttributes: () => (upstreamAsks instanceof Error ? Promise.reject(upstreamAsks) : Promise.resolve(upstreamAsks)),
  };
  const profile = { ...usual, extended_key_usage: purposes, forward_extensions: forwards };
  const csrAttributes = new CsrAttributes(asks, false);
  const content = { extensions, attributes: attributes.map((oid) => ({ oid, values: [] })) };
  return checkForwarded({ driver, profile, csrAttributes }, content);
}

const asks = (oids: readonly string[], extensions: readonly string[]) => ({
  challenge_password: false,
  extensions: extensions.map((name) => ({ name })),
  oids,
  subject: [],
  template: false,
});

test('what the profile judges goes on without a question, and so do the attributes of EST', async () => {
  const { subjectAltName, keyUsage, extKeyUsage, basicConstraints, subjectKeyIdentifier } = OID;
  const extensions = [
    subjectAltName,
    keyUsage,
    extKeyUsage,
    basicConstraints,
    subjectKeyIdentifier,
    OID.smimeCapabilities,
  ];
  const attributes = [
    ...[OID.extensionRequest, OID.microsoftExtensionRequest, OID.challengePassword, OID.estIdentityLinking],
    ...[OID.otpChallenge, OID.revocationChallenge, OID.decryptKeyIdentifier, OID.asymmetricDecryptKeyIdentifier],
    ...[OID.smimeCapabilities, OID.changeSubjectName],
  ];
  await expect(
    check(
      extensions.map((one) => extension(one)),
      attributes,
      { upstreamAsks: new Error('unavailable') },
    ),
  ).resolves.toBeUndefined();
});

test.each<[string, string]>([
  ['the template', TEMPLATE],
  ['ocsp-nocheck', OID.ocspNoCheck],
  ['certificate policies', OID.certificatePolicies],
  ['name constraints', OID.nameConstraints],
  ['an unknown extension', OTHER],
])('%s that nobody judged is 400', async (_what, oid) => {
  await expect(check([extension(oid)], [])).rejects.toMatchObject({ status: 400, code: 'EXTENSION_NOT_ALLOWED' });
  await expect(check([extension(oid)], [], { forwards: [oid] })).resolves.toBeUndefined();
});

test('an attribute that nobody judged is 400, also with the OID of an extension', async () => {
  for (const oid of [OTHER, OID.subjectAltName]) {
    await expect(check([], [oid])).rejects.toMatchObject({ status: 400, code: 'ATTRIBUTE_NOT_ALLOWED' });
    await expect(check([], [oid], { forwards: [oid] })).resolves.toBeUndefined();
  }
});

test('what csrattrs ask for goes on: those of the label, and those of the upstream CA', async () => {
  await expect(check([extension(OTHER)], [MAC], { asks: asks([MAC], [OTHER]) })).resolves.toBeUndefined();
  const template = encodeRequestTemplate({ subject: [], keyType: undefined, extensions: [extension(OTHER)] });
  for (const item of [
    { oid: OTHER },
    { oid: OID.extensionRequest, values: [encodeExtensions([extension(OTHER)])] },
    { oid: OID.certificationRequestInfoTemplate, values: [template] },
  ])
    await expect(
      check([extension(OTHER)], [MAC], { upstreamAsks: encodeCsrAttrs([item, { oid: MAC }]) }),
    ).resolves.toBeUndefined();
  for (const upstreamAsks of [encodeCsrAttrs([{ oid: MAC }]), Buffer.from('no DER')])
    await expect(check([extension(OTHER)], [], { upstreamAsks })).rejects.toMatchObject({ status: 400 });
});

test('application policies are judged as purposes, also if they are forwarded', async () => {
  const asked = (oid: string): Buffer => policies(oid);
  const forwards = [OID.microsoftApplicationPolicies];
  const send = (value: Buffer) => check([extension(OID.microsoftApplicationPolicies, value)], [], { forwards });
  await expect(send(asked(OID.clientAuth))).resolves.toBeUndefined();
  for (const value of [asked(OID.codeSigning), Buffer.from('no DER')])
    await expect(send(value)).rejects.toMatchObject({ status: 400, code: 'EXTENDED_KEY_USAGE_NOT_ALLOWED' });
  await expect(check([], [], { purposes: [] })).resolves.toBeUndefined();
});

test('an empty extended_key_usage allows no purpose', async () => {
  const asked = [extension(OID.extKeyUsage, encodeExtKeyUsage([OID.clientAuth]))];
  await expect(check(asked, [], { purposes: [] })).rejects.toMatchObject({ code: 'EXTENDED_KEY_USAGE_NOT_ALLOWED' });
  await expect(check([], [], { purposes: [] })).resolves.toBeUndefined();
});
