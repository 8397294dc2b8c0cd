/** What `scripts/bench` measures. */
import type { Fleet, HashAlgorithm } from './fleet.ts';
import type { Job } from './load.ts';

export type ServerName = 'Estuary' | 'the floor' | 'libest';

export interface Row {
  /** What `--rows` calls it. */
  readonly id: string;
  readonly name: string;
  readonly hash: HashAlgorithm;
  /** Who can do it; in what order, the rounds take turns. */
  readonly servers: readonly ServerName[];
  /** Whether a crowd of slow clients is on every listener meanwhile. */
  readonly besideSlow?: boolean;
  readonly job: (fleet: Fleet) => Pick<Job, 'operation' | 'clients' | 'connection'>;
}

const renewal =
  (connection: Job['connection']): Row['job'] =>
  ({ devices }) => ({ operation: 'simplereenroll', clients: devices, connection });
const enrolment =
  (connection: Job['connection']): Row['job'] =>
  ({ newcomers }) => ({ operation: 'simpleenroll', clients: newcomers, connection });

export const ROWS: readonly Row[] = [
  {
    id: 'new',
    name: 'new connection, mTLS',
    hash: 'sha256-hmac',
    servers: ['Estuary', 'the floor', 'libest'],
    job: renewal('new'),
  },
  {
    id: 'resumed',
    name: 'resumed session, mTLS',
    hash: 'sha256-hmac',
    servers: ['Estuary', 'the floor'],
    job: renewal('resumed'),
  },
  {
    id: 'kept',
    name: 'kept connection, mTLS',
    hash: 'sha256-hmac',
    // libest closes after each answer.
    servers: ['Estuary', 'the floor'],
    job: renewal('kept'),
  },
  {
    id: 'new-otp',
    name: 'new connection, OTP (sha256-hmac)',
    hash: 'sha256-hmac',
    servers: ['Estuary'],
    job: enrolment('new'),
  },
  {
    id: 'kept-otp',
    name: 'kept connection, OTP (sha256-hmac)',
    hash: 'sha256-hmac',
    servers: ['Estuary'],
    job: enrolment('kept'),
  },
  {
    id: 'new-argon2id',
    name: 'new connection, OTP (argon2id)',
    hash: 'argon2id',
    servers: ['Estuary'],
    job: enrolment('new'),
  },
  {
    id: 'new-slow',
    name: 'new connection, mTLS, beside slow clients',
    hash: 'sha256-hmac',
    servers: ['Estuary'],
    besideSlow: true,
    job: renewal('new'),
  },
  {
    id: 'kept-slow',
    name: 'kept connection, mTLS, beside slow clients',
    hash: 'sha256-hmac',
    servers: ['Estuary'],
    besideSlow: true,
    job: renewal('kept'),
  },
];

/** What is measured unless `--rows` says otherwise. */
export const USUAL_ROWS = ['new', 'resumed', 'kept', 'new-otp', 'kept-otp', 'new-argon2id'];
