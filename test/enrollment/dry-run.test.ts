/** `POST /admin/check`: the verdict equals the outcome of a real request, and nothing changes. */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { mtlsIdentity, MtlsPlugin } from '../../src/auth/mtls/mtls.ts';
import { parsePrincipal } from '../../src/auth/gssapi/principal.ts';
import { Ca } from '../../src/ca/router.ts';
import type { CaConfig } from '../../src/config/schema.ts';
import { Authenticated } from '../../src/enrollment/authenticated.ts';
import type { Authorizer } from '../../src/enrollment/authorization/external-authorization.ts';
import type { AuthorizationRequest } from '../../src/enrollment/authorization/messages.ts';
import { Proven } from '../../src/enrollment/proven.ts';
import { DryRun, type AssumedSender, type DryRunOptions, type Verdict } from '../../src/enrollment/dry-run.ts';
import { EstuaryError, forbidden, unavailable } from '../../src/errors.ts';
import { encodePem } from '../../src/pki/der/pem.ts';
import { parseCsrWithoutProof } from '../../src/pki/pkcs10/csr.ts';
import { parseCertificate } from '../../src/pki/x509/certificate.ts';
import { parseDistinguishedName } from '../../src/pki/x509/name.ts';
import { openStore } from '../../src/store/sqlite/open.ts';
import type { RequestRow } from '../../src/store/request-store.ts';
import type { Store } from '../../src/store/store.ts';
import { fileCa } from '../http/admin/support.ts';
import { otpRow, T0 } from '../store/rows.ts';
import { makeCa, makeClient, type Issuer } from '../support/certificates.ts';
import { clientTrust } from '../support/client-trust.ts';
import { buildCsr, challengePassword, makeKey, simpleCsr } from '../support/csr.ts';
import { temporaryFolder } from '../support/openssl.ts';
import { pipeline, otpIdentity, received, type PipelineOptions } from './support.ts';

const folder = temporaryFolder();
const key = makeKey();
const good = simpleCsr(key, 'device-1', ['device-1.example']);
let store: Store;
let devices: Ca;
let maker: Issuer;
let made: Issuer;
let stranger: Issuer;

beforeAll(async () => {
  const files = { path: folder.file('est.db'), auditFile: folder.file('audit.log') };
  store = await openStore({ ...files, node: 'node-1', now: () => T0 });
  devices = await fileCa(folder, 'devices', true);
  maker = await makeCa('CN=Maker');
  made = await makeClient('CN=device-1', maker);
  stranger = await makeClient('CN=device-1', await makeCa('CN=Stranger'));
  const device = { ca: null, enabled: true, not_after: null, note: null, match: null, attributes: {} };
  const now = { created_at: T0, changed_at: T0 };
  await store.putDevices(
    [
      { row: { ...device, ...now, key: randomUUID(), id: 'device-1' }, events: [] },
      { row: { ...device, ...now, key: randomUUID(), id: 'off', enabled: false }, events: [] },
    ],
    'create',
  );
});
afterAll(async () => {
  await store.close();
  folder.remove();
});

type Changes = Partial<Pick<CaConfig, 'approval' | 'devices' | 'auth'>> & {
  readonly profile?: Partial<CaConfig['profile']>;
};

function changed({ profile = {}, ...more }: Changes = {}): Ca {
  const { driver, config } = devices;
  return new Ca({ ...config, ...more, profile: { ...config.profile, ...profile } }, driver);
}

function dryRunOf(more: Partial<PipelineOptions> & Partial<DryRunOptions> = {}): DryRun {
  return new DryRun({
    enrollment: pipeline({ store, identity: otpIdentity(), ...more }),
    now: () => Date.now(),
    otp: true,
    bindings: { ldap: undefined, jwt: undefined },
    mtls: undefined,
    gssapi: undefined,
    ...more,
  });
}

