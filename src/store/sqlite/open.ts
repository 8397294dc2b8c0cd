import type { AuditEvent } from '../../audit/event.ts';
import type { CertificateRow } from '../certificate-store.ts';
import type { CmcClaim, CmcMessage } from '../cmc-store.ts';
import type { CrlRow } from '../crl-store.ts';
import type { PresentedIntermediate } from '../intermediate-store.ts';
import type { Page } from '../page.ts';
import type { RequestRow } from '../request-store.ts';
import type { Store } from '../store.ts';
import type { ReadOperations, WriteOperations } from './operations.ts';
import type { Outcome } from './outcome.ts';
import { StoreThread } from './thread.ts';
import type { LookupKeyOptions } from './token-lookups.ts';

export interface StoreOptions {
  /** The database; its folder is created where missing. */
  readonly path: string;
  /** The audit file; likewise. */
  readonly auditFile: string;
  /** The key of the tokens' lookups; one made beside the database unless it says otherwise. */
  readonly lookupKey?: LookupKeyOptions;
  /** Milliseconds since the epoch; `Date.now` unless a test says otherwise. */
  readonly now?: () => number;
  /** Told of the events that came with a certificate, a failed password or no other change, once they are committed. */
  readonly onCommit?: (events: readonly AuditEvent[]) => void;
}

type Value<T> = T extends Outcome<infer V> ? V : never;

/**
 * Opens the SQLite store: creates or migrates the database, reconciles the audit file with it, and starts the threads.
 *
 * @throws {EstuaryError} what keeps it from working, e.g. `STORE_UNAVAILABLE`, `STORE_TOO_NEW`, `STORE_FOREIGN`,
 *   `AUDIT_UNAVAILABLE`, `AUDIT_TAMPERED`, `LOOKUP_KEY_MISSING`; the detail is for the operator
 */
export async function openStore(options: StoreOptions): Promise<Store> {
  const { path, auditFile, now = Date.now } = options;
  const { lookupKey = { configured: undefined, required: true } } = options;
  const common = { path, audit_file: auditFile, lookup_key: lookupKey };
  const writer = new StoreThread({ ...common, role: 'writer' }, now);
  const reader = new StoreThread({ ...common, role: 'reader' }, now);
  // The writer first: it makes the database that the reader opens.
  await writer.start();
  try {
    await reader.start();
  } catch (error) {
    await writer.close();
    throw error;
  }
  return new SqliteStore(writer, reader, now, options.onCommit ?? (() => undefined));
}

/** The {@link Store} in front of a writing and a reading thread. */
class SqliteStore implements Store {
  readonly #writer: StoreThread;
  readonly #reader: StoreThread;
  readonly #now: () => number;
  readonly #onCommit: (events: readonly AuditEvent[]) => void;

  constructor(
    writer: StoreThread,
    reader: StoreThread,
    now: () => number,
    onCommit: (events: readonly AuditEvent[]) => void,
  ) {
    this.#writer = writer;
    this.#reader = reader;
    this.#now = now;
    this.#onCommit = onCommit;
  }

  insertOtp: Store['insertOtp'] = (row, events) => this.#write('insertOtp', row, events);
  findOtp: Store['findOtp'] = (lookup, former) => this.#read('findOtp', lookup, former);
  getOtp: Store['getOtp'] = (id) => this.#read('getOtp', id);
  listOtps: Store['listOtps'] = (page) => this.#read('listOtps', page);
  revokeOtp: Store['revokeOtp'] = (id, now, events) => this.#write('revokeOtp', id, now, events);

  lockedUntil: Store['lockedUntil'] = (keys, now) => this.#read('lockedUntil', keys, now);
  recordFailure: Store['recordFailure'] = async (keys, policy, now, events) => {
    await this.#write('recordFailure', keys, policy, now, events);
    this.#onCommit(events);
  };
  listLockouts: Store['listLockouts'] = (page, now) => this.#read('listLockouts', page, now);
  deleteLockout: Store['deleteLockout'] = (key, events) => this.#write('deleteLockout', key, events);

