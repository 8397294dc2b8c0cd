/** `/admin/devices`: the inventory of what may have certificates (docs/guides/devices.md). */
import { Type } from '@fastify/type-provider-typebox';
import type { FastifyRequest } from 'fastify';
import { deviceEvent } from '../../audit/applied-events.ts';
import { notFound, type EstuaryError } from '../../errors.ts';
import type { DeviceRow, DeviceSelection } from '../../store/device-store.ts';
import { accessEvent, actor, limited, type LimitedStore } from './access.ts';
import { dryRun, isBulk } from './bulk/bulk.ts';
import { cellsOf } from './bulk/columns.ts';
import type { AdminApp, AdminDependencies } from './dependencies.ts';
import { idAmbiguous, importDevices, notEntered, wouldBeRefused } from './device-import.ts';
import {
  ChangedDevice,
  deviceHeader,
  DeviceRecord,
  deviceRecord,
  ListedDevice,
  listedDevice,
  NewDevice,
  readChange,
  readDevice,
} from './device-record.ts';
import { historyProperties, historyRecord, SHOWN } from './history.ts';
import { listRoute, type Query, route } from './route.ts';
import { everyCertificate } from '../../administration/renewals.ts';
import { isFinal } from '../../administration/revoke.ts';
import { revokeByCall } from './revocation.ts';
import { flag, oneOf, part, Text, titled } from './schemas.ts';

const DevicePage = titled(
  'DeviceDetails',
  `A registered device, with its latest ${SHOWN} certificates, tokens, requests and audit records, the newest first.`,
  {
    key: Text('As `device_key` in audit records. Another device with this ID has another key.'),
    ...ListedDevice.properties,
    ...historyProperties,
  },
);

const selectionQuery = {
  id: Type.Optional(Type.String({ maxLength: 255, description: 'The complete ID.' })),
  ca: Type.Optional(Type.String({ maxLength: 255, description: 'Devices that can enroll only at this label.' })),
  enabled: flag('true: enabled devices; false: disabled devices.'),
  search: part('the ID, the note or a value of `match`'),
};

/** Chooses among devices with one ID. */
export const deviceLabel = Type.Optional(
  Type.String({
    minLength: 0,
    maxLength: 255,
    description: 'The label of the device, if its ID exists at several. Empty: the device without a label.',
  }),
);