async function dryRun(
  ca: Ca,
  as: AssumedSender,
  csr = good,
  more: Partial<PipelineOptions> & Partial<DryRunOptions> = {},
): Promise<Verdict> {
  const trust = await clientTrust({ trustAnchors: encodePem('CERTIFICATE', maker.der) });
  return dryRunOf({ mtls: new MtlsPlugin(() => trust, store, false), ...more }).run({
    requestId: randomUUID(),
    address: '192.0.2.1',
    ca,
    der: csr,
    csr: parseCsrWithoutProof(csr),
    as,
  });
}

/** What a real request with a token for `device-1` comes to. */
async function enrolled(ca: Ca, csr: Buffer): Promise<unknown> {
  const row = otpRow({ client_id: 'device-1' });
  await store.insertOtp(row, []);
  const identity = otpIdentity({ otp_id: row.id, requester: `otp:${row.id}` });
  try {
    const { outcome } = await pipeline({ store, identity }).enroll(received(ca, csr, { requestId: randomUUID() }));
    return outcome.status === 'pending'
      ? 'queue'
      : ['issue', parseCertificate(outcome.certificate).subjectAltNames.length];
  } catch (error) {
    if (!(error instanceof EstuaryError)) throw error;
    return ['refuse', error.code, error.message];
  }
}

const told = ({ verdict, code, message, sans }: Verdict): unknown => {
  if (verdict === 'queue') return 'queue';
  return verdict === 'issue' ? ['issue', sans.length] : ['refuse', code, message];
};

const TOKEN: AssumedSender = { kind: 'client_id', clientId: 'device-1' };

describe('the verdict of a check is what the request comes to', () => {
  test.each<[string, Changes, Buffer]>([
    ['issued', {}, good],
    ['queued', { approval: 'manual' }, good],
    ['a key that the profile does not allow', { profile: { key_types: ['rsa:2048'] } }, good],
    ['too many names', { profile: { san: { allowed: [], required: [], wildcards: false, max: 4 } } }, good],
    ['a subject that the profile does not allow', { profile: { subject: { required: ['O'], patterns: {} } } }, good],
    [
      'names that are added',
      {
        profile: { san: { allowed: ['dns'], required: [], wildcards: false, max: 4, add: ['dns:{id}.added.example'] } },
      },
      good,
    ],
    ['a forged signature', {}, buildCsr(key, { signature: Buffer.alloc(64, 1) })],
    ['a weak key', {}, simpleCsr(makeKey('rsa1024'))],
    ['a registered device', { devices: 'required' }, good],
    ['what is refused would not be queued', { approval: 'manual', profile: { key_types: ['rsa:2048'] } }, good],
  ])('%s', async (_, changes, csr) => {
    const ca = changed(changes);
    const before = await traces();
    const verdict = await dryRun(ca, TOKEN, csr);
    expect(await traces()).toEqual(before);
    expect(told(verdict)).toEqual(await enrolled(ca, csr));
  });

  test('with the names and the end of the certificate; of a refusal those that were asked for', async () => {
    expect(await dryRun(changed(), TOKEN)).toEqual({
      verdict: 'issue',
      subject: 'CN=device-1',
      sans: ['DNS:device-1.example'],
      notAfter: expect.any(Number) as number,
    });
    expect(await dryRun(changed({ profile: { key_types: ['rsa:2048'] } }), TOKEN)).toMatchObject({
      verdict: 'refuse',
      subject: 'CN=device-1',
      sans: ['DNS:device-1.example'],
      notAfter: undefined,
    });
  });
});

