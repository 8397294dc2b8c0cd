/** Requests at a CA elsewhere: what its answers, or none, mean for the client, the password's use and the records. */
import { randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, test } from 'vitest';
import {
  prepareAt,
  type IssuanceRequest,
  type IssuanceResult,
  type RemoteQueue,
  type SoughtRequest,
} from '../../src/ca/driver.ts';
import type { MtlsIdentity } from '../../src/auth/identity.ts';
import { Ca } from '../../src/ca/router.ts';
import type { CaConfig } from '../../src/config/schema.ts';
import { badRequest, EstuaryError, failed, forbidden, unavailable } from '../../src/errors.ts';
import { StoreLost } from '../../src/store/calls/errors.ts';
import type { Store } from '../../src/store/store.ts';
import { parseCertifiedNames } from '../../src/enrollment/names.ts';
import { parseCertificate } from '../../src/pki/x509/certificate.ts';
import { formatName, parseDistinguishedName } from '../../src/pki/x509/name.ts';
import { until } from '../support/until.ts';
import { otpRow, T0 } from '../store/rows.ts';
import { makeKey, simpleCsr } from '../support/csr.ts';
import { ADDRESS, mtlsIdentity, otpIdentity, pipeline, received, remoteQueue, storeWithCa } from './support.ts';

let now = T0 + 1000;
const { store, devices } = await storeWithCa(() => now);
let logged: string[] = [];
beforeEach(() => {
  logged = [];
  now += 100_000;
});

const SETTLED = 10_000;
const LOST_AFTER = 60_000;
/** `est.retry_after`: the interval of polls that reach the CA. */
const INTERVAL = 1000;

const PENDING = { status: 'pending', reference: 'ticket-1' } as const;
const pending = () => Promise.resolve<IssuanceResult>(PENDING);
const issued = async ({ subjectAltNames = [], ...request }: IssuanceRequest | SoughtRequest) => {
  const prepared = await prepareAt(devices.driver, { ...request, subjectAltNames, csr: undefined });
  const result = await prepared.issue();
  if (result.status !== 'issued') throw new Error(result.status);
  return result;
};
const unanswered = () => Promise.reject(new Error('the connection was reset'));

interface Elsewhere extends Partial<RemoteQueue>, Partial<Pick<CaConfig, 'approval'>> {
  readonly submit?: (request: IssuanceRequest) => Promise<IssuanceResult>;
}

/** Answers the first submission with a certificate, which is in `got`, and no other. */
function answersOnce() {
  const got: Buffer[] = [];
  const submit = async (request: IssuanceRequest) => {
    if (got.length > 0) return unanswered();
    const result = await issued(request);
    got.push(result.certificate);
    return result;
  };
  return { got, submit };
}

let cas = 0;
/** A CA elsewhere, which queues. Its methods answer as told. */
function elsewhere({ submit = pending, approval = 'auto', ...queue }: Elsewhere = {}): Ca {
  const { config, driver } = devices;
  return new Ca(
    { ...config, label: `elsewhere-${++cas}`, approval },
    {
      chain: () => driver.chain(),
      issue: submit,
      remoteQueue: remoteQueue({
        settled: SETTLED,
        lostAfter: LOST_AFTER,
        issuesAtOnce: () => Promise.resolve(false),
        verify: () => Promise.resolve(),
        ...queue,
      }),
    },
    { issued: { store, isShared: false } },
  );
}

interface Asking {
  readonly ca?: Ca;
  readonly from?: Partial<Store>;
}

