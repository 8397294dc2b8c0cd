/**
 * What each write could be in another's way with: rows that both read before they write, or write. Calls with a key in common come one after
 * the other, on one server and over all of them.
 */
import type { Call } from '../calls/calls.ts';
import type { WriteOperations } from './operations.ts';

type Keys<Operation> = Operation extends (...args: infer Args) => unknown
  ? (...args: Args) => readonly (string | null)[]
  : never;

const token = (id: string | null): string | null => (id === null ? null : `token ${id}`);
const request = (id: string): string => `request ${id}`;
const recognition = (hash: string): string => `recognition ${hash}`;
const password = (key: string): string => `password ${key}`;
const serialNumber = (ca: string, serial: string | null): string | null =>
  serial === null ? null : `serial ${serial} ${ca}`;
const device = (id: string): string => `device ${id}`;
const message = (key: string): string => `message ${key}`;
const list = (ca: string): string => `list ${ca}`;
const administrator = (name: string): string => `administrator ${name}`;
const session = (hash: string): string => `session ${hash}`;
const nothing = (): readonly string[] => [];

/** Those that are not here (what goes through everything) have the transaction for themselves while they work. */
const KEYS: { readonly [Name in keyof WriteOperations]?: Keys<WriteOperations[Name]> } = {
  insertOtp: ({ id }) => [token(id)],
  changeOtp: (id) => [token(id)],
  revokeOtp: (id) => [token(id)],
  recordFailure: (keys) => keys.map(password),
  deleteLockout: (key) => [password(key)],
  reserve: ({ request_id, otp_id, ca, serial }) => [request(request_id), token(otp_id), serialNumber(ca, serial)],
  claimRequest: ({ request_id, ca, serial }) => [request(request_id), serialNumber(ca, serial)],
  recordCertificate: ({ request_id, ca, serial }, _, succeeded = []) => [
    request(request_id),
    serialNumber(ca, serial),
    ...succeeded.map(password),
  ],
  releaseReservation: (id) => [request(id)],
  importCertificate: ({ ca, serial }) => [serialNumber(ca, serial)],
  revokeCertificate: ({ ca, serial }) => [serialNumber(ca, serial)],
  queueRequest: (row, _, _events, succeeded = []) => [
    request(row.id),
    recognition(row.recognition),
    token(row.otp_id),
    ...succeeded.map(password),
  ],
  decideRequest: ({ id }) => [request(id)],
  failRequest: (id) => [request(id)],
  submitRequest: (row) => [request(row.id), recognition(row.recognition), token(row.otp_id)],
  awaitCa: (id, _, _events, succeeded = []) => [request(id), ...succeeded.map(password)],
  withdrawRequest: (id) => [request(id)],
  takePoll: (id) => [request(id)],
  noteMissing: (id) => [request(id)],
  endRequest: (id) => [request(id)],
  claimCmcMessage: ({ key }) => [message(key)],
  concludeCmcMessage: (key) => [message(key)],
  takeCrlNumber: (ca) => [list(ca)],
  saveCrl: ({ ca }) => [list(ca)],
  putDevices: (entries) => entries.map(({ row }) => device(row.id)),
  changeDevice: (id) => [device(id)],
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
  audit: nothing,
  auditDevice: nothing,
  reopenAuditFile: nothing,
  noteArchived: nothing,
  checkWritable: () => ['probe'],
};

const byName = new Map<string, (...args: never[]) => readonly (string | null)[]>(Object.entries(KEYS));

/** undefined: it is in everybody's way. */
export function keysOf({ operation, args }: Call): readonly string[] | undefined {
  return byName
    .get(operation)?.(...args)
    .filter((key) => key !== null);
}
