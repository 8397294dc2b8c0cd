/**
 * Which names a requester gets, on a separate store, without a server.
 *
 * Longer than other files: the rules on names are tables over the same requesters.
 */
import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { holderOf } from '../../src/auth/certificate-holder.ts';
import type { Identity } from '../../src/auth/identity.ts';
import { mtlsIdentity } from '../../src/auth/mtls/mtls.ts';
import { Ca } from '../../src/ca/router.ts';
import type { ProfileConfig } from '../../src/config/schema.ts';
import type { ClientIdBinding } from '../../src/auth/identity.ts';
import type { EstEnrollment } from '../../src/enrollment/request.ts';
import { EstuaryError, failed } from '../../src/errors.ts';
import { parseCertificate } from '../../src/pki/x509/certificate.ts';
import { formatGeneralName } from '../../src/pki/x509/general-name.ts';
import { formatName, parseDistinguishedName } from '../../src/pki/x509/name.ts';
import { fileCa } from '../support/file-ca.ts';
import { otpRow, T0 } from '../store/rows.ts';
import { dns, makeCa, makeClient, subjectAltName } from '../support/certificates.ts';
import {
  attribute,
  buildCsr,
  commonName,
  dns as dnsName,
  email,
  extensionRequest,
  ip,
  makeKey,
  name,
  san,
} from '../support/csr.ts';
import { tlv, utf8String } from '../../src/pki/der/der.ts';
import { otpIdentity, pipeline, received, remoteQueue, storeWithCa } from './support.ts';

const { folder, store, devices } = await storeWithCa();

interface Profile extends Partial<Pick<ProfileConfig, 'mtls_subject' | 'allow_subject_change'>> {
  readonly subject?: Partial<ProfileConfig['subject']>;
  readonly san?: Partial<ProfileConfig['san']>;
}

function caWith({ subject, san: altNames, ...more }: Profile, approval: 'auto' | 'manual' = 'auto'): Ca {
  const { config, driver } = devices;
  const profile = {
    ...config.profile,
    ...more,
    subject: { ...config.profile.subject, ...subject },
    san: { ...config.profile.san, ...altNames },
  };
  return new Ca({ ...config, approval, profile }, driver);
}

/** What a CSR asks for: RFC 4514 without escapes, and SANs. */
interface Asked {
  readonly subject?: string;
  readonly sans?: readonly Buffer[];
}

const key = makeKey();

function csrOf({ subject = 'CN=device-1', sans = [] }: Asked): Buffer {
  return buildCsr(key, {
    subject: parseDistinguishedName(subject).der,
    attributes: sans.length === 0 ? [] : [extensionRequest(san(...sans))],
  });
}

interface Sent {
  readonly ca?: Ca;
  readonly binding?: ClientIdBinding;
  readonly operation?: EstEnrollment;
}

/** The names that are issued, or why none are. */
async function issued(identity: Identity, csr: Buffer, sent: Sent = {}): Promise<string> {
  const { ca = devices, binding = 'off', operation = 'simpleenroll' } = sent;
  const enrollment = pipeline({ store, identity, rules: { clientIdBinding: binding } });
  try {
    const { outcome } = await enrollment.enroll(received(ca, csr, { requestId: randomUUID(), operation }));
    if (outcome.status !== 'issued') return outcome.status;
    const { subject, subjectAltNames } = parseCertificate(outcome.certificate);
    return [formatName(subject), ...subjectAltNames.map(formatGeneralName)].join(' ');
  } catch (error) {
    if (error instanceof EstuaryError) return `${error.status} ${error.code}`;
    throw error;
  }
}

const maker = await makeCa('CN=Maker');

async function holder(subject: string, names: readonly string[], issuedHere: boolean): Promise<Identity> {
  const extensions = names.length === 0 ? [] : [subjectAltName(...names.map(dns))];
  const [leaf, ca] = [await makeClient(subject, maker, { extensions }), maker].map(({ der }) => parseCertificate(der));
  if (leaf === undefined || ca === undefined) throw new Error('no certificate');
  return mtlsIdentity(holderOf({ certificate: leaf, path: [leaf, ca] }), issuedHere);
}

