/** Who may ask for other names than those of its request or certificate (RFC 6402 §2.8), and how names are written (RFC 5280 §4.1.2.4). */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Ca } from '../../src/ca/router.ts';
import { decideNames, isOfCa, type NameRight } from '../../src/enrollment/names.ts';
import { issuedName } from '../../src/pki/x509/name.ts';
import { EstuaryError } from '../../src/errors.ts';
import { sequence, setOf, tlv, utf8String } from '../../src/pki/der/der.ts';
import { OID } from '../../src/pki/der/oids.ts';
import { parseCsr } from '../../src/pki/pkcs10/csr.ts';
import { parseCertificate } from '../../src/pki/x509/certificate.ts';
import { formatGeneralName } from '../../src/pki/x509/general-name.ts';
import { formatName, parseDistinguishedName, parseName } from '../../src/pki/x509/name.ts';
import { dns as dnsName, makeCa, makeClient, subjectAltName } from '../support/certificates.ts';
import { attribute, buildCsr, commonName, csrAttribute, dns, extensionRequest, makeKey, san } from '../support/csr.ts';
import { fileCa } from '../support/file-ca.ts';
import { temporaryFolder } from '../support/openssl.ts';
import { mtlsIdentity, otpIdentity, remoteQueue } from './support.ts';

const folder = temporaryFolder();
const key = makeKey();
const maker = await makeCa('CN=Maker');
const own = parseCertificate(
  (await makeClient('CN=old', maker, { extensions: [subjectAltName(dnsName('old.example'))] })).der,
);
let devices: Ca;
beforeAll(async () => {
  devices = await fileCa(folder, 'devices', true);
});
afterAll(() => folder.remove());

interface Asked {
  readonly cn?: string;
  readonly name?: string;
  readonly change?: boolean;
  readonly allowed?: boolean;
}

/** The names that a request of `CN=old` gets, or the code of its refusal. */
function decided(right: NameRight, { cn = 'old', name = 'old.example', change = false, allowed = true }: Asked = {}) {
  const changed = csrAttribute(OID.changeSubjectName, sequence(commonName('new'), sequence(dns('new.example'))));
  const attributes = [extensionRequest(san(dns(name))), ...(change ? [changed] : [])];
  const csr = parseCsr(buildCsr(key, { subject: commonName(cn), attributes }));
  const { config, driver } = devices;
  const profile = { ...config.profile, allow_subject_change: allowed };
  const ca = new Ca({ ...config, profile }, driver);
  const identity = 'identity' in right ? right.identity : mtlsIdentity(own);
  try {
    const { names } = decideNames({ ca, identity }, right, csr, 'off');
    return [formatName(names.subject), ...names.subjectAltNames.map(formatGeneralName)].join(' ');
  } catch (error) {
    if (error instanceof EstuaryError) return error.code;
    throw error;
  }
}

const enrollment: NameRight = { kind: 'enrollment', identity: mtlsIdentity(own) };
const ownSubject: NameRight = { ...enrollment, ownSubject: true };
const renewal: NameRight = { kind: 'renewal', certificate: own };
const token: NameRight = { kind: 'enrollment', identity: otpIdentity() };
const tokenOwn: NameRight = { ...token, ownSubject: true };
const any: NameRight = { kind: 'any' };
const OLD = 'CN=old DNS:old.example';
const NEW = 'CN=new DNS:new.example';
const change = true;

test.each<[string, NameRight, Asked, string]>([
  ['any names: those of the request', any, { cn: 'x' }, 'CN=x DNS:old.example'],
  ['any names: a change', any, { change, cn: 'x' }, NEW],
  [
    'any names: a change that the profile does not allow',
    any,
    { change, allowed: false },
    'SUBJECT_CHANGE_NOT_ALLOWED',
  ],
  ['any names: no change where none is allowed', any, { allowed: false }, OLD],
  ['renewal: its own names', renewal, {}, OLD],
  ['renewal: a change', renewal, { change }, NEW],
  [
    'renewal: a change that the profile does not allow',
    renewal,
    { change, allowed: false },
    'SUBJECT_CHANGE_NOT_ALLOWED',
  ],
  ['renewal: a change of another subject', renewal, { change, cn: 'x' }, 'SUBJECT_MISMATCH'],
  ['renewal: a change of another SAN', renewal, { change, name: 'x' }, 'SAN_MISMATCH'],
  ['enrollment with a certificate: other names without a change', enrollment, { cn: 'x' }, 'CN=x DNS:old.example'],
  ['enrollment with a certificate: a change', enrollment, { change }, NEW],
  ['enrollment with a certificate: a change of another subject', enrollment, { change, cn: 'x' }, 'SUBJECT_MISMATCH'],
  ['enrollment with a certificate: a change of another SAN', enrollment, { change, name: 'x' }, 'SAN_MISMATCH'],
  ['enrollment with a token: a change', token, { change }, 'SUBJECT_CHANGE_NOT_ALLOWED'],
  ['enrollment with its own subject', ownSubject, {}, OLD],
  ['enrollment with its own subject: another one', ownSubject, { cn: 'x' }, 'SUBJECT_NOT_OWN'],
  ['enrollment with its own subject: without a certificate', tokenOwn, {}, 'SUBJECT_NOT_OWN'],
  ['no names', { kind: 'none' }, {}, 'NAMES_NOT_OWN'],
])('%s', (_, right, asked, expected) => {
  expect(decided(right, asked)).toBe(expected);
});

test('a certificate is the CA’s by its key; at a CA elsewhere only by the record', async () => {
  const { config, driver } = devices;
  const issuer = parseCertificate(maker.der);
  const renewing = new Ca(config, driver, { renewalIssuers: [issuer] });
  expect([await isOfCa(devices, own), await isOfCa(renewing, own)]).toEqual([false, true]);
  const elsewhere = new Ca(
    config,
    { ...driver, chain: () => driver.chain(), remoteQueue: remoteQueue() },
    { renewalIssuers: [issuer] },
  );
  expect(await isOfCa(elsewhere, own)).toBe(false);
});

test('of a name, only attributes of outdated string types are written anew, as UTF8String', () => {
  const bmp = (text: string): Buffer => tlv(0x1e, Buffer.from(text, 'utf16le').swap16());
  const printable = (text: string): Buffer => tlv(0x13, Buffer.from(text, 'latin1'));
  const { commonName: cn, organizationName: o } = OID;
  const mixed = (text: (value: string) => Buffer): Buffer =>
    sequence(
      setOf(attribute(o, printable('Plant'))),
      setOf(attribute(cn, text('device')), attribute(OID.serialNumber, printable('1'))),
    );
  expect(issuedName(parseName(mixed(bmp))).der).toEqual(mixed(utf8String));
  const modern = parseName(mixed(printable));
  expect(issuedName(modern)).toBe(modern);
  const empty = parseDistinguishedName('');
  expect(issuedName(empty)).toBe(empty);
});
