/** Who may approve a queued request, and how many must (docs/guides/approval.md). */
import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { AdminCall } from '../../src/administration/admin-call.ts';
import { approvalsNeeded, approve, reject } from '../../src/administration/decide.ts';
import { Administrators, type AdminIdentity, type AdministratorsOptions } from '../../src/auth/administrators.ts';
import { Ca } from '../../src/ca/router.ts';
import { EstuaryError } from '../../src/errors.ts';
import { parseCertificate } from '../../src/pki/x509/certificate.ts';
import type { RequestRow } from '../../src/store/request-store.ts';
import type { Store } from '../../src/store/store.ts';
import { ailingCa } from '../http/admin/support.ts';
import { requestRow } from '../store/rows.ts';
import { opened, T0, temporaryPaths } from '../store/support.ts';
import { ecdsaTwin, makeCa, makeClient } from '../support/certificates.ts';

const adminCa = await makeCa('CN=Admin CA');
const ada = await makeClient('CN=Ada', adminCa);
const adaRenewed = await makeClient('CN=Ada', adminCa);
const adaNewKey = await makeClient('CN=Ada', adminCa, { slot: 'another' });
const bob = await makeClient('CN=Bob', adminCa);
const issuer = parseCertificate(adminCa.der);
const sha256 = (data: Buffer | string): string => createHash('sha256').update(data).digest('hex');
const tokenEntry = (description: string, name?: string) => ({
  token_hash: `sha256:${sha256(description)}`,
  description,
  ...(name === undefined ? {} : { name }),
});

const byFingerprint = (der: Buffer) => ({ fingerprint: `sha256:${sha256(der)}` });
const byKey = (der: Buffer) => ({ spki_sha256: sha256(parseCertificate(der).spki) });
const byNames = (cn: string) => ({ subject: `CN=${cn}`, issuer: 'CN=Admin CA' });

type Credential = Buffer | string;

/** The administrator with a certificate (DER) or a token. */
function admin(
  options: Omit<AdministratorsOptions, 'tokens'> & Partial<AdministratorsOptions>,
  by: Credential,
): AdminIdentity {
  const all = new Administrators({ tokens: [], ...options });
  const found =
    typeof by === 'string' ? all.withToken(by) : all.withCertificate({ certificate: parseCertificate(by), issuer });
  if (found === undefined) throw new Error('nobody has this token');
  return found;
}

const call = (who: AdminIdentity): AdminCall => ({
  admin: who,
  address: '192.0.2.1',
  request_id: 'call-1',
  name: 'POST /admin/requests/:id/approve',
});

/** The CA as the configuration has it now; undefined: it is missing. */
const cas = (approvals: number | undefined) => {
  const ca = (label: string, needed: number): Ca => {
    const { config, driver } = ailingCa(label, () => Promise.resolve({ health: 'ok' }), [], true);
    return new Ca({ ...config, approval: 'manual', approvals: needed }, driver);
  };
  return { all: [ca('another', 7), ...(approvals === undefined ? [] : [ca('devices', approvals)])] };
};

interface Queue {
  readonly store: Store;
  /** The status of the request after an approval, or the code of the refusal. */
  readonly approved: (who: AdminIdentity, configured: number | undefined) => Promise<string>;
  readonly row: RequestRow;
}

async function queued(approvals: number): Promise<Queue> {
  const store = await opened(temporaryPaths());
  const row = requestRow({ ca: 'devices', approvals });
  await store.queueRequest(row, null, []);
  return {
    store,
    row,
    approved: (who, configured) =>
      approve({ store, cas: cas(configured), now: () => T0 }, call(who), row.id).then(
        ({ status }) => status,
        (error: unknown) => (error instanceof EstuaryError ? error.code : String(error)),
      ),
  };
}

test.each([
  ['the label is missing', 2, undefined, 2],
  ['the configuration has fewer', 2, 1, 2],
  ['the configuration has more', 1, 3, 3],
  ['both are equal', 2, 2, 2],
])(
  'as many must approve as when it was queued, or as are configured now if these are more: %s',
  async (_, stored, configured, needed) => {
    const { approved, row } = await queued(stored);
    expect(approvalsNeeded({ cas: cas(configured) }, row)).toBe(needed);
    for (let n = 1; n <= needed; n++) {
      const who = admin({ tokens: [tokenEntry(`administrator ${n}`)] }, `administrator ${n}`);
      expect(await approved(who, configured)).toBe(n === needed ? 'approved' : 'pending');
      expect(await approved(who, configured)).toBe(n === needed ? 'REQUEST_DECIDED' : 'APPROVED_ALREADY');
    }
  },
);