const own = (): Promise<Identity> => holder('CN=device-1,O=Plant', ['a.example', 'b.example'], true);
const foreign = (): Promise<Identity> => holder('serialNumber=SN7,CN=idevid,O=Maker', ['x.maker.example'], false);

async function token(clientId: string): Promise<Identity> {
  const row = otpRow({ client_id: clientId, max_uses: 5 });
  await store.insertOtp(row, []);
  return otpIdentity({ otp_id: row.id, requester: `otp:${row.id}`, client_id: clientId });
}

function principal(text: string, subject: string, short?: string): Identity {
  return {
    method: 'gssapi',
    requester: `gssapi:${text}`,
    display: text,
    principal: text,
    subject: parseDistinguishedName(subject),
    replyToken: undefined,
    ...(short === undefined ? {} : { name: short }),
  };
}

const a = dnsName('a.example');
const other = dnsName('admin.example.com');
const registeredId = tlv(0x88, Buffer.from('2a0304', 'hex'));

describe('names of a token', () => {
  const subject = { patterns: { CN: '{id}', serialNumber: '{client_id}-[0-9]+' } };
  test.each<[string, ClientIdBinding, Profile, Asked, string]>([
    ['off: any names', 'off', {}, { subject: 'CN=x', sans: [other] }, 'CN=x DNS:admin.example.com'],
    ['cn: its own', 'cn', {}, {}, 'CN=device-1'],
    ['cn: another CN', 'cn', {}, { subject: 'CN=device-2' }, '403 CLIENT_ID_MISMATCH'],
    ['cn: two', 'cn', {}, { subject: 'CN=device-1,CN=device-2' }, '403 CLIENT_ID_MISMATCH'],
    ['cn: two, its own first', 'cn', {}, { subject: 'CN=device-2,CN=device-1' }, '403 CLIENT_ID_MISMATCH'],
    ['cn: its own twice', 'cn', {}, { subject: 'CN=device-1,CN=device-1' }, '403 CLIENT_ID_MISMATCH'],
    ['cn: a further SAN', 'cn', {}, { sans: [other] }, '403 NAME_NOT_OWN'],
    ['cn: its own name as a SAN', 'cn', {}, { sans: [dnsName('Device-1')] }, 'CN=device-1 DNS:Device-1'],
    ['cn: an address', 'cn', {}, { sans: [ip(192, 0, 2, 1)] }, '403 NAME_NOT_OWN'],
    ['cn: a SAN of another kind', 'cn', {}, { sans: [registeredId] }, '403 NAME_NOT_OWN'],
    ['cn: a UID', 'cn', {}, { subject: 'UID=root,CN=device-1' }, '403 NAME_NOT_OWN'],
    ['cn: a serialNumber', 'cn', {}, { subject: 'serialNumber=1,CN=device-1' }, '403 NAME_NOT_OWN'],
    ['cn: an emailAddress', 'cn', {}, { subject: 'emailAddress=a@b.example,CN=device-1' }, '403 NAME_NOT_OWN'],
    ['cn: an unstructuredName', 'cn', {}, { subject: 'unstructuredName=x,CN=device-1' }, '403 NAME_NOT_OWN'],
    ['cn: a pseudonym', 'cn', {}, { subject: 'pseudonym=x,CN=device-1' }, '403 NAME_NOT_OWN'],
    [
      'cn: its unstructuredName and pseudonym',
      'cn',
      {},
      { subject: 'unstructuredName=device-1+pseudonym=device-1,CN=device-1' },
      'pseudonym=device-1+unstructuredName=device-1,CN=device-1',
    ],
    [
      'san: an unstructuredName',
      'san',
      {},
      { subject: 'unstructuredName=x', sans: [dnsName('device-1')] },
      '403 NAME_NOT_OWN',
    ],
    ['cn: its own CN and a space', 'cn', {}, { subject: 'CN=device-1\\ ' }, '403 CLIENT_ID_MISMATCH'],
    ['cn: its own CN of full-width letters', 'cn', {}, { subject: 'CN=ｄevice-1' }, '403 CLIENT_ID_MISMATCH'],
    ['cn: its own CN in another case', 'cn', {}, { subject: 'CN=Device-1' }, '403 CLIENT_ID_MISMATCH'],
    ['cn: a partial wildcard that is not its own', 'cn', {}, { subject: 'CN=device-*' }, '403 CLIENT_ID_MISMATCH'],
    ['cn: its UID', 'cn', {}, { subject: 'UID=device-1,CN=device-1' }, 'UID=device-1,CN=device-1'],
    ['cn: where it belongs', 'cn', {}, { subject: 'CN=device-1,O=Plant,DC=plant' }, 'CN=device-1,O=Plant,DC=plant'],
    [
      'cn: a pattern with a placeholder',
      'cn',
      { san: { dns: ['{id}\\.example\\.com', '.*'] } },
      { sans: [dnsName('DEVICE-1.example.com')] },
      'CN=device-1 DNS:DEVICE-1.example.com',
    ],
    [
      'cn: a pattern without one',
      'cn',
      { san: { dns: ['.*'] } },
      { sans: [dnsName('device-1.example.com')] },
      '403 NAME_NOT_OWN',
    ],
    [
      'cn: a pattern for an attribute',
      'cn',
      { subject },
      { subject: 'serialNumber=device-1-7,CN=device-1' },
      'serialNumber=device-1-7,CN=device-1',
    ],
    ['san: its own', 'san', {}, { subject: 'O=Plant', sans: [dnsName('device-1')] }, 'O=Plant DNS:device-1'],
    ['san: none', 'san', {}, {}, '403 CLIENT_ID_MISMATCH'],
    ['san: with its CN', 'san', {}, { sans: [dnsName('device-1')] }, 'CN=device-1 DNS:device-1'],
    [
      'san: with its CN in another case',
      'san',
      {},
      { subject: 'CN=Device-1', sans: [dnsName('device-1')] },
      '403 NAME_NOT_OWN',
    ],
    [
      'san: only one that a placeholder allows',
      'san',
      { san: { dns: ['{id}\\.example\\.com'] } },
      { sans: [dnsName('device-1.example.com')] },
      '403 CLIENT_ID_MISMATCH',
    ],
    [
      'san: only one that a template adds',
      'san',
      { san: { add: ['dns:{id}.example.com'] } },
      {},
      '403 CLIENT_ID_MISMATCH',
    ],
    ['san: with another CN', 'san', {}, { subject: 'CN=x', sans: [dnsName('device-1')] }, '403 NAME_NOT_OWN'],
    ['san: with another SAN', 'san', {}, { sans: [dnsName('device-1'), other] }, '403 NAME_NOT_OWN'],
    ['names (403) before policy (400)', 'cn', { san: { allowed: [] } }, { sans: [other] }, '403 NAME_NOT_OWN'],
  ])('%s', async (_, binding, profile, asked, expected) => {
    const identity = await token('device-1');
    for (const operation of ['simpleenroll', 'serverkeygen'] as const)
      expect(await issued(identity, csrOf(asked), { ca: caWith(profile), binding, operation })).toBe(expected);
  });
});

