/**
 * Each stage of a request with its refusals, on a separate store, without a server.
 *
 * Longer than other files: the stages are passed one after the other, each with its refusals.
 */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { prepareAt, type PreparedIssuance } from '../../src/ca/driver.ts';
import { Ca } from '../../src/ca/router.ts';
import type { CaConfig } from '../../src/config/schema.ts';
import type { Enrolled } from '../../src/enrollment/enrollment.ts';
import type { EnrollmentOutcome, ReceivedByEst } from '../../src/enrollment/request.ts';
import type { Identity } from '../../src/auth/identity.ts';
import { badRequest, unavailable } from '../../src/errors.ts';
import { parseCertificate, type Certificate } from '../../src/pki/x509/certificate.ts';
import { formatName } from '../../src/pki/x509/name.ts';
import type { Store } from '../../src/store/store.ts';
import { fileCa } from '../support/file-ca.ts';
import { otpRow, T0 } from '../store/rows.ts';
import { openedIn } from '../store/support.ts';
import {
  buildCsr,
  challengePassword,
  commonName,
  dns,
  extensionRequest,
  makeKey,
  san,
  simpleCsr,
} from '../support/csr.ts';
import { temporaryFolder } from '../support/openssl.ts';
import { pipeline, mtlsIdentity, otpIdentity, received, type PipelineOptions } from './support.ts';

const folder = temporaryFolder();
let store: Store;
let devices: Ca;
let lab: Ca;
/** CN=device-1 with a name, of the first CA. */
let own: Certificate;
/** The same names of the second. */
let foreign: Certificate;

const key = makeKey();
const csr = simpleCsr(key, 'device-1', ['device-1.example']);

beforeAll(async () => {
  store = await openedIn(folder);
  devices = await fileCa(folder, 'devices', true);
  lab = await fileCa(folder, 'lab');
  const { identity } = await token(2);
  own = certificateOf((await sent(csr, { identity })).outcome);
  foreign = certificateOf((await sent(csr, { identity, ca: lab })).outcome);
});
afterAll(async () => {
  await store.close();
  folder.remove();
});

/** Records what the CA is asked to sign; fails where it is told to. */
let signatures = 0;
let fails: (() => never) | undefined;
let seen = 0;
beforeEach(async () => {
  signatures = 0;
  fails = undefined;
  seen = (await store.listAudit({ limit: 1000 })).items.length;
});

/** What a test changes of the CA of devices. */
interface CaChanges extends Partial<Pick<CaConfig, 'approval' | 'csrattrs'>> {
  readonly profile?: Partial<CaConfig['profile']>;
}

function changed({ profile = {}, ...more }: CaChanges = {}, popLinking = false): Ca {
  const { driver, config } = devices;
  const watched = (prepared: PreparedIssuance): PreparedIssuance => ({
    ...prepared,
    issue: () => {
      signatures += 1;
      fails?.();
      return prepared.issue();
    },
  });
  const made = { ...config, ...more, profile: { ...config.profile, ...profile } };
  return new Ca(
    made,
    {
      chain: () => driver.chain(),
      issue: () => Promise.reject(new Error('it was not prepared')),
      prepare: async (request) => watched(await prepareAt(driver, request)),
    },
    { popLinking },
  );
}

interface Sending extends Partial<Omit<ReceivedByEst, 'body'>>, Partial<Pick<PipelineOptions, 'rules' | 'store'>> {
  readonly identity?: Identity;
}

/** One request, as its sender is found to be. */
function sent(
  body: ReceivedByEst['body'],
  { identity, rules = {}, store: on = store, ...more }: Sending = {},
): Promise<Enrolled> {
  return pipeline({ store: on, identity: identity ?? mtlsIdentity(own), rules }).enroll(
    received(more.ca ?? devices, body, { requestId: randomUUID(), ...more }),
  );
}

async function token(
  uses = 1,
): Promise<{ readonly identity: Identity; readonly uses: () => Promise<number | undefined> }> {
  const row = otpRow({ max_uses: uses });
  await store.insertOtp(row, []);
  const identity = otpIdentity({ otp_id: row.id, requester: `otp:${row.id}` });
  return { identity, uses: async () => (await store.getOtp(row.id))?.uses };
}

function certificateOf(outcome: EnrollmentOutcome): Certificate {
  if (outcome.status !== 'issued') throw new Error(outcome.status);
  return parseCertificate(outcome.certificate);
}

