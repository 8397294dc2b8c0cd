import { describe, expect, test } from 'vitest';
import { certificateRow, event, otpRow, requestRow, reservation, T0 } from '../rows.ts';
import { auditTypes, type NewDatabase } from './support.ts';

export function otpStoreContract(newDatabase: NewDatabase): void {
  describe('OtpStore', () => {
    test('a token is found by its lookup and by its id, and by nothing else', async () => {
      const store = await newDatabase().open();
      const row = otpRow({ ca: 'lab', max_uses: 3 });
      await store.insertOtp(row, [event('otp.created')]);
      await store.insertOtp(otpRow(), [event('otp.created')]);
      expect(await store.findOtp(row.lookup)).toEqual(row);
      expect(await store.getOtp(row.id)).toEqual(row);
      expect(await store.findOtp(row.id)).toBeUndefined();
      expect(await store.getOtp(row.lookup)).toBeUndefined();
    });

    test('a lookup in use is not taken twice, and nothing is audited then', async () => {
      const store = await newDatabase().open();
      const row = otpRow();
      await store.insertOtp(row, [event('otp.created')]);
      await expect(store.insertOtp(otpRow({ lookup: row.lookup }), [event('otp.created')])).rejects.toMatchObject({
        code: 'STORE_FAILED',
      });
      expect(await auditTypes(store)).toEqual(['otp.created']);
    });

    test('a JWT that counts once is admitted once, serves one reservation, and is not listed', async () => {
      const store = await newDatabase().open();
      const row = otpRow({ id: 'jwt:1', lookup: 'jwt:1', hash: '' });
      const admitted = await Promise.all(Array.from({ length: 5 }, () => store.admitToken(row)));
      expect(admitted).toEqual(Array(5).fill(row));
      const results = await Promise.all([1, 2].map(() => store.reserve(reservation({ otp_id: row.id }), [])));
      expect(results.toSorted()).toEqual(['otp-unusable', 'reserved']);
      expect(await store.admitToken(row)).toEqual({ ...row, uses: 1 });
      expect((await store.listOtps({ limit: 10 }, T0)).items).toEqual([]);
    });

    test('a JWT that counted once is not purged before it has expired', async () => {
      const store = await newDatabase().open();
      const row = await store.admitToken(
        otpRow({ id: 'jwt:2', lookup: 'jwt:2', hash: '', uses: 1, expires_at: T0 + 1000 }),
      );
      expect(await store.purgeTokens([row.id], { ended: T0, used: T0 + 5000 })).toBe(0);
      expect((await store.findOverTokens({ ended: T0, used: T0 + 5000 }, 0)).ids).toEqual([]);
      expect(await store.purgeTokens([row.id], { ended: T0 + 1000, used: T0 })).toBe(1);
    });

    test('of 50 parallel reservations with one single-use token exactly one is made', async () => {
      const store = await newDatabase().open();
      const row = otpRow();
      await store.insertOtp(row, []);
      const results = await Promise.all(
        Array.from({ length: 50 }, () => store.reserve(reservation({ otp_id: row.id }), [event('otp.used')])),
      );
      expect(results.filter((result) => result === 'reserved')).toHaveLength(1);
      expect(results.filter((result) => result === 'otp-unusable')).toHaveLength(49);
      expect((await store.getOtp(row.id))?.uses).toBe(1);
      expect(await store.openReservations()).toHaveLength(1);
      expect(await auditTypes(store)).toEqual(['otp.used']);
    });

    test('a token of max_uses 3 serves exactly three of 20 parallel reservations', async () => {
      const store = await newDatabase().open();
      const row = otpRow({ max_uses: 3 });
      await store.insertOtp(row, []);
      const results = await Promise.all(
        Array.from({ length: 20 }, () => store.reserve(reservation({ otp_id: row.id }), [])),
      );
      expect(results.filter((result) => result === 'reserved')).toHaveLength(3);
    });

    test.each([
      ['unknown', {}, 'no-such-token'],
      ['revoked', { revoked_at: T0 }, undefined],
      ['expired a millisecond ago', { expires_at: T0 + 999 }, undefined],
      ['expiring this millisecond', { expires_at: T0 + 1000 }, undefined],
      ['consumed', { uses: 1 }, undefined],
    ])('a token that is %s reserves nothing', async (_name, more, id) => {
      const store = await newDatabase().open();
      const row = otpRow(more);
      await store.insertOtp(row, []);
      const intent = reservation({ otp_id: id ?? row.id, created_at: T0 + 1000 });
      expect(await store.reserve(intent, [event('otp.used')])).toBe('otp-unusable');
      expect(await store.openReservations()).toEqual([]);
      expect(await auditTypes(store)).toEqual([]);
    });

    test('a use is known by the request that it was taken for, until it goes back', async () => {
      const store = await newDatabase().open();
      const row = otpRow({ max_uses: 5 });
      await store.insertOtp(row, []);
      const repeatable = { recognition: 'same', retry_window: 0 };
      const first = reservation({ otp_id: row.id });
      expect(await store.findOtpUse('same')).toBeUndefined();
      expect(await store.reserve(first, [], repeatable)).toBe('reserved');
      const use = { request_id: first.request_id, otp_id: row.id, issued_at: null, under_way: true };
      expect(await store.findOtpUse('same')).toEqual(use);
      await store.releaseReservation(first.request_id, []);
      expect(await store.findOtpUse('same')).toBeUndefined();
      const second = reservation({ otp_id: row.id });
      await store.reserve(second, [], repeatable);
      await store.recordCertificate(certificateRow(second), []);
      const issued = { request_id: second.request_id, issued_at: second.created_at, under_way: false };
      expect(await store.findOtpUse('same')).toMatchObject(issued);
      expect(await store.findOtpUse('other')).toBeUndefined();
    });

    test('the same request takes no second use while it is under way, and within its window', async () => {
      const store = await newDatabase().open();
      const row = otpRow({ max_uses: 5 });
      await store.insertOtp(row, []);
      const reserve = (recognition: string, retry_window: number, at: number): Promise<unknown> =>
        store.reserve(reservation({ otp_id: row.id, created_at: at }), [event('otp.used')], {
          recognition,
          retry_window,
        });
      const first = reservation({ otp_id: row.id, created_at: T0 });
      await store.reserve(first, [], { recognition: 'same', retry_window: 1000 });
      expect(await reserve('same', 1000, T0 + 5000)).toBe('repeated');
      expect(await reserve('other', 1000, T0 + 5000)).toBe('reserved');
      await store.recordCertificate(certificateRow(first), []);
      expect(await reserve('same', 1000, T0 + 999)).toBe('repeated');
      expect((await store.getOtp(row.id))?.uses).toBe(2);
      expect(await auditTypes(store)).toEqual(['otp.used']);
      expect(await reserve('same', 0, T0 + 999)).toBe('reserved');
      expect((await store.getOtp(row.id))?.uses).toBe(3);
    });

    test('the same request takes another use after its certificate has expired, although its window is open', async () => {
      const store = await newDatabase().open();
      const row = otpRow({ max_uses: 5 });
      await store.insertOtp(row, []);
      const repeatable = { recognition: 'same', retry_window: 60_000 };
      const first = reservation({ otp_id: row.id });
      await store.reserve(first, [], repeatable);
      await store.recordCertificate(certificateRow(first, { not_after: T0 + 5000 }), []);
      const again = (created_at: number) => store.reserve(reservation({ otp_id: row.id, created_at }), [], repeatable);
      expect(await again(T0 + 5000)).toBe('repeated');
      expect(await again(T0 + 5001)).toBe('reserved');
    });

    test('a queued request holds its use, and its certificate is found by it once the record is gone', async () => {
      const store = await newDatabase().open();
      const row = otpRow();
      await store.insertOtp(row, []);
      const request = requestRow({ otp_id: row.id, recognition: 'same' });
      await store.queueRequest(request, null, []);
      expect(await store.findOtpUse('same')).toMatchObject({ issued_at: null, under_way: false });
      await store.decideRequest({ id: request.id, status: 'approved', reason: null, decided_at: T0 }, []);
      const claim = reservation({ request_id: request.id, created_at: T0 + 7 });
      await store.claimRequest(claim, []);
      expect(await store.findOtpUse('same')).toMatchObject({ issued_at: null, under_way: true });
      await store.recordCertificate(certificateRow(claim), []);
      await store.expireRequests({ pending_ttl: 0, retention: 0 }, T0 + 10);
      expect(await store.getRequest(request.id)).toBeUndefined();
      expect(await store.findOtpUse('same')).toMatchObject({ request_id: request.id, issued_at: T0 + 7 });
    });

    test('a revoked token is dead at once; revoking again changes and audits nothing', async () => {
      const store = await newDatabase().open();
      const row = otpRow();
      await store.insertOtp(row, []);
      expect(await store.revokeOtp(row.id, T0 + 5, [event('otp.revoked')])).toBe(true);
      expect(await store.revokeOtp(row.id, T0 + 9, [event('otp.revoked')])).toBe(true);
      expect(await store.revokeOtp('no-such-token', T0, [event('otp.revoked')])).toBe(false);
      expect((await store.getOtp(row.id))?.revoked_at).toBe(T0 + 5);
      expect(await store.reserve(reservation({ otp_id: row.id }), [])).toBe('otp-unusable');
      expect(await auditTypes(store)).toEqual(['otp.revoked']);
    });

    test('the expiry of a token changes unless it is revoked or unknown, and only a change is audited', async () => {
      const store = await newDatabase().open();
      const row = otpRow();
      await store.insertOtp(row, []);
      const change = (id: string, expires_at: number) => store.changeOtp(id, expires_at, [event('otp.changed')]);
      expect(await change(row.id, T0 + 5000)).toBe('changed');
      expect(await store.getOtp(row.id)).toEqual({ ...row, expires_at: T0 + 5000 });
      await store.revokeOtp(row.id, T0, []);
      expect(await change(row.id, T0 + 9000)).toBe('revoked');
      expect(await change('none', T0)).toBe('unknown');
      expect(await auditTypes(store)).toEqual(['otp.changed']);
    });

    test('the list of tokens pages in order of creation and stays stable under inserts', async () => {
      const store = await newDatabase().open();
      const rows = Array.from({ length: 5 }, () => otpRow());
      for (const row of rows) await store.insertOtp(row, []);
      const first = await store.listOtps({ limit: 3 }, 0);
      expect(first.items).toEqual(rows.slice(0, 3));
      const late = otpRow({ created_at: T0 - 1 });
      await store.insertOtp(late, []);
      const second = await store.listOtps({ limit: 3, cursor: first.next_cursor ?? undefined }, 0);
      expect(second).toEqual({ items: [...rows.slice(3), late], next_cursor: null });
    });

    test('a search finds a part of a client_id, ignoring case, or an ID', async () => {
      const store = await newDatabase().open();
      const [press, oven] = [otpRow({ client_id: 'Press-1' }), otpRow({ client_id: 'oven', ca: 'lab' })];
      for (const row of [press, oven]) await store.insertOtp(row, []);
      expect((await store.listOtps({ limit: 9, search: 'pRess' }, 0)).items).toEqual([press]);
      expect((await store.listOtps({ limit: 9, search: oven.id }, 0)).items).toEqual([oven]);
      expect((await store.listOtps({ limit: 9, search: 'e', labels: ['lab'] }, 0)).items).toEqual([oven]);
    });

    test.each([
      '',
      'x',
      'bm9wZQ',
      Buffer.from('certificate:1').toString('base64url'),
      Buffer.from('otp:x').toString('base64url'),
    ])('a cursor that the list did not give out is refused: %j', async (cursor) => {
      const store = await newDatabase().open();
      await expect(store.listOtps({ limit: 1, cursor }, 0)).rejects.toMatchObject({
        status: 400,
        code: 'CURSOR_INVALID',
      });
    });
  });
}
