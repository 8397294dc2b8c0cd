/** Browser sessions of administrators. */
import { describe, expect, test, vi } from 'vitest';
import { AdminAuthenticator, type AdminAuthSettings } from '../../src/auth/admin-authenticator.ts';
import { AdminSessions } from '../../src/auth/admin-sessions.ts';
import { oidcIdentity } from '../../src/auth/administrators.ts';
import { OidcSignIn, type OidcSettings } from '../../src/auth/oidc/oidc-sign-in.ts';
import type { PresentedCredentials } from '../../src/auth/identity.ts';
import { EstuaryError } from '../../src/errors.ts';
import { encodePem } from '../../src/pki/der/pem.ts';
import type { Store } from '../../src/store/store.ts';
import { ecdsaTwin, makeCa, makeClient } from '../support/certificates.ts';
import { failureRecords } from '../support/failure-records.ts';
import { opened, T0, temporaryPaths } from '../store/support.ts';
import { clientTrust } from '../support/client-trust.ts';
import { oidcSettings } from './oidc/support.ts';
import { DAY, adminCa, admin, trust, TOKENS, type Setup, setUp, certificate, token } from './admin-support.ts';

describe('a session is bound to the certificate of its connection, not to an encoding of it', () => {
  test.each([
    ['a certificate', {}],
    ['a token on a connection with a certificate', token],
  ])('begun with %s', async (_, credentials) => {
    const store = await opened(temporaryPaths());
    const failures = failureRecords(store);
    const now = () => T0 + DAY;
    const settings: AdminAuthSettings = {
      mode: 'optional',
      trust,
      bearer_token: { enabled: true, tokens: TOKENS },
    };
    const authenticator = new AdminAuthenticator(() => settings, store, failures, now);
    const times = () => ({ idle_timeout: 900, lifetime: 28_800 });
    const log = { warn: () => undefined };
    const sessions = new AdminSessions({ store, authenticator, times, failures, now, log });
    const shown = (peerCertificate: Buffer | undefined, authorization?: string): PresentedCredentials => ({
      ...{ peerCertificate, peerIntermediates: [], authorization, address: '192.0.2.1' },
    });
    const begun = { ...shown(admin.der), ...credentials };
    const { id } = await sessions.begin(await authenticator.authenticate(begun), begun, undefined, []);
    const resumed = (der: Buffer | undefined) =>
      sessions.resume(id, shown(der)).then(
        ({ admin: { display } }) => display,
        (error: unknown) => (error instanceof EstuaryError ? error.code : error),
      );
    const renewed = await makeClient('CN=Alice,OU=Admins', adminCa);
    expect(await resumed(admin.der)).toBe(await resumed(ecdsaTwin(admin.der)));
    expect(await resumed(admin.der)).not.toBe('SESSION_ENDED');
    for (const der of [renewed.der, undefined]) expect(await resumed(der)).toBe('SESSION_ENDED');
  });
});