/** A device with a one-time password, which sends the same request again and again. */
async function device(own: Ca) {
  const row = otpRow({ max_uses: 5, expires_at: T0 + 1e12 });
  await store.insertOtp(row, []);
  const identity = otpIdentity({ otp_id: row.id, requester: `otp:${row.id}`, lockoutKeys: [`lockout ${row.id}`] });
  const csr = simpleCsr(makeKey(), row.id);
  const ids: string[] = [];
  const open = (from: Partial<Store> = {}) =>
    pipeline({ store: { ...store, ...from }, identity, now: () => now, log: (line) => void logged.push(line) });
  return {
    otp: row.id,
    open,
    /** Milliseconds later. */
    later: (span: number) => void (now += span),
    uses: async () => (await store.getOtp(row.id))?.uses,
    /** The row of its first request. */
    row: () => store.getRequest(ids[0] ?? ''),
    audit: async () =>
      (await store.listAudit({ limit: 100, request_id: ids[0] ?? '' })).items.map(({ type, detail }) =>
        /^certificate.failed|^request.rejected/.test(type) ? `${type} ${detail ?? ''}` : type,
      ),
    /** `issued`, `pending`, or the code of the refusal and its message. */
    async ask({ ca = own, from }: Asking = {}): Promise<string> {
      const requestId = randomUUID();
      ids.push(requestId);
      try {
        const { outcome } = await open(from).enroll(received(ca, csr, { requestId }));
        return outcome.status;
      } catch (error) {
        if (error instanceof EstuaryError) return `${error.code}: ${error.message}`;
        throw error;
      }
    },
  };
}

const REFUSAL = badRequest('CA_NOT_ALLOWED', 'not at this CA');
const DOWN = unavailable('CA_UNAVAILABLE', 'The CA is down.');
const OTHER = failed('CA_ISSUED_OTHER', 'The CA issued something else.');

describe('the answer to a submission', () => {
  test.each<[string, NonNullable<Elsewhere['submit']>, string, number, string | undefined]>([
    ['a certificate, which leaves no request', issued, 'issued', 1, undefined],
    ['it waits', pending, 'pending', 1, 'pending'],
    [
      'a rejection: the use goes back',
      () => Promise.resolve({ status: 'rejected', reason: 'not on the list' }),
      'CA_REJECTED: not on the list',
      0,
      undefined,
    ],
    [
      'canceled: the use goes back',
      () => Promise.resolve({ status: 'canceled' }),
      'CA_REJECTED: The CA canceled the request.',
      0,
      undefined,
    ],
    [
      'it certainly did not arrive: the use goes back',
      () => Promise.reject(DOWN),
      'CA_UNAVAILABLE: The CA is down.',
      0,
      undefined,
    ],
    ['none: it may have arrived', unanswered, 'pending', 1, 'pending'],
  ])('%s', async (_, submit, answer, uses, status) => {
    const one = await device(elsewhere({ submit }));
    expect([await one.ask(), await one.uses(), (await one.row())?.status]).toEqual([answer, uses, status]);
    expect(await store.openReservations()).toEqual([]);
  });

  test('the record of the certificate has the address of the device', async () => {
    const one = await device(elsewhere({ submit: issued }));
    await one.ask();
    const { items } = await store.listAudit({ limit: 1000, type: 'certificate.issued' });
    expect(items.at(-1)?.address).toBe(ADDRESS);
  });

  test('a CA that continues at once is polled at once, if it has answered', async () => {
    const polls: string[] = [];
    const poll = (reference: string, request: IssuanceRequest) => (polls.push(reference), issued(request));
    expect(await (await device(elsewhere({ continuesAtOnce: true, poll }))).ask()).toBe('issued');
    expect(await (await device(elsewhere({ continuesAtOnce: true, poll, submit: unanswered }))).ask()).toBe('pending');
    expect(await (await device(elsewhere({ poll }))).ask()).toBe('pending');
    expect(polls).toEqual(['ticket-1']);
  });

  test.each([
    ['otp-unusable', 'OTP_INVALID'],
    ['device-refused', 'DEVICE_NOT_REGISTERED'],
    ['repeated', 'REQUEST_UNDER_WAY'],
  ] as const)('refused by the store (%s): nothing is submitted', async (result, code) => {
    const submit = () => Promise.reject(new Error('submitted'));
    const one = await device(elsewhere({ submit }));
    expect(await one.ask({ from: { submitRequest: () => Promise.resolve(result) } })).toMatch(code);
  });

  test('of two identical requests at the same time, one is submitted', async () => {
    let submissions = 0;
    const submit = () => (submissions++, pending());
    const poll = () => Promise.resolve(PENDING);
    const one = await device(elsewhere({ submit, poll }));
    expect(await Promise.all([one.ask(), one.ask()])).toEqual(['pending', 'pending']);
    expect([submissions, await one.uses()]).toEqual([1, 1]);
  });
});