describe('names of a certificate, by mtls_subject', () => {
  const SELF = 'CN=device-1,O=Plant';
  const placeholders = {
    subject: { patterns: { CN: '{cert.serialNumber}' } },
    san: { dns: ['{cert.dns}', '{cert.CN}\\.lan'] },
  };
  test.each<[string, Profile['mtls_subject'], 'own' | 'foreign', Profile, Asked, string]>([
    [
      'auto: ours, all of its names',
      'auto',
      'own',
      {},
      { subject: SELF, sans: [a, dnsName('B.example')] },
      `${SELF} DNS:a.example DNS:B.example`,
    ],
    ['auto: ours, some of its SANs', 'auto', 'own', {}, { subject: SELF, sans: [a] }, `${SELF} DNS:a.example`],
    ['auto: ours, none of its SANs', 'auto', 'own', {}, { subject: SELF }, SELF],
    ['auto: ours, another subject', 'auto', 'own', {}, { subject: 'CN=device-2,O=Plant' }, '403 SUBJECT_NOT_OWN'],
    ['auto: ours, another O', 'auto', 'own', {}, { subject: 'CN=device-1,O=Other' }, '403 SUBJECT_NOT_OWN'],
    ['auto: ours, less of the subject', 'auto', 'own', {}, { subject: 'CN=device-1' }, '403 SUBJECT_NOT_OWN'],
    ['auto: ours, another SAN', 'auto', 'own', {}, { subject: SELF, sans: [a, other] }, '403 NAME_NOT_OWN'],
    [
      'auto: ours, a SAN by a placeholder',
      'auto',
      'own',
      placeholders,
      { subject: SELF, sans: [dnsName('device-1.lan')] },
      '400 SUBJECT_NOT_ALLOWED',
    ],
    ['auto: foreign, any', 'auto', 'foreign', {}, { subject: 'CN=x', sans: [other] }, 'CN=x DNS:admin.example.com'],
    ['same: foreign, another subject', 'same', 'foreign', {}, { subject: 'CN=x' }, '403 SUBJECT_NOT_OWN'],
    [
      'same: foreign, its serialNumber as CN',
      'same',
      'foreign',
      placeholders,
      { subject: 'CN=SN7,O=Maker' },
      'CN=SN7,O=Maker',
    ],
    [
      'same: foreign, another serialNumber as CN',
      'same',
      'foreign',
      placeholders,
      { subject: 'CN=SN8,O=Maker' },
      '403 SUBJECT_NOT_OWN',
    ],
    [
      'same: foreign, its serialNumber as CN, and an attribute that no pattern allows',
      'same',
      'foreign',
      placeholders,
      { subject: 'CN=SN7,OU=x,O=Maker' },
      '403 SUBJECT_NOT_OWN',
    ],
    [
      'same: any subject that a template replaces',
      'same',
      'own',
      { subject: { template: 'CN={cert.CN},O=Template' } },
      { subject: 'CN=x' },
      'CN=device-1,O=Template',
    ],
    ['any: ours, any', 'any', 'own', {}, { subject: 'CN=x', sans: [other] }, 'CN=x DNS:admin.example.com'],
  ])('%s', async (_, mtls_subject, who, profile, asked, expected) => {
    const identity = await (who === 'own' ? own() : foreign());
    const ca = caWith({ ...profile, ...(mtls_subject === undefined ? {} : { mtls_subject }) });
    expect(await issued(identity, csrOf(asked), { ca })).toBe(expected);
  });

  test('same: its own unstructuredName and pseudonym, which are not names of its client_id', async () => {
    const subject = 'unstructuredName=router+pseudonym=r7,CN=device-1';
    const identity = await holder(subject, [], true);
    expect(await issued(identity, csrOf({ subject }), { ca: caWith({ mtls_subject: 'same' }) })).toBe(
      'pseudonym=r7+unstructuredName=router,CN=device-1',
    );
  });
});