/** What was audited since the test began. */
async function audited(): Promise<string[]> {
  const { items } = await store.listAudit({ limit: 1000 });
  return items
    .slice(seen)
    .map(({ type, detail }) =>
      type === 'certificate.denied' ? `${type} ${detail?.split(': ', 2).join(': ') ?? ''}` : type,
    );
}

const bad = badRequest('BODY_NOT_BASE64', 'The request body is not valid base64.');
const refusal = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => 'granted',
    (error: unknown) => (error instanceof Error && 'code' in error ? error.code : error),
  );

describe('Authenticated', () => {
  test('a sender who is nobody is told so before its body is read', async () => {
    const nobody = pipeline({ store, identity: otpIdentity({ usable: false }) });
    expect(await refusal(nobody.enroll(received(devices, bad)))).toBe('OTP_INVALID');
    expect(await refusal(nobody.enroll(received(devices, csr)))).toBe('OTP_INVALID');
    expect(await audited()).toEqual([]);
  });

  test('renewal is for certificates only', async () => {
    expect(await refusal(sent(csr, { operation: 'simplereenroll', identity: otpIdentity() }))).toBe(
      'CERTIFICATE_REQUIRED',
    );
  });
});

describe('the order of checks, one fault mended after the other', () => {
  const renewal = (more: Sending = {}): Sending => ({ operation: 'simplereenroll', ...more });
  const binding = Buffer.from('binding').toString('base64');

  /** CN, names and challengePassword of a renewal. */
  const asked = (cn: string, name: string, challenge?: string, from = key): Buffer =>
    buildCsr(from, {
      subject: commonName(cn),
      attributes: [
        extensionRequest(san(dns(name))),
        ...(challenge === undefined ? [] : [challengePassword(challenge)]),
      ],
    });

  test.each<[string, () => Promise<unknown>, string]>([
    ['the requester (403)', () => sent(bad, renewal({ identity: mtlsIdentity(foreign) })), 'NOT_ISSUED_HERE'],
    ['the body (400)', () => sent(bad, renewal()), 'BODY_NOT_BASE64'],
    ['the CSR (400)', () => sent(Buffer.from('3000', 'hex'), renewal()), 'CSR_MALFORMED'],
    [
      'the proof of possession (400)',
      () => sent(buildCsr(key, { spki: makeKey().spki, subject: commonName('x') }), renewal()),
      'CSR_SIGNATURE_INVALID',
    ],
    ['the subject (403)', () => sent(asked('device-2', 'b.example', 'stolen'), renewal()), 'SUBJECT_MISMATCH'],
    ['the SANs (403)', () => sent(asked('device-1', 'b.example', 'stolen'), renewal()), 'SAN_MISMATCH'],
    [
      'the link to the connection (400)',
      () => sent(asked('device-1', 'device-1.example', 'stolen'), renewal({ ca: changed(limited) })),
      'POP_LINKING_MISMATCH',
    ],
    [
      'csrattrs (400)',
      () => sent(asked('device-1', 'device-1.example'), renewal({ ca: changed(limited) })),
      'CSR_ATTRIBUTE_MISSING',
    ],
    [
      'policy (400)',
      () => sent(asked('device-1', 'device-1.example', binding), renewal({ ca: changed(limited) })),
      'SAN_NOT_ALLOWED',
    ],
  ])('%s', async (_, work, code) => {
    expect(await refusal(work())).toBe(code);
    expect(signatures).toBe(0);
    expect(await audited()).toEqual(['auth.mtls', `certificate.denied simplereenroll: ${code}`]);
  });

  test.each<[string, () => Promise<unknown>, string]>([
    ['subject', () => sent(asked('device-2', 'b.example'), renewal()), '"CN=device-2" instead of "CN=device-1"'],
    ['subjectAltName', () => sent(asked('device-1', 'b.example'), renewal()), '[DNS:b.example] instead of'],
    [
      'client_id',
      () => sent(simpleCsr(key, 'device-2'), { identity: otpIdentity(), rules: { clientIdBinding: 'cn' } }),
      '"CN=device-2" [] instead of',
    ],
  ])('a denial names the refused name: %s', async (_, work, expected) => {
    await refusal(work());
    const { items } = await store.listAudit({ limit: 1000, type: 'certificate.denied' });
    expect(items.at(-1)?.detail).toContain(expected);
    expect(items.at(-1)?.reason).toContain(expected);
  });

  /** Asks for more than the request has, and certifies less. */
  const limited: CaChanges = {
    csrattrs: { challenge_password: true, extensions: [], oids: [], template: false, subject: [] },
    profile: { san: { allowed: [], required: [], wildcards: false, max: 4 } },
  };

  test('nothing left: the certificate, after its two phases', async () => {
    const { outcome } = await sent(asked('device-1', 'device-1.example', binding), renewal());
    expect(formatName(certificateOf(outcome).subject)).toBe('CN=device-1');
    expect(await audited()).toEqual(['auth.mtls', 'request.received', 'ca.signature', 'certificate.issued']);
  });

  test('the audit records name the requester with the issuer of its certificate, and what was issued', async () => {
    await sent(asked('device-1', 'device-1.example', binding), renewal());
    const requester = {
      node: 'node-1',
      subject: 'CN=device-1',
      method: 'mtls',
      requester_issuer: formatName(own.issuer),
      requester_sans: ['DNS:device-1.example'],
    };
    // The first is the authentication's, which stands aside here.
    const records = (await store.listAudit({ limit: 1000 })).items.slice(seen + 1);
    expect(records).toMatchObject(records.map(() => requester));
    const issued = { certificate_subject: 'CN=device-1', certificate_sans: ['DNS:device-1.example'] };
    expect(records.at(-1)).toMatchObject({ type: 'certificate.issued', ...issued });
    const refused = sent(asked('device-1', 'other.example', binding), renewal());
    expect(await refusal(refused)).toBe('SAN_MISMATCH');
    const denied = (await store.listAudit({ limit: 1000, type: 'certificate.denied' })).items.at(-1);
    expect(denied).toMatchObject(requester);
  });
});