describe('a session is valid no longer than what it began with', () => {
  interface Begun {
    readonly setup: Setup;
    readonly id: string;
    /** Resumes the session, with the settings in force. */
    readonly resumed: (id?: string, by?: Partial<PresentedCredentials>) => Promise<string>;
    clock: number;
  }

  async function begin(
    credentials: Partial<PresentedCredentials>,
    lifetime = 28_800,
    idle_timeout = 100_000_000,
  ): Promise<Begun> {
    const setup = await setUp('optional', true);
    const [ends] = TOKENS.map((token) => ({ ...token, not_after: new Date(T0 + DAY + 60_000).toISOString() })).slice(1);
    const [first] = TOKENS;
    if (first === undefined || ends === undefined) throw new Error('no tokens');
    setup.settings = { ...setup.settings, bearer_token: { enabled: true, tokens: [first, ends] } };
    const { store, failures } = setup;
    const now = () => begun.clock;
    const authenticator = new AdminAuthenticator(() => setup.settings, store, failures, now);
    const times = () => ({ idle_timeout, lifetime });
    const sessions = new AdminSessions({ store, authenticator, times, failures, now, log: { warn: () => undefined } });
    const shown = { peerCertificate: undefined, peerIntermediates: [], authorization: undefined, address: '192.0.2.1' };
    const begun: Begun = {
      setup,
      id: '',
      clock: T0 + DAY,
      resumed: (id, by = {}) =>
        sessions.resume(id ?? made.id, { ...shown, ...by }).then(
          ({ admin: { display } }) => display,
          (error: unknown) => (error instanceof EstuaryError ? (error.detail ?? error.code) : String(error)),
        ),
    };
    const presented = { ...shown, ...credentials };
    const made = await sessions.begin(await authenticator.authenticate(presented), presented, undefined, []);
    return Object.assign(begun, { id: made.id });
  }

  test('it ends with its lifetime, and with its token', async () => {
    const first = { authorization: 'Bearer first-token' };
    for (const [credentials, lifetime, end] of [
      [first, 30, 30_000],
      [token, 28_800, 60_000],
    ] as const) {
      const session = await begin(credentials, lifetime);
      session.clock = T0 + DAY + end - 1;
      expect(await session.resumed()).not.toMatch(/SESSION_ENDED|expired/);
      session.clock += 1;
      expect(await session.resumed()).toBe('SESSION_ENDED');
    }
  });

  test('it ends when the configuration ends its token sooner, at that moment', async () => {
    const session = await begin(token);
    const tokens = TOKENS.map((token) => ({ ...token, not_after: new Date(T0 + DAY + 1000).toISOString() }));
    session.setup.settings = { ...session.setup.settings, bearer_token: { enabled: true, tokens } };
    session.clock = T0 + DAY + 999;
    expect(await session.resumed()).toBe('second');
    session.clock += 1;
    expect(await session.resumed()).toBe('the bearer token of second has expired');
  });

  test('it ends when bearer tokens are switched off, or certificates are required', async () => {
    for (const changes of [
      { bearer_token: { enabled: false, tokens: TOKENS } },
      { mode: 'required' },
    ] satisfies Partial<AdminAuthSettings>[]) {
      const session = await begin(token);
      session.setup.settings = { ...session.setup.settings, ...changes };
      expect(await session.resumed()).toBe('bearer tokens are no longer accepted');
    }
  });

  test('a session that began without a certificate goes on with one', async () => {
    const session = await begin(token);
    expect(await session.resumed()).toBe('second');
    expect(await session.resumed(undefined, certificate)).toBe('second');
  });

  test('it ends after the idle timeout', async () => {
    const session = await begin(token, 28_800, 30);
    session.clock += 29_999;
    expect(await session.resumed()).toBe('second');
    session.clock += 1;
    expect(await session.resumed()).toBe('SESSION_ENDED');
  });

  test('an attempt with the session of another certificate is recorded', async () => {
    const session = await begin(certificate);
    expect(await session.resumed()).toBe('it was started with another client certificate');
    const { items } = await session.setup.store.listAudit({ limit: 10, type: 'auth.admin' });
    expect(items.map(({ outcome, address, detail }) => [outcome, address, detail])).toEqual([
      ['failure', '192.0.2.1', 'session: it was started with another client certificate'],
    ]);
  });

  test("it ends when its certificate's issuer is no longer trusted, and not when the store fails", async () => {
    const session = await begin(certificate);
    expect(await session.resumed(undefined, certificate)).toBe('CN=Alice,OU=Admins');
    const { store, settings } = session.setup;
    const other = await clientTrust({ trustAnchors: encodePem('CERTIFICATE', (await makeCa('CN=Other')).der) });
    session.setup.settings = { ...settings, trust: other };
    expect(await session.resumed(undefined, certificate)).toMatch(/^certificate signed by unknown authority/);
    session.setup.settings = settings;
    store.findRevoked = () => Promise.reject(new Error('the disk is full'));
    expect(await session.resumed(undefined, certificate)).toBe('Error: the disk is full');
  });

  test('a session of an OpenID provider has the roles in force, and ends with the provider', async () => {
    const setup = await setUp('none', false);
    const { store, failures } = setup;
    const oidc = (roles: OidcSettings['roles']): OidcSignIn => new OidcSignIn(oidcSettings({ roles }));
    const authenticator = new AdminAuthenticator(
      () => setup.settings,
      store,
      failures,
      () => T0,
    );
    expect(authenticator.hasOidc).toBe(false);
    setup.settings = { ...setup.settings, oidc: oidc({ team: { roles: ['ra'] } }) };
    expect(authenticator.hasOidc).toBe(true);
    const claims = { issuer: 'https://idp.example', subject: 'ada', name: undefined, values: ['team'] };
    const ada = oidcIdentity(setup.settings.oidc?.settings ?? expect.fail(), claims) ?? expect.fail();
    const times = () => ({ idle_timeout: 900, lifetime: 28_800 });
    const log = { warn: () => undefined };
    const sessions = new AdminSessions({ store, authenticator, times, failures, now: () => T0, log });
    const shown = { peerCertificate: undefined, peerIntermediates: [], authorization: undefined, address: '192.0.2.1' };
    const { id } = await sessions.begin(ada, shown, undefined, []);
    const roles = () =>
      sessions.resume(id, shown).then(
        ({ admin }) => admin.roles,
        (error: unknown) => (error instanceof EstuaryError ? error.code : error),
      );
    expect(await roles()).toEqual(['ra']);
    setup.settings = { ...setup.settings, oidc: oidc({ team: { roles: ['auditor'] } }) };
    expect(await roles()).toEqual(['auditor']);
    for (const without of [oidc({}), undefined]) {
      setup.settings = { ...setup.settings, oidc: without };
      expect(await roles()).toBe('SESSION_ENDED');
    }
  });

  test('a use is recorded once a minute, or ten times in the idle timeout', async () => {
    for (const [idle_timeout, every] of [
      [900, 60_000],
      [30, 3000],
    ] as const) {
      let now = T0;
      const touched: number[] = [];
      const store = { touchSession: (_: string, at: number) => Promise.resolve(void touched.push(at)) };
      const sessions = new AdminSessions({
        store: store as unknown as Store,
        authenticator: { ofSession: () => Promise.reject(new Error('not asked')) },
        times: () => ({ idle_timeout, lifetime: 28_800 }),
        failures: { record: () => Promise.resolve() },
        now: () => now,
        log: { warn: () => undefined },
      });
      for (now of [T0, T0 + every - 1, T0 + every])
        await sessions.note({ id_hash: 'x', created_at: T0, seen_at: T0, ends_at: T0 + 28_800_000 });
      expect(touched).toEqual([T0 + every]);
    }
  });

  test('an id of another form is not looked up', async () => {
    const session = await begin(token);
    const lookups = vi.spyOn(session.setup.store, 'getSession');
    for (const id of ['', 'A'.repeat(42), 'A'.repeat(44), `${'A'.repeat(42)}=`, `${session.id}\n`])
      expect(await session.resumed(id)).toBe('SESSION_ENDED');
    expect(lookups).not.toHaveBeenCalled();
    expect(await session.resumed('A'.repeat(43))).toBe('SESSION_ENDED');
    expect(lookups).toHaveBeenCalledOnce();
  });

  test('a failure of the store is not taken for a credential that is not valid', async () => {
    const certificateSession = await begin(certificate);
    certificateSession.setup.store.findRevoked = () => Promise.reject(new Error('the disk is full'));
    const { setup } = certificateSession;
    await expect(setup.outcome(certificate)).rejects.toThrow('the disk is full');
  });
});