describe('what an administrator approved', () => {
  test.each([
    ['it waits at the CA', pending, 'pending', 'pending'],
    ['it is issued', issued, 'issued', 'issued'],
    [
      'the CA does not take it: it stays approved',
      () => Promise.reject(DOWN),
      'CA_UNAVAILABLE: The CA is down.',
      'approved',
    ],
  ])('%s; the use was taken before', async (_, submit, answer, status) => {
    const one = await device(elsewhere({ submit, approval: 'manual' }));
    expect(await one.ask()).toBe('pending');
    const { id = '' } = (await one.row()) ?? {};
    await store.decideRequest({ id, status: 'approved', reason: null, decided_at: now }, []);
    expect([await one.ask(), await one.uses(), (await one.row())?.status]).toEqual([answer, 1, status]);
    expect((await one.audit()).filter((type) => type === 'otp.used')).toEqual(['otp.used']);
  });
});

describe('the answer to a poll', () => {
  const reply = (result: object) => (): ReturnType<RemoteQueue['poll']> =>
    Promise.resolve(result as Awaited<ReturnType<RemoteQueue['poll']>>);
  const rejected = reply({ status: 'rejected', reason: 'not on the list' });

  test.each<[string, RemoteQueue['poll'], string, number, string, string | undefined]>([
    ['a certificate', (_, request) => issued(request), 'issued', 1, 'issued', undefined],
    ['it waits', reply(PENDING), 'pending', 1, 'pending', undefined],
    [
      'rejected: the use stays taken',
      rejected,
      'REQUEST_REJECTED: not on the list',
      1,
      'rejected',
      'request.rejected at the CA: not on the list',
    ],
    [
      'canceled: the use stays taken',
      reply({ status: 'canceled' }),
      'REQUEST_CANCELED: The request was canceled at the CA.',
      1,
      'failed',
      'certificate.failed The request was canceled at the CA.',
    ],
    [
      'refused: the use goes back',
      () => Promise.reject(REFUSAL),
      'CA_NOT_ALLOWED: not at this CA',
      0,
      'failed',
      'certificate.failed not at this CA',
    ],
    [
      'it issued something else: the use goes back',
      () => Promise.reject(OTHER),
      'CA_ISSUED_OTHER: The CA issued something else.',
      0,
      'failed',
      'certificate.failed The CA issued something else.',
    ],
    ['none: it waits', () => Promise.reject(DOWN), 'pending', 1, 'pending', undefined],
    ['an internal failure: it waits', unanswered, 'pending', 1, 'pending', undefined],
  ])('%s', async (_, poll, answer, uses, status, record) => {
    const one = await device(elsewhere({ poll }));
    expect(await one.ask()).toBe('pending');
    one.later(INTERVAL);
    expect([await one.ask(), await one.uses(), (await one.row())?.status]).toEqual([answer, uses, status]);
    expect((await one.audit()).filter((text) => /failed|rejected/.test(text))).toEqual(
      record === undefined ? [] : [record],
    );
  });

  test('a rejected or canceled request gets the same answer again', async () => {
    for (const poll of [rejected, reply({ status: 'canceled' })]) {
      const one = await device(elsewhere({ poll }));
      await one.ask();
      one.later(INTERVAL);
      const answer = await one.ask();
      one.later(INTERVAL);
      expect([await one.ask(), await one.uses()]).toEqual([answer, 1]);
    }
  });

  test('a CA that shows failures: the client gets the error, unless it is internal', async () => {
    let fails: Error = DOWN;
    const one = await device(elsewhere({ showsFailures: true, poll: () => Promise.reject(fails) }));
    await one.ask();
    one.later(INTERVAL);
    expect(await one.ask()).toBe('CA_UNAVAILABLE: The CA is down.');
    fails = new Error('a bug');
    one.later(INTERVAL);
    expect([await one.ask(), (await one.row())?.status]).toEqual(['pending', 'pending']);
  });

  test('the CA is asked at most once per interval', async () => {
    let polls = 0;
    const one = await device(elsewhere({ poll: () => (polls++, reply(PENDING)()) }));
    await one.ask();
    for (const [span, expected] of [
      [INTERVAL, 1],
      [INTERVAL - 1, 1],
      [1, 2],
    ] as const) {
      one.later(span);
      expect([await one.ask(), polls]).toEqual(['pending', expected]);
    }
  });

  test('unknown for longer than the CA may lag: lost, and the use goes back', async () => {
    let result: object = { status: 'unknown' };
    const one = await device(elsewhere({ poll: () => reply(result)() }));
    await one.ask();
    one.later(INTERVAL);
    expect(await one.ask()).toBe('pending');
    // Known again: the time begins anew.
    result = PENDING;
    one.later(LOST_AFTER);
    expect([await one.ask(), (await one.row())?.missing_since]).toEqual(['pending', null]);
    result = { status: 'unknown' };
    for (const span of [INTERVAL, LOST_AFTER / 2, LOST_AFTER / 2 - 1]) {
      one.later(span);
      expect([await one.ask(), await one.uses()]).toEqual(['pending', 1]);
    }
    const lost = await device(elsewhere({ poll: reply(result) }));
    await lost.ask();
    for (const span of [INTERVAL, LOST_AFTER / 2]) {
      lost.later(span);
      expect(await lost.ask()).toBe('pending');
    }
    lost.later(LOST_AFTER / 2);
    expect([await lost.ask(), await lost.uses(), (await lost.row())?.status]).toEqual([
      'REQUEST_LOST: The CA has lost this request. Send it again.',
      0,
      'failed',
    ]);
    expect(await lost.ask()).toBe('pending');
  });

  test('another process works on it: it waits, without a warning', async () => {
    const one = await device(elsewhere({ poll: (_, request) => issued(request) }));
    await one.ask();
    one.later(INTERVAL);
    expect(await one.ask({ from: { claimRequest: () => Promise.resolve('request-taken') } })).toBe('pending');
    expect(logged).toEqual([]);
  });
});

