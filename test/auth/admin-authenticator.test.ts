import { describe, expect, test } from 'vitest';
import { AdminAuthenticator, type AdminAuthSettings } from '../../src/auth/admin-authenticator.ts';
import { type AdminClient, type AdminIdentity } from '../../src/auth/administrators.ts';
import type { PresentedCredentials } from '../../src/auth/identity.ts';
import { certificateRow } from '../../src/enrollment/certificate-row.ts';
import { encodePem } from '../../src/pki/der/pem.ts';
import { ecdsaTwin, makeCa, makeClient } from '../support/certificates.ts';
import { failureRecords } from '../support/failure-records.ts';
import { opened, T0, temporaryPaths } from '../store/support.ts';
import { clientTrust } from '../support/client-trust.ts';
import {
  DAY,
  adminCa,
  admin,
  trust,
  fingerprintOf,
  spkiOf,
  hashed,
  TOKENS,
  REQUIRED,
  FAILED,
  setUp,
  certificate,
  foreign,
  token,
  wrong,
} from './admin-support.ts';

describe('service-spec, Admin authentication: by mTLS, by bearer token, or both', () => {
  test.each<[AdminAuthSettings['mode'], boolean, string, Partial<PresentedCredentials>, string]>([
    ['none', true, 'a token', token, 'bearer second'],
    ['none', true, 'a wrong token', wrong, FAILED],
    ['none', true, 'a certificate', certificate, REQUIRED],
    ['none', true, 'nothing', {}, REQUIRED],
    ['optional', true, 'a token', token, 'bearer second'],
    ['optional', true, 'a certificate', certificate, 'mtls CN=Alice,OU=Admins'],
    ['optional', true, 'both', { ...certificate, ...token }, 'mtls CN=Alice,OU=Admins'],
    ['optional', true, "a device's certificate", foreign, FAILED],
    ['optional', true, "a device's certificate and a token", { ...foreign, ...token }, 'bearer second'],
    ['optional', true, "a device's certificate and a wrong token", { ...foreign, ...wrong }, FAILED],
    ['optional', true, 'a certificate and a wrong token', { ...certificate, ...wrong }, FAILED],
    ['optional', true, 'a certificate and another scheme', { ...certificate, authorization: 'Basic YTpi' }, FAILED],
    ['optional', false, 'a certificate and any token', { ...certificate, ...wrong }, 'mtls CN=Alice,OU=Admins'],
    ['required_for_reenroll', true, 'a token', token, 'bearer second'],
    ['required_for_reenroll', true, 'a certificate', certificate, 'mtls CN=Alice,OU=Admins'],
    ['required', true, 'a certificate and a token', { ...certificate, ...token }, 'mtls CN=Alice,OU=Admins'],
    ['required', true, 'a certificate and a wrong token', { ...certificate, ...wrong }, FAILED],
    ['optional', false, 'a token', token, REQUIRED],
    ['optional', false, 'a certificate', certificate, 'mtls CN=Alice,OU=Admins'],
    ['required', true, 'a certificate alone', certificate, 'mtls CN=Alice,OU=Admins'],
    ['required', true, 'a token alone', token, REQUIRED],
    ['required', true, "a device's certificate and a token", { ...foreign, ...token }, FAILED],
    ['required', false, 'a certificate', certificate, 'mtls CN=Alice,OU=Admins'],
  ])('mode %s, bearer tokens %s: %s', async (mode, bearer, _, presented, expected) => {
    const setup = await setUp(mode, bearer);
    expect(await setup.outcome(presented)).toBe(expected);
  });

  test.each([
    'Bearer',
    'Bearer ',
    'Bearer second-token extra',
    'Bearer second-token,',
    'Bearer second-toke',
    'Bearer SECOND-TOKEN',
    'second-token',
    'Basic c2Vjb25kLXRva2Vu',
    `Bearer ${hashed('second-token')}`,
    `Bearer ${hashed('second-token').slice(7)}`,
    `Bearer ${'x'.repeat(100_000)}`,
    'Bearer \u00e9',
  ])('the header %s is refused', async (authorization) => {
    const setup = await setUp('none', true);
    expect(await setup.outcome({ authorization })).toBe(FAILED);
  });

  test('with mode none, a certificate is not looked at, whatever the trust anchors', async () => {
    const setup = await setUp('none', true);
    setup.settings = { ...setup.settings, trust };
    expect(await setup.outcome(certificate)).toBe(REQUIRED);
  });

  test('a header of 4,096 characters is read, a longer one is not', async () => {
    for (const [length, expected] of [
      [4096, 'bearer long'],
      [4097, FAILED],
    ] as const) {
      const setup = await setUp('none', true);
      const long = 'x'.repeat(length - 'Bearer '.length);
      const tokens = [{ token_hash: hashed(long), description: 'long' }];
      setup.settings = { ...setup.settings, bearer_token: { enabled: true, tokens } };
      expect(await setup.outcome({ authorization: `Bearer ${long}` })).toBe(expected);
    }
  });

  test('a certificate that is revoked in the store is rejected', async () => {
    const setup = await setUp('optional', true);
    const row = certificateRow(admin.der, { ca: 'admins', requester: 'Alice', method: 'otp', request_id: 'request-1' });
    await setup.store.importCertificate(row, []);
    expect(await setup.outcome(certificate)).toBe('mtls CN=Alice,OU=Admins');
    const { ca, serial } = row;
    await setup.store.revokeCertificate(
      { ca, serial, reason: 'keyCompromise', revoked_at: T0, invalidity_date: null },
      [],
    );
    expect(await setup.outcome(certificate)).toBe(FAILED);
  });

  test('the scheme is compared without case', async () => {
    const setup = await setUp('none', true);
    expect(await setup.outcome({ authorization: 'bearer first-token' })).toBe('bearer first');
  });

  test('a reload replaces tokens and anchors at once', async () => {
    const setup = await setUp('optional', true);
    expect(await setup.outcome(token)).toBe('bearer second');
    setup.settings = { ...setup.settings, bearer_token: { enabled: true, tokens: TOKENS.slice(0, 1) } };
    expect(await setup.outcome(token)).toBe(FAILED);
    setup.settings = { mode: 'none', trust: undefined, bearer_token: { enabled: false, tokens: [] } };
    expect(await setup.outcome({ ...certificate, ...token })).toBe(REQUIRED);
  });
});

