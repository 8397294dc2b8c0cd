/** An OTP service on a real store, with an adjustable clock. */
import { HashingPool } from '../../../src/auth/otp/hashing-pool.ts';
import { OtpService, type OtpOrder, type OtpSettings } from '../../../src/auth/otp/otp-service.ts';
import { EstuaryError } from '../../../src/errors.ts';
import type { Store } from '../../../src/store/store.ts';
import { opened, T0, temporaryPaths, type Paths } from '../../store/support.ts';

export const HMAC_KEY = Buffer.alloc(32, 7);

/** The default limits, and hashes as cheap as their libraries allow. */
export const SETTINGS: OtpSettings = {
  hash_algorithm: 'sha256-hmac',
  hmacKey: HMAC_KEY,
  lookupKey: Buffer.alloc(32, 8),
  argon2: { memory_kib: 1024, iterations: 2, parallelism: 1 },
  bcrypt_cost: 4,
  token_length: 20,
  max_failures: 5,
  failure_window: 300,
  lockout_duration: 900,
  lockout_scope: 'address',
};

export class Clock {
  now = T0;
  readonly read = (): number => this.now;

  /** Moves on by seconds. */
  pass(seconds: number): void {
    this.now += seconds * 1000;
  }
}

export interface OtpSetup {
  readonly store: Store;
  readonly service: OtpService;
  readonly clock: Clock;
  readonly paths: Paths;
  readonly pool: HashingPool;
  /** The outcome of one attempt: `ok`, `consumed`, or the error's message. */
  readonly attempt: (password: string, options?: AttemptOptions) => Promise<string>;
  readonly newToken: (order?: Partial<OtpOrder>) => Promise<{ id: string; token: string }>;
}

export interface AttemptOptions {
  readonly address?: string;
  readonly username?: string;
  readonly caLabel?: string;
}

export async function setUpOtp(changes: Partial<OtpSettings> = {}, concurrency = 2, queue = 64): Promise<OtpSetup> {
  const clock = new Clock();
  const paths = temporaryPaths();
  const store = await opened(paths, clock.read);
  const pool = new HashingPool({ concurrency, queue, retryAfter: 7 });
  const service = await OtpService.create(store, { ...SETTINGS, ...changes }, pool, clock.read);
  return { store, service, clock, paths, pool, attempt: attemptOn(service, clock), newToken: tokensOf(service, clock) };
}

export function attemptOn(service: OtpService, clock: Clock): OtpSetup['attempt'] {
  return async (password, { address = '192.0.2.1', username = 'device', caLabel = 'devices' } = {}) => {
    try {
      const attempt = { address, caLabel, now: clock.now };
      const identity = await service.authenticate({ username, password }, attempt);
      if (identity.dead !== undefined) await service.refuseUnusable(identity, attempt);
      return identity.usable ? 'ok' : 'consumed';
    } catch (error) {
      if (!(error instanceof EstuaryError)) throw error;
      return error.message;
    }
  };
}

function tokensOf(service: OtpService, clock: Clock): OtpSetup['newToken'] {
  return async (order = {}) => {
    const { row, token } = await service.create(
      { client_id: 'device-1', max_uses: 1, expires_at: clock.now + 86_400_000, ca: null, ...order },
      [],
    );
    return { id: row.id, token };
  };
}

/** Takes one use of a token, as the enrollment's reservation does. */
export async function takeUse(store: Store, otp_id: string, clock: Clock): Promise<string> {
  const number = Math.random().toString(16).slice(2).padEnd(14, '0');
  return store.reserve(
    {
      request_id: number,
      instance: 'test',
      ca: 'devices',
      label: null,
      serial: null,
      requester: `otp:${otp_id}`,
      operation: 'simpleenroll',
      subject: 'CN=device-1',
      spki_sha256: null,
      device_key: null,
      required_device: null,
      otp_id,
      created_at: clock.now,
    },
    [],
  );
}

export const INVALID = 'invalid OTP token';
export const LOCKED = 'too many failures, locked out';
/** Has a token's form, but is not one. */
export const WRONG = 'Wrong0Wrong0Wrong0Wr';