describe('a submission without an answer', () => {
  type Find = RemoteQueue['find'];
  const LOST = (label: string) => `SUBMISSION_LOST: The CA "${label}" did not accept the request. Send it again.`;

  test('is looked for with its time, and its certificate recorded', async () => {
    const sought: unknown[] = [];
    const verified: unknown[] = [];
    const find: Find = async (request) => {
      sought.push([request.from, request.until, request.requester]);
      return [{ reference: 'ticket-2' }, { certificate: (await issued(request)).certificate }];
    };
    const verify: RemoteQueue['verify'] = (certificate) => Promise.resolve(void verified.push(certificate));
    const one = await device(elsewhere({ submit: unanswered, find, verify }));
    const sent = now;
    await one.ask();
    one.later(INTERVAL);
    expect([await one.ask(), await one.uses(), (await one.row())?.status]).toEqual(['issued', 1, 'issued']);
    expect([sought, verified.length]).toEqual([[[sent, sent + SETTLED, 'device-1']], 1]);
  });

  test('a certificate that another request got is not its own', async () => {
    const { got, submit } = answersOnce();
    const ca = elsewhere({ submit, find: () => Promise.resolve(got.map((certificate) => ({ certificate }))) });
    const [first, second] = [await device(ca), await device(ca)];
    expect([await first.ask(), await second.ask()]).toEqual(['issued', 'pending']);
    second.later(INTERVAL);
    expect([await second.ask(), (await second.row())?.serial]).toEqual(['pending', null]);
  });

  test('its own certificate is found among those of others', async () => {
    const { got, submit } = answersOnce();
    const find: Find = async (request) => [
      ...got.map((certificate) => ({ certificate })),
      { certificate: (await issued(request)).certificate },
    ];
    const ca = elsewhere({ submit, find });
    const [first, second] = [await device(ca), await device(ca)];
    expect([await first.ask(), await second.ask()]).toEqual(['issued', 'pending']);
    second.later(INTERVAL);
    expect([await second.ask(), (await second.row())?.status]).toEqual(['issued', 'issued']);
  });

  test('found as a request that waits: polled under its reference', async () => {
    const polled: string[] = [];
    const poll = (reference: string) => (polled.push(reference), Promise.resolve(PENDING));
    const find: Find = () => Promise.resolve([{ reference: 'ticket-2' }]);
    const one = await device(elsewhere({ submit: unanswered, find, poll }));
    await one.ask();
    one.later(INTERVAL);
    expect([await one.ask(), polled, (await one.row())?.reference]).toEqual(['pending', ['ticket-2'], 'ticket-2']);
  });

  test.each([
    [true, 'The submission was not answered, and the CA does not know the request.', LOST],
    [
      false,
      'The submission was not answered. The CA may have issued a certificate.',
      (label: string) =>
        `SUBMISSION_LOST: The CA "${label}" did not answer, and may have issued a certificate. Send the request again.`,
    ],
  ])('not found once it has settled: the use goes back (canFind: %s)', async (canFind, reason, lost) => {
    const ca = elsewhere({ submit: unanswered, find: () => Promise.resolve([]), ...(canFind ? {} : { canFind }) });
    const one = await device(ca);
    await one.ask();
    one.later(SETTLED - 1);
    expect([await one.ask(), await one.uses()]).toEqual(['pending', 1]);
    const other = await device(ca);
    await other.ask();
    other.later(SETTLED);
    expect([await other.ask(), await other.uses()]).toEqual([lost(ca.label), 0]);
    expect(await other.row()).toMatchObject({ status: 'failed', reason });
  });

  test.each([
    ['what is found does not fit', { verify: () => Promise.reject(OTHER) }, 'CA_ISSUED_OTHER', 'failed'],
    [
      'the driver knows that it is lost',
      { find: () => Promise.reject(unavailable('SUBMISSION_LOST', 'gone')) },
      'SUBMISSION_LOST',
      'failed',
    ],
    ['the CA cannot be searched now', { find: () => Promise.reject(DOWN) }, 'pending', 'pending'],
  ])('%s', async (_, more, answer, status) => {
    const find: Find = async (request) => [{ certificate: (await issued(request)).certificate }];
    const one = await device(elsewhere({ submit: unanswered, find, ...more }));
    await one.ask();
    one.later(INTERVAL);
    expect(await one.ask()).toMatch(answer);
    expect((await one.row())?.status).toBe(status);
  });

  test('is looked for even if its client does not return; a failure stops no other', async () => {
    const found: Find = async (request) => [{ certificate: (await issued(request)).certificate }];
    const refused: Find = () => Promise.reject(forbidden('CA_REJECTED', 'no'));
    const cas = [refused, found, found].map((find) => elsewhere({ submit: unanswered, find }));
    const [first, second, stranger] = await Promise.all(cas.map(device));
    if (first === undefined || second === undefined || stranger === undefined) throw new Error('no device');
    for (const one of [first, second, stranger]) await one.ask();
    first.later(INTERVAL);
    await first.open().lookForUnanswered(cas.slice(0, 2));
    expect(await Promise.all([first, second, stranger].map(async (device) => (await device.row())?.status))).toEqual([
      'failed',
      'issued',
      'pending',
    ]);
    expect(logged.join()).toContain('a request at a CA failed');
    const from: Partial<Store> = { listToPoll: () => Promise.reject(new Error('no disk')) };
    await first.open(from).lookForUnanswered(cas);
    expect(logged.join()).toContain('cannot look up unanswered submissions');
  });
});