describe('who has which roles', () => {
  const other = makeClient('CN=Bob,OU=Admins', adminCa);
  const identity = async (
    presented: Partial<PresentedCredentials>,
    settings: Partial<AdminAuthSettings>,
  ): Promise<AdminIdentity> => {
    const store = await opened(temporaryPaths());
    const tokens = { enabled: true, tokens: TOKENS };
    const authenticator = new AdminAuthenticator(
      () => ({ mode: 'optional', trust, bearer_token: tokens, ...settings }),
      store,
      failureRecords(store),
      () => T0 + DAY,
    );
    const none = { peerCertificate: undefined, peerIntermediates: [], authorization: undefined, address: '192.0.2.1' };
    return authenticator.authenticate({ ...none, ...presented });
  };
  const rolesOf = async (...args: Parameters<typeof identity>): Promise<readonly string[]> =>
    (await identity(...args)).roles;
  const names = (subject: string, issuer: string) => ({ subject, issuer, roles: ['ra'] as const });
  const fingerprint = fingerprintOf(admin.der);
  const spki = spkiOf(admin.der);

  test('of whom the configuration says nothing, admin', async () => {
    expect(await rolesOf(token, {})).toEqual(['admin']);
    expect(await rolesOf(certificate, {})).toEqual(['admin']);
  });

  test.each<[string, Partial<AdminAuthSettings>, readonly string[]]>([
    ['by subject and issuer', { clients: [names('CN=Alice,OU=Admins', 'CN=Admin CA')] }, ['ra']],
    ['names compared as RFC 5280 has it', { clients: [names('cn=alice,ou=ADMINS', 'CN=admin ca')] }, ['ra']],
    ['another subject: none', { clients: [names('CN=Alice', 'CN=Admin CA')] }, []],
    ['another issuer: none', { clients: [names('CN=Alice,OU=Admins', 'CN=Another CA')] }, []],
    [
      'another subject, with default_roles',
      { clients: [names('CN=Alice', 'CN=Admin CA')], default_roles: ['ra'] },
      ['ra'],
    ],
    ['by key', { clients: [{ spki_sha256: spki.toUpperCase(), roles: ['auditor'] }] }, ['auditor']],
    ['an entry without roles', { clients: [{ spki_sha256: spki }] }, ['admin']],
    ['by fingerprint', { clients: [{ fingerprint: fingerprint.toUpperCase(), roles: ['auditor'] }] }, ['auditor']],
    [
      'by fingerprint before key and names',
      {
        clients: [
          names('CN=Alice,OU=Admins', 'CN=Admin CA'),
          { spki_sha256: spki, roles: ['operator'] },
          { fingerprint, roles: ['auditor'] },
        ],
      },
      ['auditor'],
    ],
    [
      'by key before names',
      { clients: [names('CN=Alice,OU=Admins', 'CN=Admin CA'), { spki_sha256: spki, roles: ['operator'] }] },
      ['operator'],
    ],
    ['by default_roles', { default_roles: ['operator'] }, ['operator']],
    ['an empty default: none', { default_roles: [] }, []],
    [
      'an entry before default_roles',
      { clients: [names('CN=Alice,OU=Admins', 'CN=Admin CA')], default_roles: ['operator'] },
      ['ra'],
    ],
  ])('a certificate: %s', async (_, settings, expected) => {
    expect(await rolesOf(certificate, settings)).toEqual(expected);
  });

  test('a token has its own roles, regardless of default_roles', async () => {
    const tokens = TOKENS.map((token) => ({
      ...token,
      roles: token.description === 'second' ? (['ra', 'operator'] as const) : [],
    }));
    expect(await rolesOf(token, { bearer_token: { enabled: true, tokens }, default_roles: [] })).toEqual([
      'ra',
      'operator',
    ]);
  });

  test('a token with an end: until then, and from then on 401, and the audit log says why', async () => {
    const setup = await setUp('none', true);
    const ending = (ms: number): AdminAuthSettings => ({
      ...setup.settings,
      bearer_token: {
        enabled: true,
        tokens: TOKENS.map((token) => ({ ...token, not_after: new Date(ms).toISOString() })),
      },
    });
    setup.settings = ending(T0 + DAY + 1);
    expect(await setup.outcome(token)).toBe('bearer second');
    setup.settings = ending(T0 + DAY);
    expect(await setup.outcome(token)).toBe(FAILED);
    const { items } = await setup.store.listAudit({ limit: 10 });
    expect(items).toMatchObject([{ type: 'auth.admin', detail: 'the bearer token of second has expired' }]);
  });

  const keyOf = async (...args: Parameters<typeof identity>) => (await identity(...args)).key;
  const renewed = makeClient('CN=Alice,OU=Admins', adminCa, { slot: 'renewed' });

  test('one administrator is one name, one entry of the configuration, or one issuer and subject', async () => {
    const keys = [
      await keyOf(certificate, {}),
      await keyOf({ peerCertificate: (await renewed).der }, {}),
      await keyOf(certificate, { clients: [names('CN=Alice,OU=Admins', 'CN=Admin CA')] }),
      await keyOf({ peerCertificate: (await other).der }, {}),
      await keyOf(certificate, { clients: [{ fingerprint, roles: [] }] }),
      await keyOf(token, {}),
      await keyOf({ authorization: 'Bearer first-token' }, {}),
    ];
    expect(keys[0]).toBe(keys[1]);
    expect(new Set(keys).size).toBe(6);
    expect(keys.join()).not.toContain(hashed('second-token').slice(7));
  });

  test('entries with equal names are one administrator, across methods; a description is the name of a token without one', async () => {
    const tokens = TOKENS.map((token, index) => ({ ...token, description: `token ${index}`, name: 'Alice' }));
    const clients = [
      { name: 'Alice', spki_sha256: spki, roles: ['ra'] as const },
      { name: 'second', fingerprint: fingerprintOf((await other).der), roles: ['ra'] as const },
    ];
    const named = { clients, bearer_token: { enabled: true, tokens } };
    const keys = [
      await keyOf(certificate, named),
      await keyOf(token, named),
      await keyOf({ authorization: 'Bearer first-token' }, named),
    ];
    expect(new Set(keys).size).toBe(1);
    expect(await keyOf({ peerCertificate: (await other).der }, { clients })).toBe(await keyOf(token, { clients }));
    expect(await identity(certificate, named)).toMatchObject({ display: 'Alice', hasEntry: true });
    expect((await identity(token, named)).display).toBe('Alice');
  });

  describe('the identity of a certificate is never a hash of the whole encoding', () => {
    const twin = ecdsaTwin(admin.der);
    const byEach: readonly [string, AdminClient][] = [
      ['fingerprint', { fingerprint }],
      ["the twin's fingerprint", { fingerprint: fingerprintOf(twin) }],
      ['spki_sha256', { spki_sha256: spki }],
      ['subject and issuer', { subject: 'CN=Alice,OU=Admins', issuer: 'CN=Admin CA' }],
    ];

    test.each(byEach)('an entry by %s means the certificate and its ECDSA twin', async (_, entry) => {
      const settings = { clients: [{ ...entry, roles: ['ra'] as const }], default_roles: ['admin'] as const };
      const [one, two] = [await identity(certificate, settings), await identity({ peerCertificate: twin }, settings)];
      expect(one).toMatchObject({ roles: ['ra'], hasEntry: true });
      expect(two).toEqual(one);
    });

    test('entries by the fingerprint of both forms: the first one counts for both', async () => {
      const clients: AdminClient[] = [
        { fingerprint: fingerprintOf(twin), roles: ['auditor'] },
        { fingerprint, roles: ['ra'] },
      ];
      for (const peerCertificate of [admin.der, twin])
        expect((await identity({ peerCertificate }, { clients })).roles).toEqual(['auditor']);
    });

    test('a certificate without an entry and its twin, or its renewal, are one administrator', async () => {
      const keys = await Promise.all(
        [admin.der, twin, (await renewed).der].map((peerCertificate) => keyOf({ peerCertificate }, {})),
      );
      expect(new Set(keys).size).toBe(1);
      expect(await identity(certificate, {})).toMatchObject({ hasEntry: false });
    });

    test.each([
      ['fingerprint', 'the same key', { fingerprint }, []],
      ['spki_sha256', 'the same key', { spki_sha256: spki }, ['ra']],
      ['spki_sha256', 'another key', { spki_sha256: spki }, []],
      ['subject and issuer', 'another key', { subject: 'CN=Alice,OU=Admins', issuer: 'CN=Admin CA' }, ['ra']],
    ] as const)('an entry by %s, after a renewal with %s', async (_, key, entry, roles) => {
      const next = await makeClient('CN=Alice,OU=Admins', adminCa, {
        slot: key === 'the same key' ? admin.subject : key,
      });
      const settings = { clients: [{ ...entry, roles: ['ra'] as const }] };
      expect(await rolesOf({ peerCertificate: next.der }, settings)).toEqual(roles);
    });
  });

  test('an entry by names does not mean a certificate of a CA that only has the name of an anchor', async () => {
    const otherAnchor = await makeCa('CN=Other Admin CA');
    const impostor = await makeCa('CN=Admin CA', { issuer: otherAnchor, slot: 'impostor' });
    const both = await clientTrust({
      trustAnchors: encodePem('CERTIFICATE', adminCa.der) + encodePem('CERTIFICATE', otherAnchor.der),
    });
    const mallory = await makeClient('CN=Alice,OU=Admins', impostor);
    const presented = { peerCertificate: mallory.der, peerIntermediates: [impostor.der] };
    const settings = { trust: both, clients: [names('CN=Alice,OU=Admins', 'CN=Admin CA')] };
    expect(await rolesOf(certificate, settings)).toEqual(['ra']);
    expect(await rolesOf(presented, settings)).toEqual([]);
  });
});