const NAMED: Omit<AdministratorsOptions, 'tokens'> & Partial<AdministratorsOptions> = {
  clients: [
    { name: 'Ada', ...byFingerprint(ada.der) },
    { name: 'Ada', ...byNames('Ada') },
    { name: 'Bob', ...byKey(bob.der) },
  ],
  tokens: [tokenEntry('token of Ada', 'Ada'), tokenEntry('Ada'), tokenEntry('Cy')],
};

test.each<[string, AdministratorsOptions | typeof NAMED, Credential, Credential]>([
  [
    'the ECDSA twin of her certificate, by fingerprint',
    { clients: [byFingerprint(ada.der)] },
    ada.der,
    ecdsaTwin(ada.der),
  ],
  ['the ECDSA twin, by key', { clients: [byKey(ada.der)] }, ada.der, ecdsaTwin(ada.der)],
  ['the ECDSA twin, by names', { clients: [byNames('Ada')] }, ada.der, ecdsaTwin(ada.der)],
  ['a renewal with the same key, by key', { clients: [byKey(ada.der)] }, ada.der, adaRenewed.der],
  ['a renewal with another key, by names', { clients: [byNames('Ada')] }, ada.der, adaNewKey.der],
  ['another entry of her name', NAMED, ada.der, adaNewKey.der],
  ['a token of her name', NAMED, ada.der, 'token of Ada'],
  ['a token whose description is her name', NAMED, 'token of Ada', 'Ada'],
  ['a certificate, after a token', NAMED, 'Ada', ecdsaTwin(ada.der)],
])('one administrator does not approve twice: with %s', async (_, options, first, second) => {
  const { approved, store, row } = await queued(2);
  expect(await approved(admin(options, first), 2)).toBe('pending');
  expect(await approved(admin(options, second), 2)).toBe('APPROVED_ALREADY');
  expect(await approved(admin({ tokens: [tokenEntry('Cy')] }, 'Cy'), 2)).toBe('approved');
  expect((await store.getRequest(row.id))?.decided_by).toHaveLength(2);
});

test.each<[string, Credential]>([
  ['her certificate', ada.der],
  ['its ECDSA twin', ecdsaTwin(ada.der)],
  ['its renewal', adaNewKey.der],
])('a certificate with only default_roles is not one of several approvals: %s', async (_, der) => {
  const settings = { clients: [{ name: 'Bob', ...byKey(bob.der) }], default_roles: ['admin'] as const };
  for (const [stored, configured] of [
    [2, 1],
    [2, undefined],
    [1, 2],
  ] as const) {
    const { approved, store, row } = await queued(stored);
    expect(await approved(admin(settings, der), configured)).toBe('APPROVER_NOT_LISTED');
    expect(await approved(admin(settings, bob.der), configured)).toBe('pending');
    expect(await approved(admin(settings, der), configured)).toBe('APPROVER_NOT_LISTED');
    expect((await store.getRequest(row.id))?.decided_by.map(({ name }) => name)).toEqual(['Bob']);
  }
  const { approved } = await queued(1);
  expect(await approved(admin(settings, der), 1)).toBe('approved');
});

test('one rejection is enough, by whatever certificate', async () => {
  const { store, row } = await queued(2);
  const context = { store, cas: cas(2), now: () => T0 };
  const who = admin({}, ada.der);
  expect(await reject(context, call(who), row.id, 'unknown device')).toMatchObject({
    status: 'rejected',
    reason: 'unknown device',
    decided_by: [{ name: 'CN=Ada' }],
  });
});

test('a known approval is not counted twice when the configuration needs fewer', async () => {
  const { store, row, approved } = await queued(1);
  const ada = admin(NAMED, 'Ada');
  expect(await approved(ada, 2)).toBe('pending');
  expect(await approved(ada, 1)).toBe('approved');
  expect((await store.getRequest(row.id))?.decided_by).toMatchObject([{ name: 'Ada' }]);
});