test("403 NAME_NOT_OWN quotes the name, at most 80 characters of the client's text", async () => {
  const identity = await token('device-1');
  const answer = (uid: string) =>
    pipeline({ store, identity, rules: { clientIdBinding: 'cn' } }).enroll(
      received(devices, csrOf({ subject: `UID=${uid},CN=device-1` }), { requestId: randomUUID() }),
    );
  const start = "The request asks for a name that is not the requester's: ";
  await expect(answer('x'.repeat(76))).rejects.toThrow(`${start}"UID=${'x'.repeat(76)}".`);
  await expect(answer('x'.repeat(77))).rejects.toThrow(`${start}"UID=${'x'.repeat(76)}…".`);
});

describe('names of a mapped principal', () => {
  const alice = principal('alice@EXAMPLE.COM', 'CN=alice,O=Example', 'alice');
  const BOB = 'emailAddress=bob@example.com,CN=bob';
  const bob = principal('bob@EXAMPLE.COM', BOB);
  const host = principal('host/a.example.com@EXAMPLE.COM', 'CN=a.example.com');
  test.each<[string, Identity, Profile, Asked, string]>([
    ['its subject, whatever the CSR says', alice, {}, { subject: 'UID=root,CN=x' }, 'CN=alice,O=Example'],
    ['a SAN of its name', alice, {}, { sans: [dnsName('alice')] }, 'CN=alice,O=Example DNS:alice'],
    ['a SAN of what it belongs to', alice, {}, { sans: [dnsName('Example')] }, '403 NAME_NOT_OWN'],
    ['its address', bob, {}, { sans: [email('bob@example.com')] }, `${BOB} email:bob@example.com`],
    ['its address in another case', bob, {}, { sans: [email('Bob@example.com')] }, '403 NAME_NOT_OWN'],
    ['another SAN', alice, {}, { sans: [other] }, '403 NAME_NOT_OWN'],
    [
      'an address by a placeholder',
      alice,
      { san: { email: ['{id}@example\\.com'] } },
      { sans: [email('alice@example.com')] },
      'CN=alice,O=Example email:alice@example.com',
    ],
    [
      'the address of another',
      alice,
      { san: { email: ['{id}@example\\.com'] } },
      { sans: [email('bob@example.com')] },
      '403 NAME_NOT_OWN',
    ],
    ['a host by its instance', host, { san: { add: ['dns:{instance}'] } }, {}, 'CN=a.example.com DNS:a.example.com'],
    ['a user without an instance', alice, { san: { add: ['dns:{instance}'] } }, {}, '403 NAME_NOT_MADE'],
  ])('%s', async (_, identity, profile, asked, expected) => {
    expect(await issued(identity, csrOf(asked), { ca: caWith(profile) })).toBe(expected);
  });
});

