/**
 * Keys of each write: what it reads before writing, or writes. Calls with a common key run one after another, within
 * and across nodes. All keys of a transaction are locked before its first row, in one order on all nodes, so
 * transactions cannot deadlock.
 */
import type { Call } from '../calls/calls.ts';
import type { Queries } from './queries.ts';
import type { WriteOperations } from './operations.ts';

type Keys<Operation> = Operation extends (...args: infer Args) => unknown
  ? (...args: Args) => readonly (string | null)[]
  : never;

const DEVICE_KEY = 'device of key ';
const CONCERNING = 'concerning request ';

const token = (id: string | null): string | null => (id === null ? null : `token ${id}`);
const request = (id: string): string => `request ${id}`;
const recognition = (hash: string): string => `recognition ${hash}`;
const password = (key: string): string => `password ${key}`;
const serialNumber = (ca: string, serial: string | null): string | null =>
  serial === null ? null : `serial ${serial} ${ca}`;
const device = (id: string): string => `device ${id}`;
/** The device, if only the key of its entry is known. */
const deviceOf = (key: string | null): string | null => (key === null ? null : `${DEVICE_KEY}${key}`);
/** The token whose use a request returns, and its device. */
const concerning = (id: string): string => `${CONCERNING}${id}`;
const message = (key: string): string => `message ${key}`;
const list = (ca: string): string => `list ${ca}`;
const administrator = (name: string): string => `administrator ${name}`;
const session = (hash: string): string => `session ${hash}`;
const nothing = (): readonly string[] => [];

/** Operations that are missing here affect everything and run exclusively. */
const KEYS: { readonly [Name in keyof WriteOperations]?: Keys<WriteOperations[Name]> } = {
  insertOtp: ({ id }) => [token(id)],
  admitToken: ({ id }) => [token(id)],
  changeOtp: (id) => [token(id)],
  revokeOtp: (id) => [token(id)],
  recordFailure: (keys) => keys.map(password),
  deleteLockout: (key) => [password(key)],
  reserve: ({ request_id, otp_id, device_key, ca, serial }) => [
    request(request_id),
    token(otp_id),
    deviceOf(device_key),
    serialNumber(ca, serial),
  ],
  claimRequest: ({ request_id, device_key, ca, serial }) => [
    request(request_id),
    deviceOf(device_key),
    serialNumber(ca, serial),
  ],
  recordCertificate: ({ request_id, device_key, ca, serial }, _, succeeded = []) => [
    request(request_id),
    deviceOf(device_key),
    serialNumber(ca, serial),
    ...succeeded.map(password),
  ],
  releaseReservation: (id) => [request(id), concerning(id)],
  importCertificate: ({ ca, serial }) => [serialNumber(ca, serial)],
  revokeCertificate: ({ ca, serial }) => [serialNumber(ca, serial), list(ca)],
  releaseCertificate: ({ ca, serial }) => [serialNumber(ca, serial), list(ca)],
  queueRequest: (row, _, _events, succeeded = []) => [
    request(row.id),
    recognition(row.recognition),
    token(row.otp_id),
    deviceOf(row.device_key),
    ...succeeded.map(password),
  ],
  decideRequest: ({ id }) => [request(id), concerning(id)],
  failRequest: (id) => [request(id), concerning(id)],
  submitRequest: (row) => [request(row.id), recognition(row.recognition), token(row.otp_id), deviceOf(row.device_key)],
  awaitCa: (id, _, _events, succeeded = []) => [request(id), ...succeeded.map(password)],
  withdrawRequest: (id) => [request(id), concerning(id)],
  takePoll: (id) => [request(id)],
  noteMissing: (id) => [request(id)],
  endRequest: (id) => [request(id), concerning(id)],
  claimCmcMessage: ({ key }) => [message(key)],
  concludeCmcMessage: (key) => [message(key)],
  takeCrlNumber: (ca) => [list(ca)],
  saveCrl: ({ ca }) => [list(ca)],
  putDevices: (entries) => entries.map(({ row }) => device(row.id)),
  changeDevice: (id) => [device(id)],
  deleteDevice: (key) => [deviceOf(key)],
  rememberIntermediates: ({ leaf, intermediates }) => [
    `path ${leaf}`,
    ...intermediates.map(({ fingerprint }) => `intermediate ${fingerprint}`),
  ],
  createSession: ({ id_hash, administrator: name }, replaces) => [
    session(id_hash),
    administrator(name),
    ...(replaces === null ? [] : [session(replaces)]),
  ],
  touchSession: (hash) => [session(hash)],
  deleteSession: (hash) => [session(hash)],
  beginNotification: (name) => [`notification ${name}`],
  advanceNotification: (name) => [`notification ${name}`],
  startRenewal: ({ id }) => [`renewal ${id}`],
  endRenewal: (id) => [`renewal ${id}`],
  noteOverdue: (id) => [`renewal ${id}`],
  audit: nothing,
  auditDevice: nothing,
  reopenAuditFile: nothing,
  noteArchived: nothing,
  checkWritable: () => ['probe'],
};

const byName = new Map<string, (...args: never[]) => readonly (string | null)[]>(Object.entries(KEYS));

/** undefined: conflicts with every call. */
export function keysOf({ operation, args }: Call): readonly string[] | undefined {
  return byName
    .get(operation)?.(...args)
    .filter((key) => key !== null);
}

const locked = (names: string): string => `SELECT pg_advisory_xact_lock(key) FROM
  (SELECT DISTINCT hashtextextended(name, 17) AS key FROM ${names} ORDER BY key) AS ordered`;
const LOCK = locked('unnest(@names::text[]) AS name');
const LOCK_WITH_ROWS = locked(`(
    SELECT unnest(@names::text[]) AS name
    UNION ALL SELECT 'token ' || otp_id FROM reservation WHERE request_id = ANY(@requests::text[])
    UNION ALL SELECT 'token ' || otp_id FROM request WHERE id = ANY(@requests::text[])
    UNION ALL SELECT 'device ' || id FROM device WHERE key = ANY(@devices::text[])
      OR key IN (SELECT device_key FROM request WHERE id = ANY(@requests::text[]))
  ) AS named WHERE name IS NOT NULL`);

/** Locks keys until the end of the transaction, all at once in a global order. */
export function lock(db: Queries, names: readonly string[]): Promise<unknown> {
  const requests = after(names, CONCERNING);
  const devices = after(names, DEVICE_KEY);
  return db.all(requests.length + devices.length === 0 ? LOCK : LOCK_WITH_ROWS, { names, requests, devices });
}

const after = (keys: readonly string[], beginning: string): string[] =>
  keys.filter((key) => key.startsWith(beginning)).map((key) => key.slice(beginning.length));
