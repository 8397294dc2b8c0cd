/** The values that a requester has for the placeholders of patterns and templates (docs/guides/names.md). */
import { expect, test } from 'vitest';
import type { GssapiIdentity, Identity, MtlsIdentity } from '../../src/auth/identity.ts';
import type { NameRight } from '../../src/enrollment/bound-names.ts';
import { placeholderValues } from '../../src/enrollment/name-templates.ts';
import type { RequestDevice } from '../../src/enrollment/request.ts';
import { parseCertificate } from '../../src/pki/x509/certificate.ts';
import { parseDistinguishedName } from '../../src/pki/x509/name.ts';
import { dns, email, ip, makeCa, makeClient, subjectAltName } from '../support/certificates.ts';
import { mtlsIdentity, otpIdentity } from './support.ts';

const NAMES = [dns('a.example'), dns('b.example'), email('a@example'), ip('192.0.2.1')];
const holder: MtlsIdentity = mtlsIdentity(
  parseCertificate(
    (
      await makeClient('CN=unit,serialNumber=4711', await makeCa('CN=Maker'), {
        extensions: [subjectAltName(...NAMES)],
      })
    ).der,
  ),
);
const token: Identity = otpIdentity();
const described = { requester: 'x', display: 'ada', client_id: 'ada', binding: 'off' } as const;
const ldap: Identity = { ...described, method: 'ldap', attributes: new Map([['mail', ['ada@example', 'a@example']]]) };
const jwt: Identity = { ...described, method: 'jwt', attributes: new Map([['Mail', ['ada@jwt']]]), token: undefined };
const principal: GssapiIdentity = {
  method: 'gssapi',
  requester: 'gssapi:host/a.example@EXAMPLE',
  display: 'host/a.example@EXAMPLE',
  principal: 'host/a.example@EXAMPLE',
  subject: parseDistinguishedName('CN=a'),
  replyToken: undefined,
};
const device: RequestDevice = { key: 'key-7', id: 'unit-7', attributes: { site: 'plant', id: 'not its id' } };
const secret: NameRight = { kind: 'secret', identification: 'batch-1' };

interface Requester {
  readonly identity: Identity;
  readonly device?: RequestDevice;
  readonly right?: NameRight;
}

const ASKED: readonly [string, Requester, Readonly<Record<string, readonly string[]>>][] = [
  ['a token', { identity: token }, { id: ['device-1'], client_id: ['device-1'], principal: [], 'cert.CN': [] }],
  ['a shared secret', { identity: token, right: secret }, { id: ['batch-1'], client_id: ['batch-1'] }],
  [
    'a directory entry',
    { identity: ldap },
    { 'ldap.Mail': ['ada@example', 'a@example'], 'ldap.sn': [], 'jwt.mail': [] },
  ],
  ['a JSON Web Token', { identity: jwt }, { 'jwt.Mail': ['ada@jwt'], 'jwt.mail': [], 'ldap.mail': [] }],
  [
    'a principal',
    { identity: principal },
    {
      id: ['host/a.example@EXAMPLE'],
      client_id: [],
      principal: ['host/a.example@EXAMPLE'],
      primary: ['host'],
      instance: ['a.example'],
      realm: ['EXAMPLE'],
    },
  ],
  ['a principal with a short name', { identity: { ...principal, name: 'a' } }, { id: ['a'], primary: ['host'] }],
  [
    'a certificate',
    { identity: holder },
    {
      id: ['unit'],
      client_id: [],
      'cert.CN': ['unit'],
      'cert.serialNumber': ['4711'],
      'cert.O': [],
      'cert.dns': ['a.example', 'b.example'],
      'cert.email': ['a@example'],
      'cert.ip': ['192.0.2.1'],
      'cert.uri': [],
      'device.id': [],
      'device.site': [],
      'ldap.mail': [],
    },
  ],
  [
    'a device, whatever it authenticates with',
    { identity: holder, device },
    {
      id: ['unit-7'],
      'device.id': ['unit-7'],
      'device.site': ['plant'],
      'device.room': [],
      'device.toString': [],
      'cert.CN': ['unit'],
    },
  ],
];

test.each(ASKED)('%s', (_, { identity, right = { kind: 'enrollment', identity }, ...request }, expected) => {
  const values = placeholderValues({ identity, ...request }, right);
  expect(Object.fromEntries(Object.keys(expected).map((name) => [name, values(name)]))).toEqual(expected);
});