describe('templates', () => {
  test.each<[string, Profile, Asked, string]>([
    ['a subject', { subject: { template: 'CN={id},O=Example' } }, { subject: 'CN=x' }, 'CN=device-1,O=Example'],
    [
      'an added name',
      { san: { add: ['dns:{id}.example.com'] } },
      { sans: [other] },
      'CN=device-1 DNS:admin.example.com DNS:device-1.example.com',
    ],
    [
      'one that the CSR has',
      { san: { add: ['dns:{id}.example.com'] } },
      { sans: [dnsName('DEVICE-1.example.com')] },
      'CN=device-1 DNS:DEVICE-1.example.com',
    ],
    [
      'an added name that no CSR may ask for',
      { san: { allowed: [], add: ['dns:{id}.example.com'] } },
      {},
      'CN=device-1 DNS:device-1.example.com',
    ],
    ['nor this one', { san: { allowed: [], add: ['dns:{id}.example.com'] } }, { sans: [other] }, '400 SAN_NOT_ALLOWED'],
    ['no value', { subject: { template: 'CN={principal}' } }, {}, '403 NAME_NOT_MADE'],
    ['of a device', { subject: { template: 'CN={device.id}' } }, {}, '403 NAME_NOT_MADE'],
    [
      'policy on what it comes to',
      { subject: { template: 'CN={id}', patterns: { CN: 'plant-.*' } } },
      {},
      '400 SUBJECT_NOT_ALLOWED',
    ],
    ['no value in a pattern', { subject: { patterns: { CN: '{principal}' } } }, {}, '400 SUBJECT_NOT_ALLOWED'],
  ])('%s', async (_, profile, asked, expected) => {
    expect(await issued(await token('device-1'), csrOf(asked), { ca: caWith(profile) })).toBe(expected);
  });

  test.each(['a.b', '*', 'a b', 'a/b'])('a client_id that is no DNS label: %s', async (id) => {
    expect(await issued(await token(id), csrOf({}), { ca: caWith({ san: { add: ['dns:{id}.example.com'] } }) })).toBe(
      '403 NAME_NOT_MADE',
    );
  });

  test('several values where one fits', async () => {
    expect(await issued(await own(), csrOf({}), { ca: caWith({ san: { add: ['dns:{cert.dns}'] } }) })).toBe(
      '403 NAME_NOT_MADE',
    );
  });

  test('a bound CN is not asked of a subject that a template replaces', async () => {
    const ca = caWith({ subject: { template: 'CN={id},O=Example' } });
    expect(await issued(await token('device-1'), csrOf({ subject: 'CN=x' }), { ca, binding: 'cn' })).toBe(
      'CN=device-1,O=Example',
    );
  });

  test('a renewal keeps the names that it has', async () => {
    const ca = caWith({ subject: { template: 'CN={id},O=Changed' }, san: { add: ['dns:{id}.example.com'] } });
    const { outcome } = await pipeline({ store, identity: await token('device-1') }).enroll(
      received(devices, csrOf({}), { requestId: randomUUID() }),
    );
    if (outcome.status !== 'issued') throw new Error(outcome.status);
    const certificate = parseCertificate(outcome.certificate);
    const identity = mtlsIdentity({ certificate, issuer: devices.certificate }, true);
    expect(await issued(identity, csrOf({}), { ca, operation: 'simplereenroll' })).toBe('CN=device-1');
  });

  test('what was approved is what is issued, whatever the template says by then', async () => {
    const identity = await token('device-1');
    const queue = caWith({ subject: { template: 'CN={id},O=Approved' } }, 'manual');
    const csr = csrOf({ subject: 'CN=x' });
    expect(await issued(identity, csr, { ca: queue })).toBe('pending');
    const { items } = await store.listRequests({ limit: 100, status: 'pending' });
    expect(items.at(-1)).toMatchObject({ subject: 'CN=device-1,O=Approved' });
    await store.decideRequest({ id: items.at(-1)?.id ?? '', status: 'approved', reason: null, decided_at: T0 }, []);
    const changed = caWith({ subject: { template: 'CN={id},O=Changed' } }, 'manual');
    expect(await issued(identity, csr, { ca: changed })).toBe('CN=device-1,O=Approved');
  });
});

