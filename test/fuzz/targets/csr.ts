/** PKCS #10 requests: read, held against policy and csrattrs, and the certificate that would come of them linted. */
import { checkPolicy, type PolicyProfile } from '../../../src/ca/profile.ts';
import { CsrAttributes } from '../../../src/ca/csr-attributes.ts';
import { lint } from '../../../src/ca/local/lint.ts';
import { buildTbs, constantExtensions } from '../../../src/ca/local/tbs.ts';
import { chooseProtection } from '../../../src/enrollment/key-protection.ts';
import { recognize } from '../../../src/enrollment/recognition.ts';
import { parseCertificate } from '../../../src/pki/x509/certificate.ts';
import { parseCsr, parseCsrWithoutProof, verifyCsr, type RequestKey } from '../../../src/pki/pkcs10/csr.ts';
import { changeSubject, type CsrContent } from '../../../src/pki/pkcs10/csr-content.ts';
import { explicit, integer, octetString, oid, sequence, setOf, utf8String } from '../../../src/pki/der/der.ts';
import { encodeExtKeyUsage, encodeKeyUsage } from '../../../src/pki/x509/extensions.ts';
import { formatGeneralName } from '../../../src/pki/x509/general-name.ts';
import { formatName } from '../../../src/pki/x509/name.ts';
import { CBC_OIDS, WRAP_OIDS } from '../../../src/pki/cms/key-wrap.ts';
import { OID } from '../../../src/pki/der/oids.ts';
import { subjectKeyIdentifier } from '../../../src/pki/x509/public-key.ts';
import { makeCa } from '../../support/certificates.ts';
import {
  ALGORITHM,
  attribute,
  buildCsr,
  challengePassword,
  commonName,
  csrAttribute,
  dns,
  email,
  extension,
  extensionRequest,
  ip,
  makeKey,
  name,
  san,
  uri,
} from '../../support/csr.ts';
import { ed25519, p256, testKey } from '../fixed-keys.ts';
import { isClientError, unlessRefused, type Target } from '../target.ts';

const NOW = Date.UTC(2026, 5, 1);
const issuer = parseCertificate(
  (await makeCa('CN=Fuzzed CA', { kind: 'ed25519', keys: ed25519('ca'), serial: '01' })).der,
);
const profile: PolicyProfile = {
  key_types: ['ec:P-256', 'rsa:2048', 'ed25519'],
  key_usage: ['digitalSignature'],
  extended_key_usage: ['clientAuth'],
  subject: { required: [], patterns: { CN: '[a-z0-9.-]+' } },
  san: { allowed: ['dns', 'ip', 'email', 'uri'], required: [], max: 100, wildcards: true, ip: ['10.0.0.0/8', '::/0'] },
};
const csrAttributes = new CsrAttributes(
  {
    challenge_password: false,
    extensions: [{ name: 'extendedKeyUsage', value: ['clientAuth'] }],
    oids: ['1.3.6.1.1.1.1.22', '2.5.4.5'],
    template: true,
    subject: [{ CN: '' }],
  },
  false,
);
const identity = {
  method: 'otp',
  otp_id: '1',
  client_id: 'device-1',
  requester: 'otp:1',
  display: 'device-1',
  usable: true,
  lockoutKeys: [],
  password: Buffer.from('a password'),
} as const;

/** What is done with a request whose names and key are known, however it came. */
async function use(csr: CsrContent, own: RequestKey | undefined): Promise<void> {
  await unlessRefused(() => csrAttributes.check(csr, own), isClientError);
  await unlessRefused(() => checkPolicy(profile, { ...csr, publicKey: csr.publicKey }), isClientError);
  const renamed = changeSubject(csr);
  formatName(renamed.subject);
  renamed.subjectAltNames.map(formatGeneralName);
  const tbs = buildTbs(
    {
      signatureAlgorithm: issuer.signatureAlgorithm,
      issuer: issuer.subject.der,
      extensions: constantExtensions(subjectKeyIdentifier(issuer.spki), [OID.clientAuth], {
        crl: [],
        ocsp: [],
        caIssuers: [],
      }),
    },
    {
      ...renamed,
      serialNumber: Buffer.alloc(16, 0x41),
      notBefore: new Date(NOW),
      notAfter: new Date(NOW + 86_400_000),
      spki: csr.publicKey.spki,
      subjectKeyIdentifier: Buffer.alloc(20),
      keyUsage: profile.key_usage,
    },
  );
  lint(tbs, { issuer, signatureAlgorithm: issuer.signatureAlgorithm, maxValidityDays: 397 });
}

async function read(input: Buffer): Promise<void> {
  const unproven = await unlessRefused(() => parseCsrWithoutProof(input), isClientError);
  if (unproven !== undefined) {
    recognize(unproven, 'generated');
    const settings = {
      encryption: 'optional',
      password: undefined,
      symmetricKeys: new Map([[KEY_ID.toString('hex'), Buffer.alloc(16)]]),
      certificates: new Map(),
    } as const;
    await unlessRefused(() => chooseProtection(settings, unproven, identity, NOW), isClientError);
    await use(unproven, undefined);
  }
  const csr = parseCsr(input);
  recognize(csr, 'own');
  await use(csr, { ...csr, keyType: csr.publicKey.keyType });
  await verifyCsr(csr);
}

const KEY_ID = Buffer.from('key 1');

function seeds(): Buffer[] {
  const key = testKey(p256('csr'));
  const altNames = san(dns('a.example'), ip(10, 0, 0, 1), email('a@b.example'), uri('urn:x:y'), dns('*.b.example'));
  const wanted = extensionRequest(
    altNames,
    extension(OID.keyUsage, encodeKeyUsage(['digitalSignature'])),
    extension(OID.extKeyUsage, encodeExtKeyUsage([OID.clientAuth])),
    extension(OID.subjectDirectoryAttributes, sequence(attribute('1.3.6.1.1.1.1.22', setOf(utf8String('x'))))),
  );
  const subject = name(
    attribute(OID.countryName, utf8String('DE')),
    attribute(OID.organizationName, utf8String('Exämple')),
    attribute(OID.commonName, utf8String('device-1')),
    attribute(OID.serialNumber, utf8String('77')),
  );
  const change = csrAttribute(OID.changeSubjectName, sequence(commonName('new'), explicit(0, dns('new.example'))));
  const capabilities = csrAttribute(
    OID.smimeCapabilities,
    sequence(sequence(oid(CBC_OIDS[128])), sequence(oid(WRAP_OIDS[256]))),
  );
  return [
    buildCsr(key),
    buildCsr(key, { subject, attributes: [wanted, challengePassword('secret')] }),
    buildCsr(key, { attributes: [change, wanted] }),
    buildCsr(key, { attributes: [csrAttribute(OID.decryptKeyIdentifier, octetString(KEY_ID)), capabilities] }),
    buildCsr(key, {
      attributes: [csrAttribute(OID.asymmetricDecryptKeyIdentifier, octetString(subjectKeyIdentifier(key.spki)))],
    }),
    buildCsr(key, { attributes: null, version: integer(0) }),
    buildCsr(makeKey('ed25519'), { attributes: [wanted] }),
    buildCsr(makeKey('rsa2048'), { attributes: [wanted] }),
    buildCsr(makeKey('P-384'), { hash: 'sha384', algorithm: ALGORITHM.ecdsaSha384 }),
    buildCsr(makeKey('ed448')),
  ];
}

export const target: Target = { grammar: 'der', seeds, read, isRefusal: isClientError };
