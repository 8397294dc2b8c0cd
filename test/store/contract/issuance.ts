import { describe, expect, test } from 'vitest';
import { certificateRow, event, otpRow, reservation, T0 } from '../rows.ts';
import { auditTypes, issue, type NewDatabase } from './support.ts';

export function issuanceStoreContract(newDatabase: NewDatabase): void {
  describe('IssuanceStore', () => {
    test('§6: the intent is there before the certificate, with its instance; recording closes it', async () => {
      const store = await newDatabase().open();
      const intent = reservation({ instance: 'worker-1' });
      expect(await store.reserve(intent, [event('request.received')])).toBe('reserved');
      expect(await store.openReservations()).toEqual([intent]);
      expect(await store.openReservations('worker-1')).toEqual([intent]);
      expect(await store.openReservations('worker-2')).toEqual([]);
      const row = certificateRow(intent);
      await store.recordCertificate(row, [event('certificate.issued')]);
      expect(await store.openReservations()).toEqual([]);
      expect(await store.getCertificates(row.serial)).toEqual([row]);
      expect(await auditTypes(store)).toEqual(['request.received', 'certificate.issued']);
    });

    test('a serial is reserved once per CA, whether reserved or issued before; other CAs may have it', async () => {
      const store = await newDatabase().open();
      const open = reservation();
      await store.reserve(open, []);
      const issued = await issue(store);
      const row = otpRow();
      await store.insertOtp(row, []);
      for (const serial of [open.serial, issued.serial])
        expect(await store.reserve(reservation({ serial, otp_id: row.id }), [event('otp.used')])).toBe('serial-taken');
      expect((await store.getOtp(row.id))?.uses).toBe(0);
      expect(await auditTypes(store)).toEqual([]);
      expect(await store.reserve(reservation({ serial: issued.serial, ca: 'lab' }), [])).toBe('reserved');
    });

    test('a reservation without a serial (the CA chooses it) can be recorded with any', async () => {
      const store = await newDatabase().open();
      const intents = [reservation({ serial: null }), reservation({ serial: null })];
      for (const intent of intents) expect(await store.reserve(intent, [])).toBe('reserved');
      for (const intent of intents) await store.recordCertificate(certificateRow(intent), []);
      expect((await store.listCertificates({ limit: 10 }, T0)).items).toHaveLength(2);
    });

    test('of calls that are made together one that fails takes back nothing but itself, and the others happen once', async () => {
      const store = await newDatabase().open();
      const [before, unknown, after] = [reservation(), reservation(), reservation()];
      const refused = { status: 500, code: 'RESERVATION_NOT_OPEN' };
      const [first, failing, last] = await Promise.allSettled([
        store.reserve(before, [event('request.received')]),
        store.recordCertificate(certificateRow(unknown), [event('certificate.issued')]),
        store.reserve(after, [event('request.received')]),
      ]);
      expect(first).toMatchObject({ value: 'reserved' });
      expect(failing).toMatchObject({ reason: refused });
      expect(last).toMatchObject({ value: 'reserved' });
      expect(await auditTypes(store)).toEqual(['request.received', 'request.received']);
      expect(await store.openReservations()).toHaveLength(2);
    });

    test('a released reservation gives the token use back exactly once', async () => {
      const store = await newDatabase().open();
      const row = otpRow({ max_uses: 2 });
      await store.insertOtp(row, []);
      const intents = [reservation({ otp_id: row.id }), reservation({ otp_id: row.id })];
      for (const intent of intents) await store.reserve(intent, []);
      expect((await store.getOtp(row.id))?.uses).toBe(2);
      const first = intents[0]?.request_id ?? '';
      const released = await Promise.all(Array.from({ length: 5 }, () => store.releaseReservation(first, [])));
      expect(released).toEqual([true, false, false, false, false]);
      expect((await store.getOtp(row.id))?.uses).toBe(1);
      expect(await auditTypes(store)).toEqual(['otp.returned']);
    });

    test('a repeat of a request that is being recorded or released never loses its use', async () => {
      const store = await newDatabase().open();
      const repeatable = { recognition: 'the same request', retry_window: 60_000 };
      for (let round = 0; round < 12; round++) {
        const { id: otp_id } = otpRow();
        await store.insertOtp(otpRow({ id: otp_id }), []);
        const of = { ...repeatable, recognition: `${repeatable.recognition} ${round}` };
        const first = reservation({ otp_id });
        expect(await store.reserve(first, [], of)).toBe('reserved');
        const isRecorded = round % 2 === 0;
        // What comes first is carried out alone, and the others together after it.
        const [, , ...results] = await Promise.all([
          store.audit([event('admin.access')]),
          isRecorded
            ? store.recordCertificate(certificateRow(first), [])
            : store.releaseReservation(first.request_id, []),
          ...Array.from({ length: 4 }, () => store.reserve(reservation({ otp_id, serial: null }), [], of)),
        ]);
        expect(results).toEqual([isRecorded ? 'repeated' : 'reserved', 'repeated', 'repeated', 'repeated']);
      }
    });

    test('a reservation that was recorded is not released any more: its token use stays taken', async () => {
      const store = await newDatabase().open();
      const row = otpRow();
      await store.insertOtp(row, []);
      const intent = reservation({ otp_id: row.id });
      await store.reserve(intent, []);
      await store.recordCertificate(certificateRow(intent), []);
      expect(await store.releaseReservation(intent.request_id, [event('otp.returned')])).toBe(false);
      expect((await store.getOtp(row.id))?.uses).toBe(1);
    });

    test.each([
      ['never reserved', undefined, {}],
      ['reserved for another CA', {}, { ca: 'lab' }],
      ['reserved at another label', {}, { label: 'guests' }],
      ['reserved for another serial', {}, { serial: 'abcd' }],
    ])('a certificate whose request was %s is not recorded', async (_name, intended, recorded) => {
      const store = await newDatabase().open();
      const intent = reservation(intended);
      if (intended !== undefined) await store.reserve(intent, []);
      const row = certificateRow(intent, recorded);
      await expect(store.recordCertificate(row, [event('certificate.issued')])).rejects.toMatchObject({
        status: 500,
        code: 'RESERVATION_NOT_OPEN',
      });
      expect(await store.getCertificates(row.serial)).toEqual([]);
      expect(await store.openReservations()).toHaveLength(intended === undefined ? 0 : 1);
      expect(await auditTypes(store)).toEqual([]);
    });

    test('a certificate is not recorded twice, nor after its reservation was released', async () => {
      const store = await newDatabase().open();
      const intent = reservation();
      await store.reserve(intent, []);
      await store.recordCertificate(certificateRow(intent), []);
      await expect(store.recordCertificate(certificateRow(intent), [])).rejects.toMatchObject({
        code: 'RESERVATION_NOT_OPEN',
      });
      const released = reservation();
      await store.reserve(released, []);
      await store.releaseReservation(released.request_id, []);
      await expect(store.recordCertificate(certificateRow(released), [])).rejects.toMatchObject({
        code: 'RESERVATION_NOT_OPEN',
      });
    });

    test('a serial that the CA has issued already is refused even where the CA chose it', async () => {
      const store = await newDatabase().open();
      const { serial } = await issue(store);
      const intent = reservation({ serial: null });
      await store.reserve(intent, []);
      await expect(store.recordCertificate(certificateRow(intent, { serial }), [])).rejects.toMatchObject({
        status: 500,
        code: 'SERIAL_TAKEN',
      });
      expect(await store.openReservations()).toEqual([intent]);
    });
  });
}
