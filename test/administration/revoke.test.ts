/** Rules for revocations, on every way in (docs/guides/revocation.md). */
import { expect, test } from 'vitest';
import { checkOrder, isFinal, revoke, type RevocationOrder } from '../../src/administration/revoke.ts';
import type { AuditEvent } from '../../src/audit/event.ts';
import type { Ca } from '../../src/ca/router.ts';
import { certificateRow } from '../../src/enrollment/certificate-row.ts';
import { createLogger } from '../../src/log.ts';
import { CRL_REASONS } from '../../src/pki/x509/crl.ts';
import { makeCa, makeClient } from '../support/certificates.ts';
import type { ListedCertificate } from '../../src/store/certificate-store.ts';
import { T0 } from '../store/rows.ts';

const ORDER: RevocationOrder = { reason: 'keyCompromise', invalidity_date: null, revoked_at: T0 };
const device = await makeClient('CN=device-1', await makeCa('CN=Devices'));
const row = certificateRow(device.der, {
  ca: 'devices',
  label: 'lab',
  requester: 'device-1',
  method: 'otp',
  request_id: 'request-1',
});

test('each CRLReason revokes, except removeFromCRL', () => {
  for (const reason of Object.keys(CRL_REASONS)) {
    const check = (): void => {
      checkOrder({ ...ORDER, reason });
    };
    if (reason === 'removeFromCRL') expect(check).toThrow('not removeFromCRL');
    else check();
  }
});

test('the invalidity date may be now or earlier, and not later', () => {
  for (const invalidity_date of [T0, T0 - 1]) checkOrder({ ...ORDER, invalidity_date });
  expect(() => {
    checkOrder({ ...ORDER, invalidity_date: T0 + 1 });
  }).toThrow('invalidity_date must not be in the future');
});

const another = {
  label: 'another',
  driver: { revoke: () => Promise.reject(new Error('not the CA of the certificate')) },
} as unknown as Ca;

/** What the CA, the store and the log receive. */
async function revoked(
  order: RevocationOrder,
  known: Pick<Ca, 'label' | 'ownIsRecorded'> | undefined,
  state: Partial<ListedCertificate> = {},
  cannotHold = false,
) {
  const lines: unknown[] = [];
  const log = createLogger('warn', { write: (line) => void lines.push(JSON.parse(line)) });
  const [toCa, events]: [unknown[], AuditEvent[]] = [[], []];
  const driver = {
    cannotHold,
    revoke: (one: unknown) => {
      toCa.push(one);
      return Promise.resolve();
    },
  };
  const context = {
    store: {
      getCertificates: (serial: string, ca?: string) =>
        Promise.resolve(serial === row.serial && ca === 'devices' ? [row] : []),
      revokeCertificate: (_: unknown, all: readonly AuditEvent[]) => {
        events.push(...all);
        return Promise.resolve('revoked' as const);
      },
    },
    cas: { issuers: [another, ...(known === undefined ? [] : [{ ...known, driver } as unknown as Ca])] },
    log,
  };
  const further: AuditEvent = { type: 'admin.access', outcome: 'success' };
  const result = await revoke(context, { ...row, ...state }, order, { subject: 'Ada' }, [further]);
  return { result, log: lines, toCa, events };
}

test('the CA learns which certificate it is where it does not keep its own', async () => {
  for (const ownIsRecorded of [true, false]) {
    const { toCa, log } = await revoked(ORDER, { label: 'devices', ownIsRecorded });
    const order = { serial: row.serial, reason: 'keyCompromise' };
    expect(toCa).toStrictEqual([ownIsRecorded ? { ...order, certificate: row.der } : order]);
    expect(log).toEqual([]);
  }
});

test('a CA that is no longer configured is not told, and the log says so', async () => {
  const { toCa, log, events } = await revoked(ORDER, undefined);
  expect(toCa).toEqual([]);
  expect(log).toMatchObject([{ level: 40, ca: 'devices', serial: row.serial }]);
  expect(events).toHaveLength(2);
});

test('the audit log has the certificate, the reason, and since when it is invalid', async () => {
  const known = { label: 'devices', ownIsRecorded: false };
  const at = new Date(T0 - 1000).toISOString();
  const certificate = {
    type: 'certificate.revoked',
    outcome: 'success',
    subject: 'Ada',
    ...{ ca: 'devices', label: 'lab', serial: row.serial, certificate_subject: 'CN=device-1' },
    revocation_reason: 'keyCompromise',
  };
  const plain = await revoked(ORDER, known);
  expect(plain.events).toMatchObject([
    { type: 'admin.access' },
    { ...certificate, detail: 'CN=device-1: keyCompromise' },
  ]);
  expect(plain.events[1]).not.toHaveProperty('invalidity_date');
  const dated = await revoked({ ...ORDER, invalidity_date: T0 - 1000 }, known);
  expect(dated.events[1]).toMatchObject({
    ...certificate,
    invalidity_date: at,
    detail: `CN=device-1: keyCompromise, invalid since ${at}`,
  });
});

const FILE_CA = { label: 'devices', ownIsRecorded: false };
const FINAL = { revoked_at: T0 - 1, reason: 'keyCompromise' } as const;
const HELD = { revoked_at: T0 - 1, reason: 'certificateHold' } as const;
const HOLD: RevocationOrder = { ...ORDER, reason: 'certificateHold' };

test('a hold becomes final; a final revocation changes no more, and a hold is not put on hold again', async () => {
  expect([isFinal(FINAL), isFinal(HELD), isFinal({ revoked_at: null, reason: null })]).toEqual([true, false, false]);
  for (const [state, order] of [
    [FINAL, ORDER],
    [FINAL, HOLD],
    [HELD, HOLD],
  ] as const)
    expect(await revoked(order, FILE_CA, state)).toMatchObject({ result: 'already-revoked', toCa: [], events: [] });
  for (const [state, order] of [
    [HELD, ORDER],
    [{}, HOLD],
  ] as const)
    expect(await revoked(order, FILE_CA, state)).toMatchObject({
      result: 'revoked',
      toCa: [{ reason: order.reason }],
      events: [{}, {}],
    });
});

test('a CA that cannot end a hold gets none, but every other reason', async () => {
  await expect(revoked(HOLD, FILE_CA, {}, true)).rejects.toMatchObject({ status: 409, code: 'HOLD_UNSUPPORTED' });
  expect(await revoked(ORDER, FILE_CA, {}, true)).toMatchObject({ result: 'revoked' });
});