describe('a request that each poll advances', () => {
  const advancing = (poll: RemoteQueue['poll']) =>
    elsewhere({ submit: () => Promise.resolve(waits), poll, continuesAtOnce: true });
  const waits = { status: 'pending', reference: 'order-1' } as const;

  test('is polled without its client, also by a process that did not submit it; the reason is kept while it waits', async () => {
    let isDone = false;
    const ca = advancing(async (_, request) =>
      isDone ? issued(request) : { ...waits, reason: 'the challenge is being validated', retryAfter: 3600 },
    );
    const one = await device(ca);
    expect(await one.ask()).toBe('pending');
    expect(await one.row()).toMatchObject({ status: 'pending', reason: 'the challenge is being validated' });
    isDone = true;
    one.later(INTERVAL);
    await one.open().lookForUnanswered([ca]);
    expect(await one.row()).toMatchObject({ status: 'issued', reason: null });
  });

  test('is polled again after the time that the CA gives', async () => {
    let polls = 0;
    const ca = advancing(async (_, request) => (polls++ < 2 ? { ...waits, retryAfter: 0 } : issued(request)));
    const one = await device(ca);
    await one.ask();
    await until('it is issued', async () => (await one.row())?.status === 'issued');
  });
});

test('a CA that is out of use leaves a record of the request, and takes no use', async () => {
  const ca = elsewhere();
  const down = () => Promise.reject(unavailable('CA_UNAVAILABLE', 'The CA is unavailable.', { detail: 'breaker' }));
  const one = await device(new Ca(ca.config, { ...ca.driver, prepare: down }));
  expect(await one.ask()).toMatch(/^CA_UNAVAILABLE/);
  expect([await one.uses(), await one.row()]).toEqual([0, undefined]);
  expect((await one.audit()).at(0)).toMatch(/^certificate\.failed .*breaker/);
});

