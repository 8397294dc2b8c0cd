/**
 * Which method authenticates an EST request, and what is audited.
 *
 * Longer than other files: the precedence of the methods is one table.
 */
import { describe, expect, test } from 'vitest';

import type { AuditEvent } from '../../src/audit/event.ts';
import { createEstAuthenticator, type EstAuthenticator } from '../../src/auth/est-authenticator.ts';
import type { FailureRecords } from '../../src/auth/failure-records.ts';
import type { PresentedCredentials } from '../../src/auth/identity.ts';
import { MtlsPlugin } from '../../src/auth/mtls/mtls.ts';
import { PrincipalMapping } from '../../src/auth/gssapi/principal.ts';
import { SpnegoPlugin } from '../../src/auth/gssapi/gssapi.ts';
import { UnverifiedTickets } from '../../src/auth/gssapi/kerberos-verifier.ts';
import { OtpPlugin } from '../../src/auth/otp/otp-service.ts';
import type { AuthContext, AuthPlugin } from '../../src/auth/plugin.ts';
import { EstuaryError, unauthorized, unavailable } from '../../src/errors.ts';
import { tlv } from '../../src/pki/der/der.ts';
import { parseCertificate } from '../../src/pki/x509/certificate.ts';
import { parseDistinguishedName } from '../../src/pki/x509/name.ts';
import { encodePem } from '../../src/pki/der/pem.ts';
import { runForRequest } from '../../src/request-context.ts';
import { ecdsaTwin, makeCa, makeClient, type Issuer } from '../support/certificates.ts';
import { failureRecords } from '../support/failure-records.ts';
import { apReq, text } from '../support/ap-req.ts';
import { issue, T0 } from '../store/support.ts';
import { INVALID, LOCKED, setUpOtp, WRONG, type OtpSetup } from './otp/support.ts';
import { UNKNOWN } from './chain.ts';
import { clientTrust } from '../support/client-trust.ts';

const root = await makeCa('CN=Root', { notBefore: T0 - 1000 });
const client = await makeClient('CN=client,O=Example', root, { serial: '0c11e2', notBefore: T0 - 1000 });
const stranger = await makeClient('CN=stranger', await makeCa('CN=Stranger'), { notBefore: T0 - 1000 });
const trust = await clientTrust({ trustAnchors: encodePem('CERTIFICATE', root.der) });

const basic = (password: string): string => `Basic ${Buffer.from(`device:${password}`).toString('base64')}`;

interface Setup extends OtpSetup {
  readonly failures: FailureRecords;
  readonly plugins: { readonly mtls: AuthPlugin; readonly otp: AuthPlugin };
  readonly outcome: (
    presented: Partial<PresentedCredentials>,
    context?: Partial<AuthContext>,
    by?: EstAuthenticator,
  ) => Promise<string>;
}

const PRESENTED: PresentedCredentials = {
  peerCertificate: undefined,
  peerIntermediates: [],
  authorization: undefined,
  address: '192.0.2.1',
};

async function setUp(): Promise<Setup> {
  const otp = await setUpOtp();
  const plugins = { mtls: new MtlsPlugin(() => trust, otp.store), otp: new OtpPlugin(otp.service) };
  // the order of configuration does not matter
  const failures = failureRecords(otp.store);
  const authenticator = createEstAuthenticator({ plugins: [plugins.otp, plugins.mtls], store: otp.store, failures });
  const context: AuthContext = {
    operation: 'simpleenroll',
    caLabel: 'devices',
    certificateOnly: false,
    expiredGraceSeconds: 0,
    now: T0,
  };
  return {
    ...otp,
    plugins,
    failures,
    outcome: async (presented, changes = {}, by = authenticator) => {
      try {
        const { requester } = await by.authenticate({ ...PRESENTED, ...presented }, { ...context, ...changes });
        return requester.replace(/ sha256:[0-9a-f]{64}$/, '');
      } catch (error) {
        if (!(error instanceof EstuaryError)) throw error;
        return `${error.status} ${error.message}`;
      }
    },
  };
}

const trail = async ({ store }: Setup): Promise<string[]> =>
  (await store.listAudit({ limit: 100 })).items
    .filter(({ type }) => type.startsWith('auth.'))
    .map(({ type, outcome, subject, detail }) => `${type} ${outcome} ${subject ?? '-'}: ${detail ?? '-'}`);

