/** `[ca] approvals`, and the deciders. */
import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { Ca } from '../../../src/ca/router.ts';
import type { RequestRow } from '../../../src/store/request-store.ts';
import { event, requestRow } from '../../store/rows.ts';
import { adminFixture, ailingCa, failure, type AdminFixture } from './support.ts';
import { type Answered, type Schemas, expectBody } from './typed.ts';

const hashOf = (text: string): string => `sha256:${createHash('sha256').update(text).digest('hex')}`;
const NAMES = ['Ada', 'Bob', 'Cy', 'Ada'];
const tokens = NAMES.map((description, index) => ({ token_hash: hashOf(`token-${index}`), description }));

interface Waiting extends AdminFixture {
  readonly row: RequestRow;
  /** The n-th administrator decides. */
  readonly decide: (who: number, what?: 'approve' | 'reject') => Promise<Answered<Schemas['Request']>>;
  readonly events: (type: 'request.approved' | 'request.rejected') => Promise<unknown[]>;
}

async function waiting(approvals: number): Promise<Waiting> {
  const { config, driver } = ailingCa('devices', () => Promise.resolve({ health: 'ok' }), [], true);
  const cas = [new Ca({ ...config, approval: 'manual', approvals }, driver)];
  const api = await adminFixture({
    cas,
    auth: { bearer_token: { enabled: true, tokens } },
  });
  const row = requestRow({ ca: 'devices' });
  await api.store.queueRequest(row, null, [event('request.queued')]);
  return {
    ...api,
    row,
    decide: (who, what = 'approve') =>
      api.raw(
        'POST',
        `/admin/requests/${row.id}/${what}`,
        {
          authorization: `Bearer token-${who}`,
          ...(what === 'reject' ? { 'content-type': 'application/json' } : {}),
        },
        what === 'reject' ? '{"reason": "unknown device"}' : undefined,
      ),
    events: async (type) => {
      const { items } = await api.store.listAudit({ limit: 100, type });
      return items.map(({ subject, detail }) => [subject, detail]);
    },
  };
}

test('what the approval of a request would come to, with how many have approved it and how many have to', async () => {
  const { config, driver } = ailingCa('devices', () => Promise.resolve({ health: 'ok' }), [], true);
  const asked: string[] = [];
  const api = await adminFixture({
    cas: [new Ca({ ...config, approval: 'manual', approvals: 2 }, driver)],
    dryRun: {
      queued: ({ row, ca }) => {
        asked.push(`${row.id} ${ca.label}`);
        return Promise.resolve({ verdict: 'issue', subject: row.subject, sans: row.sans, notAfter: undefined });
      },
    },
  });
  const row = requestRow({ ca: 'devices' });
  await api.store.queueRequest(row, null, [event('request.queued')]);
  const { subject, sans } = row;
  await api.call('POST', `/admin/requests/${row.id}/approve`);
  const check = await api.call('GET', `/admin/requests/${row.id}/check`);
  expect(check.json()).toEqual({
    verdict: 'issue',
    subject,
    sans,
    not_after: null,
    approvals: { given: 1, needed: 2 },
  });
  expect(asked).toEqual([`${row.id} devices`]);
  await api.call('POST', `/admin/requests/${row.id}/reject`, { reason: 'no' });
  expect(failure(await api.call('GET', `/admin/requests/${row.id}/check`)).code).toBe('REQUEST_DECIDED');
  const gone = requestRow({ ca: 'gone', id: 'gone', recognition: 'gone' });
  await api.store.queueRequest(gone, null, [event('request.queued')]);
  expect(failure(await api.call('GET', '/admin/requests/gone/check')).code).toBe('VERDICT_UNKNOWN');
});

const about = ({ operation, requester }: RequestRow): string => `${operation} of ${requester}`;

test('one administrator is enough unless told, and stands in the record', async () => {
  const { decide, events, row } = await waiting(1);
  expectBody(await decide(0), { status: 'approved', decided_by: ['Ada'] });
  expect(failure(await decide(1)).code).toBe('REQUEST_DECIDED');
  expect(await events('request.approved')).toEqual([['Ada', about(row)]]);
});

test('approvals = 2 asks for two different ones; the same one twice is 409', async () => {
  const { decide, events, row, advance } = await waiting(2);
  expectBody(await decide(0), { status: 'pending', decided_by: ['Ada'], decided_at: null });
  expect(failure(await decide(0))).toMatchObject({ statusCode: 409, code: 'APPROVED_ALREADY' });
  advance(1000);
  const second = await decide(1);
  expectBody(second, { status: 'approved', decided_by: ['Ada', 'Bob'] });
  expect(second.json().decided_at).toMatch(/:01\.000Z$/);
  expect(failure(await decide(2)).code).toBe('REQUEST_DECIDED');
  expect(failure(await decide(0)).code).toBe('REQUEST_DECIDED');
  expect(await events('request.approved')).toEqual([
    ['Ada', `${about(row)}: approved by Ada, 1 of 2`],
    ['Bob', `${about(row)}: approved by Ada, Bob, 2 of 2`],
  ]);
});

test('tokens with one description, or one name, are one administrator', async () => {
  const { decide } = await waiting(2);
  await decide(0);
  expect(failure(await decide(3)).code).toBe('APPROVED_ALREADY');
  expectBody(await decide(1), { status: 'approved', decided_by: ['Ada', 'Bob'] });
});

test('a request keeps its number of approvals while its label is missing from the configuration', async () => {
  const { config, driver } = ailingCa('other', () => Promise.resolve({ health: 'ok' }), [], true);
  const api = await adminFixture({ cas: [new Ca(config, driver)] });
  const row = requestRow({ ca: 'devices', approvals: 2 });
  await api.store.queueRequest(row, null, []);
  const answer = await api.call('POST', `/admin/requests/${row.id}/approve`);
  expectBody(answer, { status: 'pending', decided_by: ['test admin'] });
});

test.each([
  ['at once', []],
  ['after an approval', [0]],
  ['by one who has approved', [0, 1]],
])('any one rejection rejects, %s', async (_, before) => {
  const { decide, events } = await waiting(3);
  for (const who of before) await decide(who);
  const by = before.length === 2 ? 1 : 2;
  const rejected = await decide(by, 'reject');
  expectBody(rejected, {
    status: 'rejected',
    reason: 'unknown device',
    decided_by: [...before, by].map((who) => NAMES[who] ?? ''),
  });
  expect(await events('request.rejected')).toHaveLength(1);
  expect(failure(await decide(0)).code).toBe('REQUEST_DECIDED');
});

test('three at once: each counts once', async () => {
  const { decide, store, row } = await waiting(3);
  const answers = await Promise.all([decide(0), decide(1), decide(2), decide(0)]);
  expect(answers.filter(({ statusCode }) => statusCode === 200)).toHaveLength(3);
  const { status, decided_by } = (await store.getRequest(row.id)) ?? row;
  expect([status, new Set(decided_by.map(({ key }) => key)).size, decided_by.length]).toEqual(['approved', 3, 3]);
});