export function registerDevices(app: AdminApp, deps: AdminDependencies): void {
  route(app, {
    call: 'POST /admin/devices',
    access: ['ra'],
    labels: 'records',
    bulk: 'too',
    summary: 'Register one or more devices',
    description:
      'For NDJSON or CSV (columns `id ca enabled not_after note`, `match.NAME`, `attributes.NAME`) of at most 10,000 rows and 16 MiB, the response is 200 with one result per row in the same format: the device, or `{row, code, message}`.',
    query: {
      mode: Type.Optional(
        oneOf(['create', 'upsert'], {
          description:
            '`upsert` changes a known device: only the given fields. In CSV, an absent column or an empty cell is not given. In JSON and NDJSON, `match` and `attributes` are replaced as a whole, and null clears a field.',
        }),
      ),
      dry_run: dryRun,
    },
    body: {
      content: {
        'application/json': { schema: NewDevice },
        'application/x-ndjson': { schema: Type.Any({ description: 'One device per line.' }) },
        'text/csv': { schema: Type.Any({ description: 'RFC 4180, with a header line.' }) },
      },
    },
    response: {
      200: {
        description: 'The changed device, or one result per row, or the result of a dry run.',
        content: {
          'application/json': { schema: DeviceRecord },
          'application/x-ndjson': { schema: Type.Any() },
          'text/csv': { schema: Type.Any() },
        },
      },
      201: DeviceRecord,
    },
    errors: [409],
    handler: async (request, reply) => {
      const mode = request.query.mode ?? 'create';
      const isDry = request.query.dry_run === 'true';
      if (isBulk(request.body)) return importDevices(deps, request, reply, { mode, isDry });
      const { store } = limited(deps, request);
      const { row, change } = readDevice(request, request.body, deps);
      if (isDry) {
        const problem = await wouldBeRefused(deps, row, change, mode);
        if (problem !== undefined) throw problem;
        return reply.code(200).send(deviceRecord(row));
      }
      const events = [
        accessEvent(request, 'success', `device ${row.id}`),
        deviceEvent('device.created', row, actor(request), change),
      ];
      const [entered] = await store.putDevices([{ row, change, events }], mode);
      if (entered === undefined || !('row' in entered)) throw notEntered(entered?.result);
      return reply.code(entered.result === 'changed' ? 200 : 201).send(deviceRecord(entered.row));
    },
  });

  listRoute(app, deps, {
    call: 'GET /admin/devices',
    access: ['ra', 'auditor'],
    labels: 'records',
    summary: 'List the registered devices',
    description: 'With `Accept: text/csv`, the whole selection as a table that can be imported again.',
    filters: selectionQuery,
    item: ListedDevice,
    sorted: 'The order of registration.',
    page: (request) => async (page) => {
      const { store } = limited(deps, request);
      const { items, ...rest } = await store.listDevices({ ...readDeviceSelection(request.query), ...page });
      const uses = await store.usesOfDevices(items.map(({ key }) => key));
      return { items: items.map((row) => ({ row, use: uses.get(row.key) })), ...rest };
    },
    record: ({ row, use }) => listedDevice(row, use),
    table: async (request) => {
      const { store } = limited(deps, request);
      const attributes = await store.listDeviceAttributes(readDeviceSelection(request.query));
      return { header: deviceHeader(attributes), cells: cellsOf };
    },
  });

  route(app, {
    call: 'GET /admin/devices/:id',
    param: 'Percent-encoded.',
    access: ['ra', 'auditor'],
    labels: 'records',
    summary: 'Get one device with its certificates, tokens, requests and latest events',
    query: { ca: deviceLabel },
    response: { 200: DevicePage },
    handler: async (request) => {
      const { store } = limited(deps, request);
      const row = await findDevice(store, request.params.id, request.query.ca);
      const history = await store.deviceHistory(row, SHOWN);
      const { key } = row;
      const use = (await store.usesOfDevices([key])).get(key);
      return { key, ...listedDevice(row, use), ...(await historyRecord(history, store, deps.now(), request)) };
    },
  });

  route(app, {
    call: 'PATCH /admin/devices/:id',
    param: 'Percent-encoded.',
    access: ['ra'],
    labels: 'records',
    summary: 'Change a device; a disabled device gets no certificates',
    description: '`match` and `attributes` are replaced as a whole. null removes `ca`, `match`, `not_after` or `note`.',
    query: { ca: deviceLabel },
    body: ChangedDevice,
    response: { 200: DeviceRecord },
    errors: [409],
    handler: async (request) => {
      const { id } = request.params;
      const { store } = limited(deps, request);
      const row = await findDevice(store, id, request.query.ca);
      const change = readChange(request, request.body, deps);
      const changed = await store.changeDevice(row, change, deps.now(), [
        accessEvent(request, 'success', `device ${id}`),
        deviceEvent('device.changed', { ...row, ...change }, actor(request), change),
      ]);
      if (changed === undefined) throw deviceNotFound();
      if (changed === 'known') throw notEntered(changed);
      return deviceRecord(changed);
    },
  });

  route(app, {
    call: 'DELETE /admin/devices/:id',
    param: 'Percent-encoded.',
    access: ['ra'],
    labels: 'records',
    summary: 'Delete a device; its certificates do not pass to a later device with the same ID',
    query: { ca: deviceLabel, revoke: flag('Also revoke its certificates.') },
    response: { 204: Type.Null({ description: 'Forgotten.' }) },
    handler: async (request, reply) => {
      const { store } = limited(deps, request);
      const row = await findDevice(store, request.params.id, request.query.ca);
      if (request.query.revoke === 'true') await revokeAll(deps, request, row);
      const deleted = await store.deleteDevice(row.key, [
        accessEvent(request, 'success', `device ${row.id}`),
        deviceEvent('device.deleted', row, actor(request)),
      ]);
      if (!deleted) throw deviceNotFound();
      return reply.code(204).send(null);
    },
  });
}

const readDeviceSelection = ({ id, ca, enabled, search }: Query<typeof selectionQuery>): DeviceSelection => ({
  ...{ id, ca, search },
  enabled: enabled === undefined ? undefined : enabled === 'true',
});

/** Disables the device first: then no further certificate can be recorded for it and missed. */
async function revokeAll(deps: AdminDependencies, request: FastifyRequest, row: DeviceRow): Promise<void> {
  const now = deps.now();
  const { store } = limited(deps, request);
  const order = { reason: 'cessationOfOperation', invalidity_date: null, revoked_at: now };
  if (row.enabled)
    await store.changeDevice(row, { enabled: false }, now, [
      deviceEvent('device.changed', row, actor(request), { enabled: false }),
    ]);
  for await (const certificate of everyCertificate(store, { device_key: row.key }, now))
    if (certificate.not_after >= now && !isFinal(certificate)) await revokeByCall(deps, request, certificate, order);
}

/** @throws EstuaryError 404; 400 `DEVICE_ID_AMBIGUOUS`: the ID exists at several labels, and `ca` is absent */
export async function findDevice(store: LimitedStore, id: string, ca: string | undefined): Promise<DeviceRow> {
  const known = await store.getDevices(id);
  const [row, ...others] = ca === undefined ? known : known.filter((device) => device.ca === (ca === '' ? null : ca));
  if (row === undefined) throw deviceNotFound();
  if (others.length > 0) throw idAmbiguous();
  return row;
}

const deviceNotFound = (): EstuaryError => notFound('DEVICE_NOT_FOUND', 'no device has this id');