const mtls = 'mtls:CN=client,O=Example';

describe('service-spec, Precedence: mTLS, then OTP; a request succeeds if any method succeeds', () => {
  test.each<[string, Partial<PresentedCredentials>, 'token' | 'wrong' | undefined, string]>([
    ['a good certificate', { peerCertificate: client.der }, undefined, mtls],
    ['a good certificate and a right password: the certificate', { peerCertificate: client.der }, 'token', mtls],
    ['a good certificate and a wrong password: the certificate', { peerCertificate: client.der }, 'wrong', mtls],
    ['an untrusted certificate and a right password: the password', { peerCertificate: stranger.der }, 'token', 'otp'],
    [
      'a malformed certificate and a right password: the password',
      { peerCertificate: Buffer.from('00') },
      'token',
      'otp',
    ],
    ['a right password', {}, 'token', 'otp'],
    ['a wrong password', {}, 'wrong', `401 ${INVALID}`],
    ['an untrusted certificate', { peerCertificate: stranger.der }, undefined, `401 ${UNKNOWN}`],
    [
      'an untrusted certificate and a wrong password: the message of the header',
      { peerCertificate: stranger.der },
      'wrong',
      `401 ${INVALID}`,
    ],
    ['nothing: a bare challenge', {}, undefined, '401 '],
    ['a scheme that is not switched on: a bare challenge', { authorization: 'Negotiate abc' }, undefined, '401 '],
  ])('%s', async (_, presented, password, expected) => {
    const setup = await setUp();
    const { token, id } = await setup.newToken();
    const header = password === undefined ? {} : { authorization: basic(password === 'token' ? token : WRONG) };
    expect(await setup.outcome({ ...presented, ...header })).toBe(expected === 'otp' ? `otp:${id}` : expected);
  });

  test.each<[string, Partial<PresentedCredentials>, string]>([
    ['a good certificate', { peerCertificate: client.der }, mtls],
    ['nothing', {}, '401 client certificate required'],
    ['a right password', {}, '401 client certificate required'],
    ['an untrusted certificate and a right password', { peerCertificate: stranger.der }, `401 ${UNKNOWN}`],
  ])('where only a certificate would do, %s', async (_, presented, expected) => {
    const setup = await setUp();
    const { token } = await setup.newToken();
    const authorization = presented.peerCertificate === client.der ? undefined : basic(token);
    expect(await setup.outcome({ ...presented, authorization }, { certificateOnly: true })).toBe(expected);
    expect((await setup.store.listOtps({ limit: 1 }, 0)).items[0]?.uses).toBe(0);
  });

  test('with no password method switched on, nothing presented is `client certificate required` everywhere', async () => {
    const setup = await setUp();
    const alone = createEstAuthenticator({
      plugins: [setup.plugins.mtls],
      store: setup.store,
      failures: setup.failures,
    });
    expect(await setup.outcome({}, {}, alone)).toBe('401 client certificate required');
    expect(await setup.outcome({ authorization: basic(WRONG) }, {}, alone)).toBe('401 client certificate required');
  });

  test('with mode none, a certificate is not looked at', async () => {
    const setup = await setUp();
    const without = createEstAuthenticator({
      plugins: [setup.plugins.otp],
      store: setup.store,
      failures: setup.failures,
    });
    expect(await setup.outcome({ peerCertificate: client.der }, {}, without)).toBe('401 ');
    expect(await setup.outcome({ peerCertificate: client.der }, { certificateOnly: true }, without)).toBe(
      '401 client certificate required',
    );
  });

  test('GSSAPI comes between: before OTP, after the certificate, with its note in the audit log', async () => {
    const setup = await setUp();
    const gssapi: AuthPlugin = {
      method: 'gssapi',
      authenticate: ({ authorization }) => {
        if (authorization?.startsWith('Negotiate ') !== true) return Promise.resolve(undefined);
        if (authorization.endsWith('bad'))
          return Promise.reject(unauthorized('GSSAPI_FAILED', 'GSSAPI authentication failed'));
        const principal = 'alice@EXAMPLE.COM';
        const subject = parseDistinguishedName('CN=alice');
        return Promise.resolve({
          method: 'gssapi',
          requester: `gssapi:${principal}`,
          display: principal,
          principal,
          subject,
          replyToken: undefined,
          note: 'unverified',
        });
      },
    };
    const three = createEstAuthenticator({
      plugins: [setup.plugins.otp, gssapi, setup.plugins.mtls],
      store: setup.store,
      failures: setup.failures,
    });
    expect(await setup.outcome({ authorization: 'Negotiate x' }, {}, three)).toBe('gssapi:alice@EXAMPLE.COM');
    expect(await setup.outcome({ authorization: 'Negotiate x', peerCertificate: client.der }, {}, three)).toBe(mtls);
    expect(await setup.outcome({ authorization: 'Negotiate bad' }, {}, three)).toBe('401 GSSAPI authentication failed');
    expect(await trail(setup)).toEqual([
      'auth.gssapi success alice@EXAMPLE.COM: simpleenroll; unverified',
      'auth.mtls success CN=client,O=Example: simpleenroll',
      'auth.gssapi failure -: simpleenroll; GSSAPI authentication failed',
    ]);
  });

  test('a check that could not be made is no failed one: 503 stays 503, and no event says otherwise', async () => {
    const setup = await setUp();
    const down: AuthPlugin = {
      method: 'gssapi',
      authenticate: () => Promise.reject(unavailable('GSSAPI_DOWN', 'try again later')),
    };
    const authenticator = createEstAuthenticator({
      plugins: [down, setup.plugins.otp],
      store: setup.store,
      failures: setup.failures,
    });
    expect(await setup.outcome({ authorization: basic(WRONG) }, {}, authenticator)).toBe('503 try again later');
    expect(await trail(setup)).toEqual([]);
  });

  test('locked out: the message and the seconds, but a certificate still gets in', async () => {
    const setup = await setUp();
    for (let i = 0; i < 6; i++) await setup.outcome({ authorization: basic(WRONG) });
    const { token } = await setup.newToken();
    expect(await setup.outcome({ authorization: basic(token) })).toBe(`401 ${LOCKED}`);
    expect(await setup.outcome({ authorization: basic(token), peerCertificate: client.der })).toBe(mtls);
  });
});