describe('Authorized: names', () => {
  test.each<[string, Buffer, () => Sending, string]>([
    [
      'mtls_subject = "same": another subject',
      simpleCsr(key, 'device-2'),
      () => ({ ca: changed({ profile: { mtls_subject: 'same' } }) }),
      'SUBJECT_NOT_OWN',
    ],
    [
      'bind_client_id = "cn": another CN',
      simpleCsr(key, 'device-2'),
      () => ({ identity: otpIdentity(), rules: { clientIdBinding: 'cn' } }),
      'CLIENT_ID_MISMATCH',
    ],
    [
      'bind_client_id = "san": no such name',
      csr,
      () => ({ identity: otpIdentity(), rules: { clientIdBinding: 'san' } }),
      'CLIENT_ID_MISMATCH',
    ],
    [
      'require_pop_linking: no binding',
      csr,
      () => ({ rules: { popLinking: { challenge_password: 'binding', require_pop_linking: true } } }),
      'POP_LINKING_MISSING',
    ],
  ])('%s', async (_, body, options, code) => {
    expect(await refusal(sent(body, options()))).toBe(code);
  });

  test('what a registration authority carries was linked elsewhere', async () => {
    const rules = { popLinking: { challenge_password: 'binding', require_pop_linking: true } } as const;
    const { outcome } = await sent(csr, { rules, linking: { kind: 'carried' } });
    expect(outcome.status).toBe('issued');
  });
});