test('the audit log has the reason of a rejection, and no count of approvals', async () => {
  const { store, row } = await queued(2);
  await reject({ store, cas: cas(2), now: () => T0 }, call(admin(NAMED, 'Cy')), row.id, 'unknown device');
  const { items } = await store.listAudit({ limit: 10 });
  expect(items.map(({ type, detail }) => [type, detail])).toEqual([
    ['admin.access', `POST /admin/requests/:id/approve: request ${row.id} rejected`],
    ['request.rejected', 'simpleenroll of device-1: unknown device'],
  ]);
  expect(items[1]).toMatchObject({ reason: 'unknown device' });
});

test('the audit log counts the approvals where more than one is needed', async () => {
  for (const [needed, access, approved] of [
    [1, 'approved', 'simpleenroll of device-1'],
    [2, 'approved, 1 of 2', 'simpleenroll of device-1: approved by Cy, 1 of 2'],
  ] as const) {
    const queue = await queued(needed);
    await queue.approved(admin(NAMED, 'Cy'), needed);
    const { items } = await queue.store.listAudit({ limit: 10 });
    expect(items.map(({ detail }) => detail)).toEqual([
      `POST /admin/requests/:id/approve: request ${queue.row.id} ${access}`,
      approved,
    ]);
  }
});

test('a request that waits at the CA is decided there', async () => {
  const store = await opened(temporaryPaths());
  const row = requestRow({ decider: 'ca', reference: '17' });
  await store.queueRequest(row, null, []);
  const context = { store, cas: cas(1), now: () => T0 };
  for (const decision of [
    approve(context, call(admin(NAMED, 'Cy')), row.id),
    reject(context, call(admin(NAMED, 'Cy')), row.id, 'no'),
  ])
    await expect(decision).rejects.toMatchObject({ status: 409, code: 'DECIDED_AT_CA' });
  expect(await store.getRequest(row.id)).toMatchObject({ status: 'pending' });
});

test.each([
  ['unknown', 404, 'REQUEST_NOT_FOUND', 1],
  ['device-refused', 409, 'DEVICE_NOT_REGISTERED', 1],
  ['not-pending', 409, 'REQUEST_DECIDED', 1],
  ['overtaken', 503, 'REQUEST_BUSY', 20],
] as const)('when the store answers %s, the call ends with %s %s', async (result, status, code, attempts) => {
  const row = requestRow();
  let decisions = 0;
  const store = {
    ...(await opened(temporaryPaths())),
    getRequest: () => Promise.resolve(row),
    decideRequest: () => Promise.resolve(++decisions > 0 ? result : 'unknown'),
  };
  const decision = approve({ store, cas: cas(1), now: () => T0 }, call(admin(NAMED, 'Cy')), row.id);
  await expect(decision).rejects.toMatchObject({ status, code });
  expect(decisions).toBe(attempts);
});

test('the audit log says who decided, by which method, and whose certificate it was', async () => {
  const { store, row, approved } = await queued(2);
  await approved(admin(NAMED, ada.der), 2);
  await approved(admin(NAMED, 'Cy'), 2);
  const { items } = await store.listAudit({ limit: 10 });
  const certificate = { subject: 'Ada', method: 'mtls', requester_issuer: 'CN=Admin CA' };
  expect(items).toMatchObject([
    { type: 'admin.access', ...certificate, request_id: 'call-1', detail: expect.stringContaining('1 of 2') as string },
    { type: 'request.approved', ...certificate, request_id: row.id, ca: 'devices' },
    { type: 'admin.access', subject: 'Cy', method: 'bearer' },
    {
      type: 'request.approved',
      subject: 'Cy',
      method: 'bearer',
      detail: expect.stringContaining('Ada, Cy, 2 of 2') as string,
    },
  ]);
});

type Form = 'certificate' | 'twin' | 'renewed' | 'new key' | 'token';
type Way = 'fingerprint' | "twin's fingerprint" | 'key' | 'names';

/** Ada and Bob, each with every form of a credential. */
const PEOPLE: Readonly<Record<'Ada' | 'Bob', Readonly<Record<Exclude<Form, 'token'>, Buffer>>>> = {
  Ada: { certificate: ada.der, twin: ecdsaTwin(ada.der), renewed: adaRenewed.der, 'new key': adaNewKey.der },
  Bob: {
    certificate: bob.der,
    twin: ecdsaTwin(bob.der),
    renewed: (await makeClient('CN=Bob', adminCa)).der,
    'new key': (await makeClient('CN=Bob', adminCa, { slot: 'of Bob, another' })).der,
  },
};