describe('every authentication is audited, success and failure', () => {
  test.each<[string, AuthPlugin['method'], Partial<PresentedCredentials>]>([
    ['certificates', 'mtls', { peerCertificate: stranger.der }],
    ['Kerberos tickets', 'gssapi', { authorization: 'Negotiate x' }],
  ])('refused %s of one address share a record that counts them', async (_, method, presented) => {
    const setup = await setUp();
    const refusing: AuthPlugin = {
      method: 'gssapi',
      authenticate: () => Promise.reject(unauthorized('GSSAPI_FAILED', 'GSSAPI authentication failed')),
    };
    const { store, failures, plugins } = setup;
    const by = createEstAuthenticator({ plugins: [method === 'gssapi' ? refusing : plugins.mtls], store, failures });
    for (let n = 0; n < 30; n++) expect(await setup.outcome(presented, {}, by)).toMatch(/^401 /);
    await failures.close();
    const { items } = await store.listAudit({ limit: 100, type: `auth.${method}` });
    expect(items).toHaveLength(6);
    expect(items[5]?.detail).toMatch(/^25 more failures from this address /);
  });

  test('with method, subject, address, CA and serial; nothing presented leaves no trace', async () => {
    const setup = await setUp();
    const { token } = await setup.newToken();
    await setup.outcome({});
    await setup.outcome({ peerCertificate: client.der });
    await setup.outcome({ peerCertificate: stranger.der, authorization: basic(token) });
    await setup.outcome({ authorization: basic(WRONG) });
    const events = await trail(setup);
    expect(events[0]).toBe('auth.mtls success CN=client,O=Example: simpleenroll');
    expect(events[1]).toMatch(
      /^auth\.mtls failure CN=stranger: simpleenroll; certificate signed by unknown authority; /,
    );
    expect(events.slice(2)).toEqual([
      'auth.otp success device-1: simpleenroll',
      'auth.otp failure device: unknown token',
    ]);
    const { items } = await setup.store.listAudit({ limit: 10, type: 'auth.mtls' });
    expect(items[0]).toMatchObject({ address: '192.0.2.1', ca: 'devices', serial: '0c11e2' });
    const all = JSON.stringify(await setup.store.listAudit({ limit: 100 }));
    expect(all).not.toContain(token);
    expect(all).not.toContain(WRONG);
  });

  test('a good certificate that does not count here: 403, a record with its issuer, and a password does as well', async () => {
    const setup = await setUp();
    const rules = { methods: undefined, accepts: () => Promise.resolve(false), isOfThisServer: () => false };
    const { token, id } = await setup.newToken();
    const peerCertificate = client.der;
    expect(await setup.outcome({ peerCertificate }, { rules })).toBe('403 client certificate not accepted by this CA');
    expect(await setup.outcome({ peerCertificate, authorization: basic(token) }, { rules })).toBe(`otp:${id}`);
    const { items } = await setup.store.listAudit({ limit: 10, type: 'auth.mtls' });
    const [first, second] = items;
    expect(first).toMatchObject({
      outcome: 'failure',
      subject: 'CN=client,O=Example',
      requester_issuer: 'CN=Root',
      ca: 'devices',
      detail: 'simpleenroll; client certificate not accepted by this CA',
    });
    expect(second).toMatchObject({ outcome: 'failure' });
  });

  test('the log line of the request has the requester and the method, also of a method that failed', async () => {
    const setup = await setUp();
    const noted = async (presented: Partial<PresentedCredentials>): Promise<unknown> => {
      const context = { requestId: 'request-1', party: '192.0.2.1' };
      await runForRequest(context, () => setup.outcome(presented));
      return context;
    };
    expect(await noted({ peerCertificate: client.der })).toMatchObject({
      requester: 'CN=client,O=Example',
      method: 'mtls',
    });
    const failed = await noted({ peerCertificate: stranger.der });
    expect(failed).toMatchObject({ method: 'mtls' });
    expect(failed).not.toHaveProperty('requester');
  });

  test('a method that the label does not accept is not tried', async () => {
    const setup = await setUp();
    const { token } = await setup.newToken();
    const rules = { methods: ['mtls'], accepts: () => Promise.resolve(true), isOfThisServer: () => true } as const;
    expect(await setup.outcome({ authorization: basic(token) }, { rules })).toBe('401 client certificate required');
    expect(await setup.outcome({ peerCertificate: client.der }, { rules })).toBe(mtls);
  });

  test('only the success of a certificate has the hints of other methods', async () => {
    const setup = await setUp();
    const { token, id } = await setup.newToken();
    const { plugins, store, failures } = setup;
    const hinting: AuthPlugin = {
      method: 'ldap',
      authenticate: () => Promise.resolve(undefined),
      hint: () => 'a hint',
    };
    const by = createEstAuthenticator({ plugins: [plugins.otp, plugins.mtls, hinting], store, failures });
    expect(await setup.outcome({ authorization: basic(token) }, {}, by)).toBe(`otp:${id}`);
    expect(await setup.outcome({ peerCertificate: client.der }, {}, by)).toBe(mtls);
    expect(await trail(setup)).toEqual([
      'auth.otp success device-1: simpleenroll',
      'auth.mtls success CN=client,O=Example: simpleenroll; a hint',
    ]);
  });

  test('a refused password is recorded without the name of the certificate on its connection', async () => {
    const setup = await setUp();
    const refusing: AuthPlugin = {
      method: 'gssapi',
      authenticate: () => Promise.reject(unauthorized('GSSAPI_FAILED', 'GSSAPI authentication failed')),
    };
    const { store, failures } = setup;
    const by = createEstAuthenticator({ plugins: [refusing], store, failures });
    await setup.outcome({ peerCertificate: client.der, authorization: 'Negotiate x' }, {}, by);
    expect(await trail(setup)).toEqual(['auth.gssapi failure -: simpleenroll; GSSAPI authentication failed']);
  });

  test('a caller may commit the success with its own transaction', async () => {
    const setup = await setUp();
    const events: AuditEvent[] = [];
    expect(await setup.outcome({ peerCertificate: client.der }, { events })).toBe(mtls);
    expect(await trail(setup)).toEqual([]);
    expect(events).toMatchObject([{ type: 'auth.mtls', outcome: 'success', subject: 'CN=client,O=Example' }]);
  });
});