describe('as whom', () => {
  const certificate = ({ der }: Issuer): AssumedSender => ({ kind: 'certificate', der, further: [] });
  const required = (): Ca => changed({ devices: 'required' });

  test.each<[string, () => AssumedSender, () => Ca, string]>([
    ['a certificate of a trusted maker', () => certificate(made), changed, 'issue'],
    ['a certificate that nobody trusts', () => certificate(stranger), changed, 'CLIENT_CERTIFICATE_UNTRUSTED'],
    [
      'a certificate where tokens alone count',
      () => certificate(made),
      () => changed({ auth: { methods: ['otp'] } }),
      'AUTHENTICATION_REQUIRED',
    ],
    ['a certificate that is no device', () => certificate(made), required, 'DEVICE_NOT_REGISTERED'],
    [
      'a token where certificates alone count',
      () => TOKEN,
      () => changed({ auth: { methods: ['mtls'] } }),
      'AUTHENTICATION_REQUIRED',
    ],
    [
      'a principal where Kerberos is off',
      () => ({ kind: 'principal', principal: parsePrincipal('a@B') }),
      changed,
      'AUTHENTICATION_REQUIRED',
    ],
    [
      'a device, however it authenticates',
      () => ({ kind: 'device', id: 'device-1', known: true }),
      () => changed({ devices: 'required', auth: { methods: ['mtls'] } }),
      'issue',
    ],
    [
      'a device that is disabled',
      () => ({ kind: 'device', id: 'off', known: true }),
      required,
      'DEVICE_NOT_REGISTERED',
    ],
    [
      'a device that there is not',
      () => ({ kind: 'device', id: 'nobody', known: false }),
      changed,
      'DEVICE_NOT_REGISTERED',
    ],
  ])('%s', async (_, as, ca, expected) => {
    const before = await traces();
    const { verdict, code } = await dryRun(ca(), as());
    expect(code ?? verdict).toBe(expected);
    expect(await traces()).toEqual(before);
  });

  test('a principal gets its mapped subject', async () => {
    const subject = parseDistinguishedName('CN=alice,O=Example');
    const identityOf: NonNullable<DryRunOptions['gssapi']>['identityOf'] = ({ text }) => ({
      method: 'gssapi',
      requester: `gssapi:${text}`,
      display: text,
      principal: text,
      subject,
      replyToken: undefined,
    });
    const as: AssumedSender = { kind: 'principal', principal: parsePrincipal('alice@EXAMPLE.COM') };
    expect(await dryRun(changed(), as, simpleCsr(key, 'alice'), { gssapi: { identityOf } })).toMatchObject({
      verdict: 'issue',
      subject: 'CN=alice,O=Example',
    });
    const others = changed({ auth: { methods: ['otp'] } });
    expect((await dryRun(others, as, simpleCsr(key, 'alice'), { gssapi: { identityOf } })).code).toBe(
      'AUTHENTICATION_REQUIRED',
    );
  });

  test.each<[string, Partial<DryRunOptions>, Changes, string]>([
    ['a token where tokens are off', { otp: false }, {}, 'AUTHENTICATION_REQUIRED'],
    ['LDAP', { otp: false, bindings: { ldap: 'off', jwt: undefined } }, {}, 'issue'],
    ['LDAP, bound', { otp: false, bindings: { ldap: 'cn', jwt: undefined } }, {}, 'CLIENT_ID_MISMATCH'],
    ['JWT where LDAP is off', { otp: false, bindings: { ldap: undefined, jwt: 'off' } }, {}, 'issue'],
    [
      'JWT where LDAP does not count',
      { otp: false, bindings: { ldap: 'cn', jwt: 'off' } },
      { auth: { methods: ['jwt'] } },
      'issue',
    ],
    [
      'neither counts',
      { otp: false, bindings: { ldap: 'off', jwt: 'off' } },
      { auth: { methods: ['mtls'] } },
      'AUTHENTICATION_REQUIRED',
    ],
  ])('a client_id of %s', async (_, options, changes, expected) => {
    const { verdict, code } = await dryRun(
      changed(changes),
      { kind: 'client_id', clientId: 'device-2' },
      good,
      options,
    );
    expect(code ?? verdict).toBe(expected);
  });

  test('a certificate that the label does not accept', async () => {
    const { config, driver } = changed();
    const ca = new Ca({ ...config, client_issuers: ['own'] }, driver);
    expect((await dryRun(ca, certificate(made))).code).toBe('CLIENT_CERTIFICATE_NOT_ACCEPTED');
  });

  test('a failure of the server is no verdict', async () => {
    const failing: DryRunOptions['enrollment'] = {
      dryRun: () => Promise.reject(unavailable('STORE_UNAVAILABLE', 'no disk left')),
      dryRunQueued: () => Promise.reject(new Error('not asked')),
    };
    await expect(dryRun(changed(), TOKEN, good, { enrollment: failing })).rejects.toThrow('no disk left');
    const bug = { ...failing, dryRun: () => Promise.reject(new TypeError('a bug')) };
    await expect(dryRun(changed(), TOKEN, good, { enrollment: bug })).rejects.toThrow('a bug');
    const mtls = { authenticate: () => Promise.reject(new TypeError('a bug')) };
    await expect(dryRun(changed(), certificate(made), good, { mtls })).rejects.toThrow('a bug');
  });

  test('a CA elsewhere that queues: queued', async () => {
    const { config, driver } = changed();
    const never = () => Promise.reject(new Error('not asked'));
    for (const atOnce of [true, false]) {
      const remoteQueue = { settled: 1, lostAfter: 1, issuesAtOnce: () => Promise.resolve(atOnce) };
      const ca = new Ca(config, {
        chain: () => driver.chain(),
        issue: never,
        remoteQueue: { ...remoteQueue, poll: never, find: never, verify: never },
      });
      expect((await dryRun(ca, TOKEN)).verdict).toBe(atOnce ? 'issue' : 'queue');
    }
  });

  test('a bound client_id, and the channel binding that nobody can show', async () => {
    const rules = {
      clientIdBinding: 'cn',
      popLinking: { challenge_password: 'binding', require_pop_linking: true },
    } as const;
    expect((await dryRun(changed(), { kind: 'client_id', clientId: 'device-2' }, good, { rules })).code).toBe(
      'CLIENT_ID_MISMATCH',
    );
    const linked = buildCsr(key, { attributes: [challengePassword('YmluZGluZw==')] });
    expect((await dryRun(changed(), TOKEN, linked)).verdict).toBe('issue');
    expect((await dryRun(changed(), TOKEN, simpleCsr(key), { rules })).verdict).toBe('issue');
  });
});