const NO = '400 SAN_NOT_ALLOWED';

describe('the SAN policy holds for names in the subject', () => {
  const restricted = { san: { dns: ['.*\\.lab\\.example'], email: ['.*@lab\\.example'], ip: ['192.0.2.0/24'] } };
  const wildcards = { san: { ...restricted.san, wildcards: true } };
  test.each<[string, Profile, string, string]>([
    ['a DNS name', restricted, 'CN=admin.example.com', NO],
    ['a DNS name with a trailing dot', restricted, 'CN=admin.example.com.', NO],
    ['a DNS name with a leading dot', restricted, 'CN=.admin.example.com', NO],
    ['a DNS name with outer spaces', restricted, 'CN=\\ admin.example.com\\ ', NO],
    ['a DNS name with full-width dots', restricted, 'CN=admin．example．com', NO],
    ['a DNS name with ideographic dots', restricted, 'CN=admin。example。com', NO],
    ['a DNS name with half-width ideographic dots', restricted, 'CN=admin｡example｡com', NO],
    ['a DNS name of full-width letters', restricted, 'CN=ａｄｍｉｎ.example.com', NO],
    ['a DNS name in NFD', restricted, 'CN=mu\u0308nchen.example', NO],
    ['a partial wildcard', restricted, 'CN=*w.bad.example', NO],
    ['a wildcard', restricted, 'CN=*.lab.example', NO],
    ['a lone asterisk', restricted, 'CN=*', NO],
    ['an allowed DNS name', restricted, 'CN=a.lab.example', 'CN=a.lab.example'],
    ['an allowed DNS name in another case', restricted, 'CN=A.LAB.example', 'CN=A.LAB.example'],
    ['an allowed DNS name and a trailing dot', restricted, 'CN=a.lab.example.', 'CN=a.lab.example.'],
    ['an allowed wildcard', wildcards, 'CN=*.lab.example', 'CN=*.lab.example'],
    ['a wildcard that a SAN cannot be: partial', wildcards, 'CN=*w.lab.example', NO],
    ['a wildcard that a SAN cannot be: inside', wildcards, 'CN=w*.lab.example', NO],
    ['a wildcard that a SAN cannot be: not the leftmost label', wildcards, 'CN=a.*.lab.example', NO],
    ['a wildcard that a SAN cannot be: of a top-level domain', { san: { wildcards: true } }, 'CN=*.example', NO],
    ['an IPv4 address in other digits', { san: { allowed: ['dns'] } }, 'CN=010.0.0.1', NO],
    ['one label', restricted, 'CN=admin', 'CN=admin'],
    ['words', restricted, 'CN=John Q. Public', 'CN=John Q. Public'],
    ['an initial', restricted, 'CN=J. Smith', 'CN=J. Smith'],
    ['a principal', restricted, 'CN=alice@EXAMPLE.COM', 'CN=alice@EXAMPLE.COM'],
    ['an address', restricted, 'CN=10.0.0.1', NO],
    ['an address and a space', restricted, 'CN=10.0.0.1\\ ', NO],
    ['an address of full-width characters', restricted, 'CN=１０．０．０．１', NO],
    ['an address where only DNS names are allowed', { san: { allowed: ['dns'] } }, 'CN=10.0.0.1\\ ', NO],
    ['an allowed address', restricted, 'CN=192.0.2.7', 'CN=192.0.2.7'],
    ['an IPv6 address', restricted, 'CN=2001:db8::1', NO],
    ['the IPv4-mapped IPv6 address of an allowed one', restricted, 'CN=::ffff:192.0.2.7', NO],
    ['an emailAddress', restricted, 'CN=a,emailAddress=a@example.com', NO],
    ['an emailAddress and a space', restricted, 'CN=a,emailAddress=a@lab.example\\ ', NO],
    ['an allowed emailAddress', restricted, 'CN=a,emailAddress=a@lab.example', 'CN=a,emailAddress=a@lab.example'],
    ['another CN', restricted, 'CN=a.lab.example,CN=admin.example.com', NO],
    ['no DNS names at all', { san: { allowed: ['ip'] } }, 'CN=admin.example.com', NO],
    ['no DNS names at all, and no SAN', { san: { allowed: [] } }, 'CN=w*', NO],
    [
      'no policy',
      {},
      'CN=admin.example.com,emailAddress=a@example.com',
      'CN=admin.example.com,emailAddress=a@example.com',
    ],
    ['no policy, letters of another script', {}, 'CN=münchen_1.example', 'CN=münchen_1.example'],
  ])('%s', async (_, profile, subject, expected) => {
    for (const operation of ['simpleenroll', 'serverkeygen'] as const)
      expect(await issued(await token('x'), csrOf({ subject }), { ca: caWith(profile), operation })).toBe(expected);
  });

  test('also for the client_id that the CN is bound to', async () => {
    const ca = caWith(restricted);
    for (const id of ['*w.bad.example', 'admin.example.com', 'admin。example。com', '10.0.0.1 '])
      expect(await issued(await token(id), buildCsr(key, { subject: commonName(id) }), { ca, binding: 'cn' })).toBe(NO);
  });

  test('also for the subject that a template makes, and for that of a mapped principal', async () => {
    const template = caWith({ ...restricted, subject: { template: 'CN={id}' } });
    expect(await issued(await token('*w.bad.example'), csrOf({}), { ca: template })).toBe(NO);
    const mapped = principal('host/a@EXAMPLE.COM', 'CN=admin。example。com');
    expect(await issued(mapped, csrOf({}), { ca: caWith(restricted) })).toBe(NO);
  });

  test('also before a CA elsewhere, which gets nothing of it', async () => {
    let reached = 0;
    const prepare = () => Promise.reject(failed('CA_UNUSABLE', `reached ${++reached} times`));
    const { driver, config } = caWith(restricted);
    const ca = new Ca(config, {
      chain: () => driver.chain(),
      issue: prepare,
      prepare,
      remoteQueue: remoteQueue(),
      revoke: () => Promise.resolve(),
      health: () => Promise.resolve({ health: 'ok' }),
      close: () => Promise.resolve(),
    });
    const identity = await token('x');
    for (const subject of ['CN=*w.bad.example', 'CN=10.0.0.1\\ ', 'CN=admin。example。com'])
      expect(await issued(identity, csrOf({ subject }), { ca })).toBe(NO);
    const subject = formatName(devices.certificate.subject).toUpperCase();
    expect(await issued(identity, csrOf({ subject }), { ca })).toBe('400 SUBJECT_NOT_ALLOWED');
    expect([await issued(identity, csrOf({}), { ca }), reached]).toEqual(['500 CA_UNUSABLE', 1]);
  });

  test('also for a certificate that is renewed', async () => {
    const { outcome } = await pipeline({ store, identity: await token('x') }).enroll(
      received(devices, csrOf({ subject: 'CN=admin．example．com' }), { requestId: randomUUID() }),
    );
    if (outcome.status !== 'issued') throw new Error(outcome.status);
    const certificate = parseCertificate(outcome.certificate);
    const identity = mtlsIdentity({ certificate, issuer: devices.certificate }, true);
    const sent = { ca: caWith(restricted), operation: 'simplereenroll' } as const;
    expect(await issued(identity, csrOf({ subject: 'CN=admin．example．com' }), sent)).toBe(NO);
  });
});