describe('names that the CA drops', () => {
  test.each([true, false])(
    'are kept next to its certificate, and renew, and no others do (dropped: %s)',
    async (isDropped) => {
      let serial = '';
      let identity: MtlsIdentity | undefined;
      const submit = async (request: IssuanceRequest) => {
        const result = await issued(
          isDropped ? { ...request, subject: parseDistinguishedName('O=Upstream') } : request,
        );
        const certificate = parseCertificate(result.certificate);
        identity ??= mtlsIdentity(certificate, devices.certificate);
        serial ||= certificate.serialNumber;
        return result;
      };
      const ca = elsewhere({ submit });
      const one = await device(ca);
      expect(await one.ask()).toBe('issued');
      if (identity === undefined) throw new Error('no certificate');
      const renewing = pipeline({ store, identity, now: () => now });
      const renew = (cn: string) =>
        renewing.enroll(
          received(ca, simpleCsr(makeKey(), cn), { requestId: randomUUID(), operation: 'simplereenroll' }),
        );
      expect((await renew(one.otp)).outcome.status).toBe('issued');
      await expect(renew('another')).rejects.toMatchObject({ status: 403, code: 'SUBJECT_MISMATCH' });
      const names = await store.getAuthorizedNames(serial, ca.label);
      const common = names === undefined ? undefined : formatName(parseCertifiedNames(names).subject);
      expect(common).toBe(isDropped ? `CN=${one.otp}` : undefined);
      const { items } = await store.listAudit({ type: 'certificate.issued', serial, limit: 1 });
      expect(
        items.map((record) => record.authorized_names),
        'for a restore',
      ).toEqual([names]);
    },
  );
});

describe('a store that fails', () => {
  const full = unavailable('STORE_UNAVAILABLE', 'no disk left');

  test.each([
    ['lost at the submission, which may be committed: its reservation is closed', true],
    ['no disk at the submission: there is no reservation', false],
  ])('%s', async (_, isLost) => {
    let released = 0;
    const submit = () => Promise.reject(new Error('submitted'));
    const one = await device(elsewhere({ submit }));
    const from: Partial<Store> = {
      submitRequest: () => Promise.reject(isLost ? new StoreLost('the connection is gone') : full),
      releaseReservation: () => Promise.resolve(released++ === 0),
    };
    expect(await one.ask({ from })).toMatch('STORE_UNAVAILABLE');
    expect(released).toBe(isLost ? 1 : 0);
  });

  test('no record of what the CA answered: the reservation is closed, and the request is looked for', async () => {
    const find = async (request: SoughtRequest) => [{ certificate: (await issued(request)).certificate }];
    for (const [submit, from] of [
      [issued, { recordCertificate: () => Promise.reject(full) }],
      [pending, { awaitCa: () => Promise.reject(full) }],
    ] as const) {
      const one = await device(elsewhere({ submit, find }));
      expect(await one.ask({ from })).toBe('STORE_UNAVAILABLE: no disk left');
      expect(await store.openReservations()).toEqual([]);
      one.later(INTERVAL);
      expect([await one.ask(), await one.uses()]).toEqual(['issued', 1]);
    }
  });
});
