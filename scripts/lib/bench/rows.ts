/** What `scripts/bench` measures. */
import type { Fleet, HashAlgorithm } from './fleet.ts';
import type { ConnectionKind, JobClient } from './load.ts';

export type ServerName = 'Estuary' | 'the floor' | 'libest';

export interface Row {
  /** What `--rows` calls it. */
  readonly id: string;
  readonly name: string;
  readonly hash: HashAlgorithm;
  /** Who can do it; in what order, the rounds take turns. */
  readonly servers: readonly ServerName[];
  /** What else is on the server meanwhile: slow clients on every listener, or as many wrong one-time passwords as it will check. */
  readonly beside?: 'slow clients' | 'wrong passwords';
  /** How many a second; or this share of what this row did a second, just before. Absent: as many as the server will. */
  readonly rate?: number | { readonly of: string; readonly share: number };
  readonly clients: (fleet: Fleet) => readonly JobClient[];
}

const renewal =
  (connection: ConnectionKind): Row['clients'] =>
  ({ devices }) =>
    devices.map((client) => ({ ...client, operation: 'simplereenroll', connection }));
const enrollment =
  (connection: ConnectionKind): Row['clients'] =>
  ({ newcomers }) =>
    newcomers.map((client) => ({ ...client, operation: 'simpleenroll', connection }));

const cacerts: Row['clients'] = ({ newcomers }) =>
  newcomers.map(({ csr }) => ({ csr, operation: 'cacerts', connection: 'kept' }));

/** Every kind of client in turn. */
function mixed(fleet: Fleet): readonly JobClient[] {
  const kinds = [renewal('new'), enrollment('new'), renewal('kept'), renewal('resumed')].map((kind) => kind(fleet));
  return fleet.devices.flatMap((_device, index) => kinds[index % kinds.length]?.[index] ?? []);
}

export const ROWS: readonly Row[] = [
  {
    id: 'new',
    name: 'new connection, mTLS',
    hash: 'sha256-hmac',
    servers: ['Estuary', 'the floor', 'libest'],
    clients: renewal('new'),
  },
  {
    id: 'resumed',
    name: 'resumed session, mTLS',
    hash: 'sha256-hmac',
    servers: ['Estuary', 'the floor'],
    clients: renewal('resumed'),
  },
  {
    id: 'kept',
    name: 'kept connection, mTLS',
    hash: 'sha256-hmac',
    // libest closes after each answer.
    servers: ['Estuary', 'the floor'],
    clients: renewal('kept'),
  },
  {
    id: 'new-otp',
    name: 'new connection, OTP (sha256-hmac)',
    hash: 'sha256-hmac',
    servers: ['Estuary'],
    clients: enrollment('new'),
  },
  {
    id: 'kept-otp',
    name: 'kept connection, OTP (sha256-hmac)',
    hash: 'sha256-hmac',
    servers: ['Estuary'],
    clients: enrollment('kept'),
  },
  {
    id: 'new-argon2id',
    name: 'new connection, OTP (argon2id)',
    hash: 'argon2id',
    servers: ['Estuary'],
    clients: enrollment('new'),
  },
  {
    id: 'new-slow',
    name: 'new connection, mTLS, beside slow clients',
    hash: 'sha256-hmac',
    servers: ['Estuary'],
    beside: 'slow clients',
    clients: renewal('new'),
  },
  {
    id: 'kept-slow',
    name: 'kept connection, mTLS, beside slow clients',
    hash: 'sha256-hmac',
    servers: ['Estuary'],
    beside: 'slow clients',
    clients: renewal('kept'),
  },
  {
    id: 'mixed',
    name: 'new, resumed and kept connections, mTLS and OTP (sha256-hmac)',
    hash: 'sha256-hmac',
    servers: ['Estuary'],
    clients: mixed,
  },
  {
    id: 'mixed-half',
    name: 'the same at half the rate',
    hash: 'sha256-hmac',
    servers: ['Estuary'],
    rate: { of: 'mixed', share: 0.5 },
    clients: mixed,
  },
  {
    id: 'cacerts',
    name: 'cacerts, kept connection, 100 a second',
    hash: 'argon2id',
    servers: ['Estuary'],
    rate: 100,
    clients: cacerts,
  },
  {
    id: 'cacerts-flood',
    name: 'the same beside wrong passwords (argon2id)',
    hash: 'argon2id',
    servers: ['Estuary'],
    rate: 100,
    beside: 'wrong passwords',
    clients: cacerts,
  },
];

/** What is measured unless `--rows` says otherwise. */
export const USUAL_ROWS = ['new', 'resumed', 'kept', 'new-otp', 'kept-otp', 'new-argon2id'];
