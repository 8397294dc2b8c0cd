/** What the fleet reads from audit records of queued renewals: their decision counts, and their polls do not. */
import { expect, test } from 'vitest';
import type { AuditRecord } from '../../src/audit/event.ts';
import { ChangeReader } from '../../src/fleet/changes.ts';

const [AT, SERIAL, ISSUER] = ['2026-01-02T03:04:05.000Z', '0a', 'CN=ca'];
const record = (fields: Partial<AuditRecord> & Pick<AuditRecord, 'type'>): AuditRecord => ({
  ...{ seq: 1, time: AT, outcome: 'failure', prev_hash: '', hash: '' },
  ...fields,
});
const proved = (request_id: string): AuditRecord =>
  record({ type: 'auth.mtls', outcome: 'success', serial: SERIAL, requester_issuer: ISSUER, request_id });

test('a decision is a rejection for the certificate that the request was sent with, however long ago', async () => {
  const reader = new ChangeReader((request_id) => Promise.resolve([proved(request_id)]));
  const certificate = { serial: SERIAL, issuer: ISSUER };
  expect(
    await reader.read([
      record({ type: 'request.rejected', request_id: 'a', reason: 'unknown device' }),
      record({ type: 'request.expired', request_id: 'b', detail: 'pending for 7 days' }),
    ]),
  ).toEqual({
    rejections: [
      { at: Date.parse(AT), request_id: 'a', certificate, code: 'REQUEST_REJECTED', message: 'unknown device' },
      { at: Date.parse(AT), request_id: 'b', certificate, code: 'REQUEST_CANCELED', message: 'pending for 7 days' },
    ],
  });
});

test('a poll of a request that was rejected or canceled changes nothing', async () => {
  const reader = new ChangeReader(() => Promise.resolve([]));
  const denied = (detail: string): AuditRecord =>
    record({ type: 'certificate.denied', operation: 'simplereenroll', method: 'mtls', request_id: 'p', detail });
  const polls = ['REQUEST_REJECTED', 'REQUEST_CANCELED'].map((code) => denied(`simplereenroll: ${code}: no`));
  expect(await reader.read([proved('p'), ...polls])).toEqual({});
  const { rejections } = await reader.read([denied('simplereenroll: SAN_MISMATCH: no')]);
  expect(rejections).toMatchObject([{ code: 'SAN_MISMATCH' }]);
});