describe('the outcome of approving a queued request, for any requester', () => {
  /** A request as the pipeline queues it. */
  async function queued(changes: Changes = {}, csr = good): Promise<RequestRow> {
    const row = otpRow({ client_id: 'device-1' });
    await store.insertOtp(row, []);
    const identity = otpIdentity({ otp_id: row.id, requester: `otp:${row.id}` });
    const requestId = randomUUID();
    const ca = changed({ ...changes, approval: 'manual' });
    const { outcome } = await pipeline({ store, identity }).enroll(received(ca, csr, { requestId }));
    const request = outcome.status === 'pending' ? await store.getRequest(outcome.requestId) : undefined;
    if (request === undefined) throw new Error(outcome.status);
    return request;
  }

  const ask = (row: RequestRow, changes: Changes = {}, more: Partial<PipelineOptions> = {}): Promise<Verdict> =>
    dryRunOf(more).queued({ requestId: randomUUID(), address: '192.0.2.1', ca: changed(changes), row });

  test.each(['otp', 'mtls', 'gssapi', 'cmc'])('of %s: its certificate, and nothing happens', async (method) => {
    const row = { ...(await queued()), method, requester: 'CN=somebody,O=Elsewhere' };
    const before = await traces();
    expect(await ask(row)).toEqual({
      verdict: 'issue',
      subject: 'CN=device-1',
      sans: ['DNS:device-1.example'],
      notAfter: expect.any(Number) as number,
    });
    expect(await traces()).toEqual(before);
  });

  test('a policy that has changed since refuses it, by the rule that does', async () => {
    expect(await ask(await queued(), { profile: { key_types: ['rsa:2048'] } })).toMatchObject({
      verdict: 'refuse',
      code: 'KEY_TYPE_NOT_ALLOWED',
      subject: 'CN=device-1',
      sans: ['DNS:device-1.example'],
    });
  });

  test('a device that was forgotten meanwhile is refused', async () => {
    const row = { ...(await queued({ devices: 'required' })), required_device: randomUUID() };
    expect((await ask(row, { devices: 'required' })).code).toBe('DEVICE_NOT_REGISTERED');
  });

  test('what hangs on what the requester shows then, nobody can say', async () => {
    const row = await queued();
    const unknown = { status: 409, code: 'VERDICT_UNKNOWN' };
    await expect(ask({ ...row, method: 'mtls' }, { devices: 'required' })).rejects.toMatchObject(unknown);
    expect((await ask(row, { devices: 'required' })).verdict).toBe('issue');
    const found = { ...(await queued({ devices: 'required' })), method: 'mtls' };
    expect((await ask(found, { devices: 'required' })).verdict).toBe('issue');
    const { config, driver } = changed();
    const authorization = { url: 'https://inventory.example/', timeout: 1, allow: [] } as unknown as NonNullable<
      CaConfig['authorization']
    >;
    const ca = new Ca({ ...config, authorization }, driver);
    const asked = { requestId: randomUUID(), address: '192.0.2.1', ca };
    await expect(dryRunOf().queued({ ...asked, row })).rejects.toMatchObject(unknown);
    expect((await dryRunOf().queued({ ...asked, row: { ...row, override: {} } })).verdict).toBe('issue');
  });
});