describe('a certificate revoked in our own store never authenticates', () => {
  const record = (setup: Setup, leaf: Issuer): Promise<unknown> => {
    const { serialNumber, fingerprint } = parseCertificate(leaf.der);
    return issue(setup.store, { ca: 'devices', serial: serialNumber, der: leaf.der, fingerprint_sha256: fingerprint });
  };
  const revoke = (setup: Setup): Promise<unknown> =>
    setup.store.revokeCertificate(
      { ca: 'devices', serial: '0c11e2', revoked_at: T0, reason: 'keyCompromise', invalidity_date: null },
      [],
    );

  test('from the moment of its revocation, although its path is remembered', async () => {
    const setup = await setUp();
    await record(setup, client);
    expect(await setup.outcome({ peerCertificate: client.der })).toBe(mtls);
    await revoke(setup);
    expect(await setup.outcome({ peerCertificate: client.der })).toBe('401 client certificate revoked');
    expect(await setup.outcome({ peerCertificate: client.der }, { certificateOnly: true })).toBe(
      '401 client certificate revoked',
    );
  });

  test('nor does it with its ECDSA signature rewritten, which is still valid and has another fingerprint', async () => {
    const setup = await setUp();
    const twin = { ...client, der: ecdsaTwin(client.der) };
    expect(twin.der.equals(client.der)).toBe(false);
    expect(await setup.outcome({ peerCertificate: twin.der })).toBe(mtls);
    await record(setup, client);
    await revoke(setup);
    expect(await setup.outcome({ peerCertificate: twin.der })).toBe('401 client certificate revoked');
  });

  test("another CA's certificate with the same serial number is not concerned", async () => {
    const setup = await setUp();
    const foreign = await makeClient('CN=foreign', await makeCa('CN=Foreign'), { serial: '0c11e2' });
    await record(setup, foreign);
    await revoke(setup);
    expect(await setup.outcome({ peerCertificate: client.der })).toBe(mtls);
  });
});