  reserve: Store['reserve'] = (reservation, events) => this.#write('reserve', reservation, events);
  claimRequest: Store['claimRequest'] = (reservation, events) => this.#write('claimRequest', reservation, events);
  releaseReservation: Store['releaseReservation'] = (request_id, events) =>
    this.#write('releaseReservation', request_id, events);
  openReservations: Store['openReservations'] = (instance) => this.#read('openReservations', instance);

  async recordCertificate(...args: Parameters<Store['recordCertificate']>): Promise<void> {
    const [row, events, succeeded] = args;
    // A copy of its own: the clone of a slice would carry the whole memory block it lies in.
    await this.#write('recordCertificate', { ...row, der: copyOf(row.der) }, events, succeeded);
    this.#onCommit(events);
  }

  async getCertificates(serial: string, ca?: string): Promise<readonly CertificateRow[]> {
    return (await this.#read('getCertificates', serial, ca)).map(withBuffer);
  }

  async findCertificateByFingerprint(fingerprint_sha256: string): Promise<CertificateRow | undefined> {
    const row = await this.#read('findCertificateByFingerprint', fingerprint_sha256);
    return row === undefined ? undefined : withBuffer(row);
  }

  async findCertificateByRequest(request_id: string): Promise<CertificateRow | undefined> {
    const row = await this.#read('findCertificateByRequest', request_id);
    return row === undefined ? undefined : withBuffer(row);
  }

  async findCertificatesByKey(key_identifier: string): Promise<readonly CertificateRow[]> {
    return (await this.#read('findCertificatesByKey', key_identifier)).map(withBuffer);
  }

  async listCertificates(...args: Parameters<Store['listCertificates']>): Promise<Page<CertificateRow>> {
    const page = await this.#read('listCertificates', ...args);
    return { ...page, items: page.items.map(withBuffer) };
  }

  revokeCertificate: Store['revokeCertificate'] = (revocation, events) =>
    this.#write('revokeCertificate', revocation, events);

  crlNumber: Store['crlNumber'] = (ca) => this.#read('crlNumber', ca);
  listRevoked: Store['listRevoked'] = (filter) => this.#read('listRevoked', filter);
  takeCrlNumber: Store['takeCrlNumber'] = (ca) => this.#write('takeCrlNumber', ca);
  saveCrl: Store['saveCrl'] = (row, events) => this.#write('saveCrl', { ...row, der: copyOf(row.der) }, events);

  async recallIntermediates(leaf: string): Promise<readonly PresentedIntermediate[]> {
    return (await this.#read('recallIntermediates', leaf)).map(withBuffer);
  }

  rememberIntermediates: Store['rememberIntermediates'] = ({ leaf, intermediates }, now) => {
    const copies = intermediates.map(({ fingerprint, der }) => ({ fingerprint, der: copyOf(der) }));
    return this.#write('rememberIntermediates', { leaf, intermediates: copies }, now);
  };

  async getCrl(ca: string): Promise<CrlRow | undefined> {
    const row = await this.#read('getCrl', ca);
    return row === undefined ? undefined : withBuffer(row);
  }

  audit: Store['audit'] = async (events) => {
    await this.#write('audit', events);
    this.#onCommit(events);
  };

  async queueRequest(...args: Parameters<Store['queueRequest']>): ReturnType<Store['queueRequest']> {
    const [row, ...more] = args;
    const result = await this.#write('queueRequest', { ...row, csr: copyOf(row.csr) }, ...more);
    return typeof result === 'string' ? result : withCsr(result);
  }

  async findRequest(recognition: string): Promise<RequestRow | undefined> {
    const row = await this.#read('findRequest', recognition);
    return row === undefined ? undefined : withCsr(row);
  }

  async getRequest(id: string): Promise<RequestRow | undefined> {
    const row = await this.#read('getRequest', id);
    return row === undefined ? undefined : withCsr(row);
  }

  async listRequests(...args: Parameters<Store['listRequests']>): Promise<Page<RequestRow>> {
    const page = await this.#read('listRequests', ...args);
    return { ...page, items: page.items.map(withCsr) };
  }

  decideRequest: Store['decideRequest'] = (decision, events) => this.#write('decideRequest', decision, events);
  async submitRequest(...args: Parameters<Store['submitRequest']>): ReturnType<Store['submitRequest']> {
    const [row, ...more] = args;
    const result = await this.#write('submitRequest', { ...row, csr: copyOf(row.csr) }, ...more);
    return typeof result === 'string' ? result : withCsr(result);
  }

  awaitCa: Store['awaitCa'] = (...args) => this.#write('awaitCa', ...args);
  withdrawRequest: Store['withdrawRequest'] = (...args) => this.#write('withdrawRequest', ...args);
  takePoll: Store['takePoll'] = (...args) => this.#write('takePoll', ...args);
  noteMissing: Store['noteMissing'] = (...args) => this.#write('noteMissing', ...args);
  endRequest: Store['endRequest'] = (...args) => this.#write('endRequest', ...args);

  async listUnanswered(before: number, limit: number): Promise<readonly RequestRow[]> {
    return (await this.#read('listUnanswered', before, limit)).map(withCsr);
  }

  failRequest: Store['failRequest'] = (...args) => this.#write('failRequest', ...args);
  expireRequests: Store['expireRequests'] = (lifetimes, now) => this.#write('expireRequests', lifetimes, now);

  async claimCmcMessage(message: CmcMessage): Promise<CmcClaim> {
    const claim = await this.#write('claimCmcMessage', message);
    return claim.state === 'answered' ? { ...claim, answer: withBuffer(claim.answer) } : claim;
  }

  concludeCmcMessage: Store['concludeCmcMessage'] = (key, instance, { nonce, answer }) =>
    this.#write('concludeCmcMessage', key, instance, {
      nonce: nonce && copyOf(nonce),
      answer: answer && { ...answer, der: copyOf(answer.der) },
    });
  releaseCmcMessages: Store['releaseCmcMessages'] = (instance) => this.#write('releaseCmcMessages', instance);
  isCmcNonce: Store['isCmcNonce'] = (transaction_key, nonce) =>
    this.#read('isCmcNonce', transaction_key, copyOf(nonce));
  purgeCmcMessages: Store['purgeCmcMessages'] = (before) => this.#write('purgeCmcMessages', before);

  listAudit: Store['listAudit'] = (filter) => this.#read('listAudit', filter);
  reopenAuditFile: Store['reopenAuditFile'] = () => this.#write('reopenAuditFile');

  async checkWritable(): Promise<void> {
    await this.#write('checkWritable', this.#now());
  }

  async close(): Promise<void> {
    await this.#reader.close();
    await this.#writer.close();
  }

  #write<Name extends keyof WriteOperations>(
    name: Name,
    ...args: Parameters<WriteOperations[Name]>
  ): Promise<Value<ReturnType<WriteOperations[Name]>>> {
    return this.#writer.call(name, args);
  }

  #read<Name extends keyof ReadOperations>(
    name: Name,
    ...args: Parameters<ReadOperations[Name]>
  ): Promise<ReturnType<ReadOperations[Name]>> {
    return this.#reader.call(name, args);
  }
}

function copyOf(bytes: Buffer): Buffer {
  const copy = Buffer.allocUnsafeSlow(bytes.length);
  copy.set(bytes);
  return copy;
}

function withBuffer<Row extends { readonly der: Buffer }>(row: Row): Row {
  return { ...row, der: asBuffer(row.der) };
}

function withCsr(row: RequestRow): RequestRow {
  return { ...row, csr: asBuffer(row.csr) };
}

/** A BLOB arrives from the thread as a Uint8Array. */
function asBuffer({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}