describe('the subject of a CA of this server is never issued', () => {
  const twin = (): string => formatName(devices.certificate.subject);
  test.each<[string, (subject: string) => string]>([
    ['the same', (subject) => subject],
    ['in another case', (subject) => subject.replace(/=([^,]*)/g, (all) => all.toUpperCase())],
    ['and a space', (subject) => subject.replace(/,|$/, '\\ $&')],
    ['of full-width letters', (subject) => subject.replace(/=d/, '=ｄ')],
  ])('%s', async (_, change) => {
    const subject = change(twin());
    for (const operation of ['simpleenroll', 'serverkeygen'] as const)
      expect(await issued(await token('x'), csrOf({ subject }), { operation })).toBe('400 SUBJECT_NOT_ALLOWED');
  });

  test('nor that of another CA of the server, of one above it, or of one whose certificates it renews', async () => {
    const other = await fileCa(folder, 'other');
    const former = parseCertificate((await makeCa('CN=Former CA')).der);
    const all = () => [devices, other, new Ca(devices.config, devices.driver, { renewalIssuers: [former] })];
    const ca = new Ca(devices.config, devices.driver, { all });
    const above = other.certificates.at(-1);
    for (const { subject } of [other.certificate, above ?? former, former])
      expect(await issued(await token('x'), csrOf({ subject: formatName(subject) }), { ca })).toBe(
        '400 SUBJECT_NOT_ALLOWED',
      );
  });

  test('nor is it mapped to a principal, or made by a template', async () => {
    const subject = twin();
    expect(await issued(principal('ca@EXAMPLE.COM', subject), csrOf({}))).toBe('400 SUBJECT_NOT_ALLOWED');
    const ca = caWith({ subject: { template: subject.replace('devices', '{id}') } });
    expect(await issued(await token('Devices'), csrOf({}), { ca })).toBe('400 SUBJECT_NOT_ALLOWED');
  });

  test('a CA elsewhere that is not known yet stops no other one', async () => {
    const unknown = new Ca(devices.config, { ...devices.driver, chain: () => [] });
    const ca = new Ca(devices.config, devices.driver, { all: () => [unknown, devices] });
    expect(await issued(await token('x'), csrOf({}), { ca })).toBe('CN=device-1');
  });
});

describe('strings', () => {
  test.each<[string, Buffer]>([
    ['TeletexString', tlv(0x14, Buffer.from('device', 'latin1'))],
    ['BMPString', tlv(0x1e, Buffer.from('device', 'utf16le').swap16())],
    [
      'UniversalString',
      tlv(0x1c, Buffer.from(Array.from('device', (letter) => [0, 0, 0, letter.charCodeAt(0)]).flat())),
    ],
  ])('%s is issued as UTF8String', async (_, value) => {
    const csr = buildCsr(key, { subject: name(attribute('2.5.4.3', value)), attributes: [] });
    const { outcome } = await pipeline({ store, identity: await token('x') }).enroll(
      received(devices, csr, { requestId: randomUUID() }),
    );
    if (outcome.status !== 'issued') throw new Error(outcome.status);
    expect(parseCertificate(outcome.certificate).subject.der).toEqual(name(attribute('2.5.4.3', utf8String('device'))));
  });
});