test('the external service is asked with dry_run, and its word counts', async () => {
  const asked: AuthorizationRequest[] = [];
  const shared: string[] = [];
  const service = (decide: Authorizer['decide']): Authorizer => ({
    concerns: () => true,
    decide: (name, request) => {
      asked.push(request);
      shared.push(name.split(' ')[0] ?? '');
      return decide(name, request);
    },
    failure: () => unavailable('AUTHORIZATION_FAILED', 'nobody decided'),
  });
  const yes = service(() => Promise.resolve({ subject: 'CN=press-9' }));
  expect(await dryRun(changed(), TOKEN, good, { authorization: yes })).toMatchObject({
    verdict: 'issue',
    subject: 'CN=press-9',
  });
  const no = service(() => Promise.reject(forbidden('AUTHORIZATION_DENIED', 'not in the inventory')));
  expect(await dryRun(changed(), TOKEN, good, { authorization: no })).toMatchObject({
    verdict: 'refuse',
    message: 'not in the inventory',
  });
  expect(asked.map(({ dry_run }) => dry_run)).toEqual([true, true]);
  expect(shared, 'no decision is shared with a request').toEqual(['dry-run', 'dry-run']);
});

test('what was only asked about cannot be issued or queued', async () => {
  for (const ca of [changed(), changed({ approval: 'manual' })]) {
    const enrollment = pipeline({ store, identity: otpIdentity() });
    const assumed = Authenticated.forDryRun(
      received(ca, good),
      mtlsIdentity({ certificate: parseCertificate(made.der), issuer: parseCertificate(maker.der) }),
    );
    const authorized = await enrollment.authorize(await enrollment.admit(assumed), await Proven.forDryRun(good));
    await expect(enrollment.certify(authorized)).rejects.toMatchObject({ status: 500, code: 'DRY_RUN' });
  }
});

/** Whatever a request leaves. */
async function traces(): Promise<unknown> {
  const page = { limit: 1000 };
  return Promise.all([
    store.listAudit(page),
    store.listRequests(page),
    store.listOtps(page, T0),
    store.listCertificates(page, T0),
    store.openReservations(),
  ]);
}