const person = fc.constantFrom('Ada', 'Bob');
const entry = fc.record({
  person,
  way: fc.constantFrom<Way[]>('fingerprint', "twin's fingerprint", 'key', 'names'),
  isNamed: fc.boolean(),
});
const attempt = fc.record({
  person,
  form: fc.constantFrom<Form[]>('certificate', 'twin', 'renewed', 'new key', 'token'),
  configured: fc.option(fc.integer({ min: 1, max: 3 }), { nil: undefined }),
});
type Entry = typeof entry extends fc.Arbitrary<infer T> ? T : never;
type Attempt = typeof attempt extends fc.Arbitrary<infer T> ? T : never;

const clientOf = ({ person: who, way, isNamed }: Entry) => {
  const { certificate, twin } = PEOPLE[who];
  const means = {
    fingerprint: byFingerprint(certificate),
    "twin's fingerprint": byFingerprint(twin),
    key: byKey(certificate),
    names: byNames(who),
  };
  return { ...means[way], ...(isNamed ? { name: who } : {}) };
};

/** By which entries a form of a certificate is recognized; the first that the configuration has counts. */
const RECOGNIZED: Readonly<Record<Exclude<Form, 'token'>, readonly (readonly Way[])[]>> = {
  certificate: [['fingerprint', "twin's fingerprint"], ['key'], ['names']],
  twin: [['fingerprint', "twin's fingerprint"], ['key'], ['names']],
  renewed: [['key'], ['names']],
  'new key': [['names']],
};

/** Who it is, by the rules of docs/reference/admin-api.md; undefined: no entry. */
function whoIs(entries: readonly Entry[], { person: who, form }: Attempt): string | undefined {
  if (form === 'token') return who;
  for (const ways of RECOGNIZED[form]) {
    const found = entries.find((entry) => entry.person === who && ways.includes(entry.way));
    if (found !== undefined) return found.isNamed ? who : `${who} by ${found.way}`;
  }
  return undefined;
}

test('whatever the entries, credentials and configured numbers: only different administrators with entries make up several approvals', async () => {
  const store = await opened(temporaryPaths());
  const run = async (given: readonly Entry[], stored: number, attempts: readonly Attempt[]): Promise<void> => {
    const entries = given.filter((decision, index) => {
      const first = given.findIndex(({ person: who, way }) => who === decision.person && way === decision.way);
      return first === index;
    });
    const options: AdministratorsOptions = {
      clients: entries.map(clientOf),
      default_roles: ['admin'],
      tokens: [tokenEntry('Ada'), tokenEntry('a token', 'Bob')],
    };
    const row = requestRow({ approvals: stored });
    await store.queueRequest(row, null, []);
    const counted = new Set<string>();
    let status = 'pending';
    for (const one of attempts) {
      const credential =
        one.form === 'token' ? (one.person === 'Ada' ? 'Ada' : 'a token') : PEOPLE[one.person][one.form];
      const context = { store, cas: cas(one.configured), now: () => T0 };
      const result = await approve(context, call(admin(options, credential)), row.id).then(
        (after) => after.status,
        (error: unknown) => (error instanceof EstuaryError ? error.code : String(error)),
      );
      const needed = Math.max(stored, one.configured ?? 1);
      const who = whoIs(entries, one);
      const expected = (): string => {
        if (status !== 'pending') return 'REQUEST_DECIDED';
        if (who === undefined && needed > 1) return 'APPROVER_NOT_LISTED';
        if (counted.has(who ?? '') && counted.size < needed) return 'APPROVED_ALREADY';
        counted.add(who ?? '');
        return (status = counted.size < needed ? 'pending' : 'approved');
      };
      expect(result).toBe(expected());
    }
  };
  const numbers = fc.integer({ min: 1, max: 3 });
  const cases = fc.asyncProperty(fc.array(entry, { maxLength: 6 }), numbers, fc.array(attempt, { maxLength: 8 }), run);
  await fc.assert(cases, { numRuns: 150, seed: 29 });
});