describe('a certificate is of this server', () => {
  const rules = (isOfThisServer: boolean) => ({
    methods: undefined,
    accepts: () => Promise.resolve(true),
    isOfThisServer: () => isOfThisServer,
  });
  const issuedHere = async (store: Setup['store'], isOfThisServer: boolean, peerCertificate = client.der) => {
    let asked = 0;
    const counting = { ...store, getCertificates: (serial: string) => ((asked += 1), store.getCertificates(serial)) };
    const plugin = new MtlsPlugin(() => trust, counting);
    const context = { operation: 'simpleenroll', caLabel: 'devices', certificateOnly: true, expiredGraceSeconds: 0 };
    const identity = await plugin.authenticate(
      { ...PRESENTED, peerCertificate },
      { ...context, now: T0, rules: rules(isOfThisServer) },
    );
    return [identity?.issuedHere, asked];
  };

  test('if its issuer is, whether or not the store knows it; the store is not asked', async () => {
    const { store } = await setUp();
    expect(await issuedHere(store, true)).toEqual([true, 0]);
  });

  test('if the store has recorded it, in either form of its ECDSA signature', async () => {
    const setup = await setUp();
    expect(await issuedHere(setup.store, false)).toEqual([false, 1]);
    const { der } = client;
    await issue(setup.store, { ca: 'devices', serial: '0c11e2', subject: 'CN=client,O=Example', der });
    expect(await issuedHere(setup.store, false)).toEqual([true, 1]);
    expect(await issuedHere(setup.store, false, ecdsaTwin(der))).toEqual([true, 1]);
  });
});

describe('service-spec GSSAPI an unverified ticket next to a client certificate', () => {
  const krb5 = Buffer.from('06092a864886f712010202', 'hex');
  const token = tlv(0x60, krb5, Buffer.from([1, 0]), apReq({ realm: text('EXAMPLE.TEST') }));

  test.each<[string, string, string]>([
    [
      'is recorded as a hint',
      `Negotiate ${token.toString('base64')}`,
      '; Kerberos hint, NOT verified: HTTP/localhost@EXAMPLE.TEST',
    ],
    ['that is malformed is no hint', 'Negotiate AAAA', ''],
    ['is not there', basic('any'), ''],
  ])('%s, and the certificate authenticates', async (_, authorization, hint) => {
    const setup = await setUp();
    const mapping = new PrincipalMapping({ principal_mapping: {}, default_template: 'CN={principal}' });
    const by = createEstAuthenticator({
      plugins: [new SpnegoPlugin(new UnverifiedTickets(), mapping), setup.plugins.mtls],
      store: setup.store,
      failures: setup.failures,
    });
    expect(await setup.outcome({ peerCertificate: client.der, authorization }, {}, by)).toBe(mtls);
    expect(await trail(setup)).toEqual([`auth.mtls success CN=client,O=Example: simpleenroll${hint}`]);
  });
});
