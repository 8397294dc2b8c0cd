/** Lists, counts and changes that are limited to labels. */
import { describe, expect, test } from 'vitest';
import type { Store } from '../../../src/store/store.ts';
import { deviceRow, event, otpRow, requestRow, T0 } from '../rows.ts';
import { deviceOf } from '../../support/devices.ts';
import { auditTypes, issue, type NewDatabase } from './support.ts';

const DAY = 86_400_000;

/** Records of a CA with a further label, of another CA, and without a label. */
async function fill(store: Store): Promise<void> {
  for (const [ca, label] of [
    ['devices', null],
    ['devices', 'guests'],
    ['lab', null],
  ] as const) {
    const id = label ?? ca;
    await issue(store, { ca, label, subject: `CN=${id}`, requester: id });
    await store.queueRequest(requestRow({ ca: id, requester: id }), null, []);
    await store.audit([
      event('certificate.issued', { ca, ...(label === null ? {} : { label }), subject: id }),
      event('request.queued', { ca: id, subject: id }),
    ]);
  }
  for (const ca of ['devices', 'guests', 'lab', null]) {
    const id = ca ?? 'none';
    await store.insertOtp(otpRow({ ca, client_id: id }), []);
    await store.putDevices([{ row: deviceRow({ id, key: id, ca, attributes: { [id]: 'x' } }), events: [] }], 'create');
  }
  await store.audit([event('service.start')]);
}

async function seen(store: Store, labels: readonly string[] | undefined) {
  const page = { limit: 100, labels };
  const [certificates, requests, tokens, devices, audit] = await Promise.all([
    store.listCertificates(page, T0),
    store.listRequests(page),
    store.listOtps(page, T0),
    store.listDevices(page),
    store.listAudit(page),
  ]);
  return {
    certificates: certificates.items.map(({ requester }) => requester),
    requests: requests.items.map(({ ca }) => ca),
    tokens: tokens.items.map(({ client_id }) => client_id),
    devices: devices.items.map(({ id }) => id),
    attributes: await store.listDeviceAttributes({ labels }),
    audit: audit.items.map(({ subject }) => subject),
    ends: await store.countCertificatesByEnd(T0, [], labels),
    statistics: (await store.countEvents({ since: T0, until: T0 + DAY, interval: DAY, labels })).map(
      ({ what, count }) => `${what} ${count}`,
    ),
  };
}

const all = (id: string) => ({
  certificates: [id],
  requests: [id],
  tokens: [id],
  devices: [id],
  attributes: [id],
  audit: [id, id],
  ends: [1],
  statistics: ['issued 1', 'queued 1'],
});
const NOTHING = {
  certificates: [],
  requests: [],
  tokens: [],
  devices: [],
  attributes: [],
  audit: [],
  ends: [0],
  statistics: [],
};

export function labelContract(newDatabase: NewDatabase): void {
  describe('labels', () => {
    test('limit every list and every count; a record of a further label is not of its CA', async () => {
      const store = await newDatabase().open(() => T0 + 1000);
      await fill(store);
      for (const label of ['devices', 'guests', 'lab']) expect(await seen(store, [label]), label).toEqual(all(label));
      expect(await seen(store, [])).toEqual(NOTHING);
      expect(await seen(store, ["x' OR 1 = 1 --"])).toEqual(NOTHING);
      const both = await seen(store, ['lab', 'guests']);
      expect(both).toMatchObject({ certificates: ['guests', 'lab'], ends: [2], statistics: ['issued 2', 'queued 2'] });
      const unlimited = await seen(store, undefined);
      expect(unlimited.devices).toEqual(['devices', 'guests', 'lab', 'none']);
      expect(unlimited.audit).toContain(undefined);
    });

    test('go with every other filter, and with pages in both directions', async () => {
      const store = await newDatabase().open(() => T0 + 1000);
      await fill(store);
      const labels = ['lab'];
      const page = { limit: 1, labels, order: 'desc' } as const;
      expect((await store.listCertificates({ ...page, ca: 'devices' }, T0)).items).toEqual([]);
      expect((await store.listCertificates({ ...page, subject: 'lab', status: 'valid' }, T0)).items).toHaveLength(1);
      expect((await store.listRequests({ ...page, status: 'pending', ca: 'guests' })).items).toEqual([]);
      expect((await store.listAudit({ ...page, subject: 'lab' })).items).toHaveLength(1);
      expect((await store.listAudit({ ...page, ca: 'devices' })).items).toEqual([]);
      expect((await store.listAudit({ ...page, type: 'request.queued', since: T0 })).items).toHaveLength(1);
      expect((await store.listDevices({ ...page, enabled: true })).items.map(({ id }) => id)).toEqual(['lab']);
      expect((await store.listOtps({ ...page, status: 'active' }, T0)).items.map(({ ca }) => ca)).toEqual(['lab']);
    });

    test('a change of a device that has another label by now changes nothing', async () => {
      const store = await newDatabase().open(() => T0 + 1000);
      await fill(store);
      const row = await deviceOf(store, 'lab');
      const moved = await store.changeDevice(row, { ca: 'devices' }, T0, []);
      const disabled = [event('device.changed')];
      expect(await store.changeDevice(row, { enabled: false }, T0, disabled)).toBeUndefined();
      expect(await store.getDevices('lab')).toEqual([moved]);
      expect(await auditTypes(store)).not.toContain('device.changed');
    });
  });
}