test('an entry by names means the certificates of each anchor with the issuer name', async () => {
  const [first, second] = [adminCa, await makeCa('CN=Admin CA', { slot: 'second' })];
  const both = await clientTrust({
    trustAnchors: [first, second].map(({ der }) => encodePem('CERTIFICATE', der)).join(''),
  });
  const setup = await setUp('optional', false);
  const clients = [{ name: 'Alice', subject: 'CN=Alice,OU=Admins', issuer: 'CN=Admin CA' }];
  setup.settings = { ...setup.settings, trust: both, clients };
  for (const ca of [first, second]) {
    const { der } = await makeClient('CN=Alice,OU=Admins', ca);
    expect(await setup.outcome({ peerCertificate: der })).toBe('mtls Alice');
  }
});

describe('audit of admin authentication', () => {
  test('a failure is recorded with the address and without the token; a request without credentials is not', async () => {
    const setup = await setUp('optional', true);
    await setup.outcome({});
    await setup.outcome({ ...foreign, ...wrong });
    const { items } = await setup.store.listAudit({ limit: 10 });
    expect(items).toMatchObject([{ type: 'auth.admin', outcome: 'failure', address: '192.0.2.1' }]);
    expect(items[0]?.detail).toContain('certificate signed by unknown authority');
    expect(JSON.stringify(items)).not.toContain('third-token');
  });

  test('repeated failures of one address share a record that counts them', async () => {
    const setup = await setUp('optional', true);
    for (let n = 0; n < 30; n++) expect(await setup.outcome({ ...foreign, ...wrong })).toBe(FAILED);
    await setup.failures.close();
    const { items } = await setup.store.listAudit({ limit: 100 });
    expect(items).toHaveLength(6);
    expect(items[5]).toMatchObject({ type: 'auth.admin', outcome: 'failure', address: '192.0.2.1' });
    expect(items[5]?.detail).toMatch(/^25 more failures from this address /);
  });
});
