/** The pipeline on a separate store, with any sender. */
import { afterAll } from 'vitest';
import type { EstAuthenticator } from '../../src/auth/est-authenticator.ts';
import type { Identity, MtlsIdentity, OtpIdentity } from '../../src/auth/identity.ts';
import { mtlsIdentity as identityOfHolder } from '../../src/auth/mtls/mtls.ts';
import type { RemoteQueue } from '../../src/ca/driver.ts';
import type { Ca } from '../../src/ca/router.ts';
import type { Authorizer } from '../../src/enrollment/authorization/external-authorization.ts';
import type { AuthorizationRules } from '../../src/enrollment/authorized.ts';
import { Enrollment } from '../../src/enrollment/enrollment.ts';
import { KeyGenerator } from '../../src/enrollment/key-generation.ts';
import type { ReceivedByEst } from '../../src/enrollment/request.ts';
import { unauthorized, unavailable } from '../../src/errors.ts';
import { createLogger } from '../../src/log.ts';
import type { Certificate } from '../../src/pki/x509/certificate.ts';
import type { Store } from '../../src/store/store.ts';
import { T0 } from '../store/rows.ts';
import { openedIn } from '../store/support.ts';
import { fileCa } from '../support/file-ca.ts';
import { temporaryFolder } from '../support/openssl.ts';

export const ADDRESS = '192.0.2.1';

/** A store and the CA `devices` for all tests of a file. */
export async function storeWithCa(now?: () => number) {
  const folder = temporaryFolder();
  const store = await openedIn(folder, now);
  afterAll(async () => {
    await store.close();
    folder.remove();
  });
  return { folder, store, devices: await fileCa(folder, 'devices', true) };
}

const unexpected = (): Promise<never> => Promise.reject(new Error('this call was not expected'));

/** The queue of a CA elsewhere, which decides at once. Calls that are not given fail. */
export const remoteQueue = (given: Partial<RemoteQueue> = {}): RemoteQueue => ({
  settled: 1,
  lostAfter: 1,
  issuesAtOnce: () => Promise.resolve(true),
  poll: unexpected,
  find: unexpected,
  verify: unexpected,
  ...given,
});

export interface PipelineOptions {
  readonly store: Store;
  readonly identity: Identity;
  readonly rules?: Partial<AuthorizationRules>;
  /** Milliseconds. */
  readonly retryWindow?: number;
  /** Milliseconds that a repeat waits. */
  readonly maxWait?: number;
  readonly now?: () => number;
  readonly authorization?: Authorizer;
  /** In the place of one that finds `identity` whatever is presented. */
  readonly authenticator?: EstAuthenticator;
  /** Gets warnings and errors, a line each. */
  readonly log?: (line: string) => void;
}

const NOBODY_ASKED: Authorizer = {
  concerns: () => false,
  decide: () => Promise.reject(new Error('nobody is to be asked')),
  failure: () => unavailable('AUTHORIZATION_FAILED', ''),
};

export const RULES: AuthorizationRules = {
  clientIdBinding: 'off',
  popLinking: { challenge_password: 'binding', require_pop_linking: false },
};

/** The pipeline of a server to which one sender comes. */
export function pipeline({
  store,
  identity,
  rules = {},
  retryWindow = 0,
  maxWait = 200,
  now = () => T0 + 1000,
  authorization = NOBODY_ASKED,
  authenticator = anybody(identity),
  log = () => undefined,
}: PipelineOptions): Enrollment {
  return new Enrollment({
    authorization,
    store,
    log: createLogger('warn', { write: log }),
    now,
    instance: 'test',
    authenticator,
    otp: {
      refuseUnusable: () => Promise.reject(unauthorized('OTP_INVALID', 'invalid OTP token', { detail: 'counted' })),
      refuseRepeat: () => Promise.reject(unauthorized('OTP_INVALID', 'invalid OTP token', { detail: 'not counted' })),
      hashSecret: (secret) => Promise.resolve(`hash of ${secret.length} characters`),
    },
    failures: { record: () => Promise.resolve() },
    rules: { ...RULES, ...rules },
    keyGenerator: new KeyGenerator(),
    keyProtection: () => ({
      encryption: 'optional',
      password: undefined,
      symmetricKeys: new Map(),
      certificates: new Map(),
    }),
    retryAfter: 1,
    retryWindow,
    maxWait,
  });
}

function anybody(identity: Identity): EstAuthenticator {
  return {
    authenticate: (_presented, { events }) => {
      events?.push({ type: `auth.${identity.method}`, outcome: 'success', subject: identity.display });
      return Promise.resolve(identity);
    },
  };
}

export function otpIdentity(more: Partial<OtpIdentity> = {}): OtpIdentity {
  return {
    method: 'otp',
    requester: 'otp:1',
    display: 'device-1',
    otp_id: 'otp-1',
    client_id: 'device-1',
    usable: true,
    lockoutKeys: [],
    password: Buffer.alloc(0),
    ...more,
  };
}

/** Of the holder of a certificate; its own issuer, unless one is given. */
export function mtlsIdentity(certificate: Certificate, issuer = certificate): MtlsIdentity {
  return identityOfHolder({ certificate, issuer });
}

/** A request as EST reads one. */
export function received(ca: Ca, body: ReceivedByEst['body'], more: Partial<ReceivedByEst> = {}): ReceivedByEst {
  return {
    requestId: 'request-1',
    operation: 'simpleenroll',
    ca,
    address: ADDRESS,
    linking: { kind: 'connection', binding: () => Buffer.from('binding'), linked: false },
    presented: { peerCertificate: undefined, peerIntermediates: [], authorization: undefined, address: ADDRESS },
    body,
    isGone: () => false,
    ...more,
  };
}