describe('Queued', () => {
  test('an approved request is issued once, by the poll that comes next; its use is taken when it is queued', async () => {
    const ca = changed({ approval: 'manual' });
    const { identity, uses } = await token();
    const requestId = randomUUID();
    const poll = (): Promise<Enrolled> => sent(csr, { ca, identity, requestId });
    expect((await poll()).outcome).toEqual({ status: 'pending', requestId });
    expect(await audited()).toEqual(['auth.otp', 'request.received', 'otp.used', 'request.queued']);
    expect([await uses(), signatures]).toEqual([1, 0]);
    expect((await poll()).outcome).toEqual({ status: 'pending', requestId });
    await store.decideRequest({ id: requestId, status: 'approved', reason: null, decided_at: T0 + 1000 }, []);
    const [first, second] = await Promise.all([poll(), poll()]);
    const issued = [first.outcome, second.outcome].filter(({ status }) => status === 'issued');
    expect([issued.length > 0, signatures, await uses()]).toEqual([true, 1, 1]);
    expect(certificateOf((await poll()).outcome).spki.equals(key.spki)).toBe(true);
    expect(signatures).toBe(1);
  });

  test('a rejected one gets the reason', async () => {
    const ca = changed({ approval: 'manual' });
    const { identity } = await token();
    const requestId = randomUUID();
    await sent(csr, { ca, identity, requestId });
    await store.decideRequest({ id: requestId, status: 'rejected', reason: 'unknown', decided_at: T0 + 1000 }, []);
    await expect(sent(csr, { ca, identity })).rejects.toMatchObject({ status: 403, message: 'unknown' });
  });

  test('what was approved and is refused by a policy that has changed fails, and its use goes back', async () => {
    const { identity, uses } = await token();
    const requestId = randomUUID();
    await sent(csr, { ca: changed({ approval: 'manual' }), identity, requestId });
    await store.decideRequest({ id: requestId, status: 'approved', reason: null, decided_at: T0 + 1000 }, []);
    const stricter = changed({ approval: 'manual', profile: { key_types: ['ec:P-384'] } });
    expect(await refusal(sent(csr, { ca: stricter, identity }))).toBe('KEY_TYPE_NOT_ALLOWED');
    expect([(await store.getRequest(requestId))?.status, await uses()]).toEqual(['failed', 0]);
  });

  test('a key that we generated is sent once', async () => {
    const ca = changed({ approval: 'manual' });
    const { identity } = await token();
    const requestId = randomUUID();
    const poll = (): Promise<Enrolled> => sent(csr, { ca, identity, requestId, operation: 'serverkeygen' });
    expect((await poll()).outcome.status).toBe('pending');
    await store.decideRequest({ id: requestId, status: 'approved', reason: null, decided_at: T0 + 1000 }, []);
    const { outcome } = await poll();
    expect(outcome).toMatchObject({ status: 'issued', key: { contentType: 'application/pkcs8' } });
    expect(await refusal(poll())).toBe('KEY_SENT_ONCE');
  });
});

describe('Reserved, Signed, Recorded', () => {
  test('a CA that has only chain and issue issues', async () => {
    const { driver, config } = devices;
    const ca = new Ca(config, { chain: () => driver.chain(), issue: (request) => driver.issue(request) });
    const { identity, uses } = await token();
    const certificate = certificateOf((await sent(csr, { ca, identity })).outcome);
    expect(certificate.issuer).toEqual(ca.certificate.subject);
    expect(await uses()).toBe(1);
  });

  test('of requests that race with one use, one is signed', async () => {
    const { identity, uses } = await token();
    const ca = changed();
    const racing = ['a', 'b', 'c'].map((cn) => refusal(sent(simpleCsr(key, cn), { ca, identity })));
    expect((await Promise.all(racing)).sort()).toEqual(['OTP_INVALID', 'OTP_INVALID', 'granted']);
    expect([await uses(), signatures]).toEqual([1, 1]);
  });

  test('a CA that fails gives the use back and leaves no reservation', async () => {
    const { identity, uses } = await token();
    fails = () => {
      throw new Error('the HSM is on fire');
    };
    expect(await refusal(sent(csr, { ca: changed(), identity }))).toBe('CA_SIGNING_FAILED');
    expect([await uses(), await store.openReservations()]).toEqual([0, []]);
    expect(await audited()).toEqual(['auth.otp', 'request.received', 'otp.used', 'certificate.failed', 'otp.returned']);
  });

  test('a store that fails after the signature: no certificate leaves, the use goes back', async () => {
    const { identity, uses } = await token();
    const failing: Store = {
      ...store,
      recordCertificate: () => Promise.reject(unavailable('STORE_UNAVAILABLE', 'no disk left')),
    };
    expect(await refusal(sent(csr, { ca: changed(), identity, store: failing }))).toBe('STORE_UNAVAILABLE');
    expect([signatures, await uses(), await store.openReservations()]).toEqual([1, 0, []]);
    expect((await store.listAudit({ limit: 1000, type: 'certificate.failed' })).items.at(-1)).toMatchObject({
      detail: 'no disk left',
    });
  });

  test('a generated key without a taker is not certified, and costs no use', async () => {
    const { identity, uses } = await token();
    const gone = { operation: 'serverkeygen', isGone: () => true } as const;
    expect(await refusal(sent(csr, { ca: changed(), identity, ...gone }))).toBe('CLIENT_GONE');
    expect([signatures, await uses()]).toEqual([0, 0]);
  });
});
