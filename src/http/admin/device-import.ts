/** Imports devices in bulk; each row's result is sent once its batch is in the store. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { deviceEvent } from '../../audit/applied-events.ts';
import { badRequest, conflict, type EstuaryError } from '../../errors.ts';
import { type DeviceChange, type DeviceEntry, type DeviceRow, upsertedOf } from '../../store/device-store.ts';
import { accessEvent, actor, limited } from './access.ts';
import { answerBulk, bulkFailure, readBulk, type BulkAnswer, type BulkRow } from './bulk/bulk.ts';
import type { AdminDependencies } from './dependencies.ts';
import { DEVICE_COLUMNS, deviceHeader, deviceRecord, readDevice } from './device-record.ts';

export const idAmbiguous = (): EstuaryError =>
  badRequest('DEVICE_ID_AMBIGUOUS', 'this id exists at several labels: specify one with ca');

/** Why an entry changed nothing, also as the result of a row. */
export const notEntered = (result: 'known' | 'ambiguous' | undefined): EstuaryError =>
  result === 'ambiguous'
    ? idAmbiguous()
    : conflict('DEVICE_EXISTS', 'a device with this id exists at this label (use mode=upsert to change it)');

/** What the call would be refused with. @param earlier of the same call */
export async function wouldBeRefused(
  { store }: Pick<AdminDependencies, 'store'>,
  row: DeviceRow,
  change: DeviceChange,
  mode: Import['mode'],
  earlier: readonly DeviceRow[] = [],
): Promise<EstuaryError | undefined> {
  const known = [...(await store.getDevices(row.id)), ...earlier];
  if (mode === 'create') return known.some(({ ca }) => ca === row.ca) ? notEntered('known') : undefined;
  return upsertedOf(known, { row, change }) === 'ambiguous' ? idAmbiguous() : undefined;
}

/** Rows per transaction, so that other writers do not wait long. */
const TOGETHER = 200;

/** @param isDry checks every row and changes nothing @throws EstuaryError 400, 413, 415: nothing has changed */
export function importDevices(
  deps: AdminDependencies,
  request: FastifyRequest,
  reply: FastifyReply,
  { mode, isDry }: Pick<Import, 'mode' | 'isDry'>,
): FastifyReply {
  const { format, header, rows } = readBulk(request.body, DEVICE_COLUMNS);
  const attributes = header.flatMap((name) =>
    name.startsWith('attributes.') ? [name.slice('attributes.'.length)] : [],
  );
  // Each CSV column is a field, also within `match` and `attributes`.
  const call = { deps, request, mode, isDry, merges: format === 'csv' };
  return answerBulk(reply, format, deviceHeader(attributes), isDry ? checkAll(call, rows) : enterAll(call, rows));
}

interface Import {
  readonly deps: AdminDependencies;
  readonly request: FastifyRequest;
  readonly mode: 'create' | 'upsert';
  readonly isDry: boolean;
  readonly merges: boolean;
}

async function* enterAll(call: Import, rows: readonly BulkRow[]): AsyncGenerator<BulkAnswer> {
  const { deps, request } = call;
  let refused = 0;
  const part = (at: number): Promise<BulkAnswer[]> => enter(call, rows.slice(at, at + TOGETHER));
  // Read the next batch while the store commits one.
  let next = part(0);
  for (let at = 0; at < rows.length; at += TOGETHER) {
    const answers = next;
    next = part(at + TOGETHER);
    for (const answer of await answers) {
      if ('code' in answer) refused += 1;
      yield answer;
    }
  }
  const about = `${rows.length - refused} of ${rows.length} devices`;
  await deps.store
    .audit([accessEvent(request, refused === rows.length && refused > 0 ? 'failure' : 'success', about)])
    .catch((error: unknown) => deps.log.error({ detail: String(error) }, 'cannot audit an import of devices'));
}

/** The results that the rows would get now. */
async function* checkAll(call: Import, rows: readonly BulkRow[]): AsyncGenerator<BulkAnswer> {
  const seen = new Map<string, DeviceRow[]>();
  for (const source of rows) {
    const read = readRow(call, source);
    if ('failure' in read) {
      yield read.failure;
      continue;
    }
    const { row, change = {} } = read.entry;
    const earlier = seen.get(row.id) ?? [];
    const problem = await wouldBeRefused(call.deps, row, change, call.mode, earlier);
    seen.set(row.id, [...earlier, row]);
    yield problem === undefined ? deviceRecord(row) : bulkFailure(source, 'id', problem);
  }
}

/** The results of some rows, in order. Never rejects. */
async function enter(call: Import, rows: readonly BulkRow[]): Promise<BulkAnswer[]> {
  if (rows.length === 0) return [];
  const { mode } = call;
  const { store } = limited(call.deps, call.request);
  const read = rows.map((source) => ({ source, ...readRow(call, source) }));
  const entries = read.flatMap((line) => ('entry' in line ? [line.entry] : []));
  try {
    const results = await store.putDevices(entries, mode);
    const resultOf = new Map(entries.map((entry, n) => [entry, results[n]]));
    return read.map((line) => {
      if ('failure' in line) return line.failure;
      const entered = resultOf.get(line.entry);
      if (entered === undefined || !('row' in entered))
        return bulkFailure(line.source, 'id', notEntered(entered?.result));
      return deviceRecord(entered.row);
    });
  } catch (error) {
    return read.map((line) => ('failure' in line ? line.failure : bulkFailure(line.source, 'id', error)));
  }
}

function readRow(
  { deps, request, merges }: Import,
  row: BulkRow,
): { readonly entry: DeviceEntry } | { readonly failure: BulkAnswer } {
  try {
    if ('problem' in row) throw row.problem;
    const { row: device, change } = readDevice(request, row.record, deps);
    const events = [deviceEvent('device.created', device, actor(request), change)];
    return { entry: { row: device, change, merges, events } };
  } catch (error) {
    return { failure: bulkFailure(row, 'id', error) };
  }
}
