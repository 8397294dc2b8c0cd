/** The admin API over a real store, for tests that call it with `inject` or over TLS. */
import { createHash, randomBytes } from 'node:crypto';
import type { ServerOptions } from 'node:https';
import { onTestFinished } from 'vitest';
import { fleetOf } from '../../support/fleet.ts';
import type { AdminApp, AdminDependencies, AdminSettings } from '../../../src/http/admin/dependencies.ts';
import { prepareAt, type CaDriver, type HealthReport } from '../../../src/ca/driver.ts';
import { AdminSessions } from '../../../src/auth/admin-sessions.ts';
import { AdminAuthenticator, type AdminAuthSettings } from '../../../src/auth/admin-authenticator.ts';
import { HashingPool } from '../../../src/auth/otp/hashing-pool.ts';
import { OtpService, type OtpSettings } from '../../../src/auth/otp/otp-service.ts';
import { Ca, CaRouter } from '../../../src/ca/router.ts';
import { createLogger } from '../../../src/log.ts';
import { createAdminApp } from '../../../src/http/admin/listener.ts';
import type { ShownKey } from '../../../src/config/shown.ts';
import type { Reload } from '../../../src/config/diff.ts';
import { Metrics } from '../../../src/metrics.ts';
import { parseCertificate, pemOf, type Certificate } from '../../../src/pki/x509/certificate.ts';
import { formatGeneralName, type GeneralName } from '../../../src/pki/x509/general-name.ts';
import { formatName, parseDistinguishedName } from '../../../src/pki/x509/name.ts';
import { CrlPublisher } from '../../../src/publication/crl-publisher.ts';
import type { CertificateRow } from '../../../src/store/certificate-store.ts';
import type { Store, StoreOptions } from '../../../src/store/store.ts';
import { openStore } from '../../../src/store/sqlite/open.ts';
import { certificateRow, putEmptyDatabase, reservation } from '../../store/support.ts';
import { keyPair, spkiDer } from '../../support/keys.ts';
import { dns, makeCertificate, subjectAltName } from '../../support/certificates.ts';
import { fileCaConfig } from '../../support/file-ca.ts';
import type { Answered, BodyOf } from './typed.ts';
import { failureRecords } from '../../support/failure-records.ts';
import { temporaryFolder } from '../../support/openssl.ts';

export { fileCa } from '../../support/file-ca.ts';

export const TOKEN = 'an-admin-token-of-the-tests';
/** What the fixture's clock says until a test moves it. */
export const NOW = Date.UTC(2026, 10, 21, 12);
export const DAY = 86_400_000;

const BEARER_ONLY: AdminAuthSettings = {
  mode: 'none',
  trust: undefined,
  bearer_token: {
    enabled: true,
    tokens: [
      { token_hash: `sha256:${createHash('sha256').update('another').digest('hex')}`, description: 'somebody else' },
      { token_hash: `sha256:${createHash('sha256').update(TOKEN).digest('hex')}`, description: 'test admin' },
    ],
  },
};

/** A hash that costs nothing; what argon2id costs is not the admin API's matter. */
const OTP_SETTINGS: OtpSettings = {
  hash_algorithm: 'sha256-hmac',
  lookupKey: Buffer.alloc(32, 8),
  hmacKey: randomBytes(32),
  argon2: { memory_kib: 7168, iterations: 1, parallelism: 1 },
  bcrypt_cost: 10,
  token_length: 20,
  max_failures: 5,
  failure_window: 300,
  lockout_duration: 900,
  lockout_scope: 'address',
};

export interface AdminFixture {
  readonly app: AdminApp;
  readonly store: Store;
  /** Everything logged, as JSON lines. */
  readonly logged: () => string;
  /** Moves the clock on by milliseconds. */
  readonly advance: (ms: number) => void;
  /** A call with the admin token; its answer has the type that the description gives it. */
  readonly call: <M extends string, U extends string>(
    method: M,
    url: U,
    body?: unknown,
  ) => Promise<Answered<BodyOf<M, U>>>;
  /** A call as it is told. */
  readonly raw: <M extends string, U extends string>(
    method: M,
    url: U,
    headers?: Record<string, string>,
    payload?: string,
  ) => Promise<Answered<BodyOf<M, U>>>;
}

export interface FixtureOptions {
  readonly cas?: readonly Ca[];
  readonly settings?: { readonly [section in keyof AdminSettings]?: Partial<AdminSettings[section]> };
  /** Puts something between the admin API and the store. */
  readonly wrapStore?: (store: Store) => Store;
  readonly tls?: ServerOptions;
  readonly dryRun?: Partial<AdminDependencies['dryRun']>;
  readonly configuration?: readonly ShownKey[];
  /** Everything is in order unless told. */
  readonly lastReload?: ReturnType<AdminDependencies['lastReload']>;
  /** Trust anchors and issuer certificates of clients; none unless given. */
  readonly issuers?: readonly Certificate[];
  /** What differs from one bearer token and no client certificates; a function is asked anew for each call, as after a reload. */
  readonly auth?: Partial<AdminAuthSettings> | (() => Partial<AdminAuthSettings>);
  /** Receives committed events, see {@link openStore}. */
  readonly onCommit?: StoreOptions['onCommit'];
  /** What a reload comes to; none works unless told. */
  readonly reload?: Reload;
  /** Why Kerberos tickets cannot be verified; nobody verifies any unless told. */
  readonly missingCredentials?: () => Promise<string | undefined>;
  /** Adds routes. */
  readonly addRoutes?: (app: AdminApp) => void;
  readonly notifiers?: AdminDependencies['notifiers'];
  /** Where the console is built. */
  readonly consoleFolder?: string;
  /** What the clock says at first, milliseconds; {@link NOW} unless told. */
  readonly start?: number;
  /** Takes what has to be run at the end; the end of the test unless told. */
  readonly onEnd?: (cleanUp: () => Promise<void>) => void;
}

/** Of the EST listener, PEM. */
const serverCertificate = makeCertificate({
  subject: 'CN=est',
  extensions: [subjectAltName(dns('est.example'))],
}).then(({ der }) => pemOf([parseCertificate(der)]));

/** An admin app with one administrator, whose bearer token is {@link TOKEN}; closed when the test ends, or as `onEnd` says. */
export async function adminFixture(options: FixtureOptions = {}): Promise<AdminFixture> {
  let time = options.start ?? NOW;
  const now = () => time;
  const folder = temporaryFolder();
  const path = folder.file('est.db');
  putEmptyDatabase(path);
  const store = await openStore({
    node: 'node-1',
    path,
    auditFile: folder.file('audit.log'),
    now,
    onCommit: options.onCommit ?? (() => undefined),
  });
  const lines: string[] = [];
  const used = options.wrapStore?.(store) ?? store;
  const settings = (): AdminAuthSettings => ({
    ...BEARER_ONLY,
    ...(typeof options.auth === 'function' ? options.auth() : options.auth),
  });
  const failures = failureRecords(used, now);
  const authenticator = new AdminAuthenticator(settings, used, failures, now);
  const log = createLogger('debug', { write: (line) => void lines.push(line) });
  const certificate = await serverCertificate;
  const cas = new CaRouter(options.cas ?? [ailingCa('devices', () => Promise.resolve({ health: 'ok' }), [], true)]);
  const fleet = fleetOf(used, now, { cas });
  const deps: AdminDependencies = {
    store: used,
    otp: await OtpService.create(used, OTP_SETTINGS, new HashingPool({ concurrency: 1, queue: 1, retryAfter: 1 }), now),
    authenticator,
    sessions: new AdminSessions({
      store: used,
      authenticator,
      times: () => ({ idle_timeout: 900, lifetime: 28_800 }),
      failures,
      now,
      log,
    }),
    configuration: () => options.configuration ?? [],
    eventTimes: { lookEvery: 20, beatEvery: 100 },
    notifiers: options.notifiers ?? [],
    crls: new CrlPublisher({ store: used, cas: () => options.cas ?? [], interval: 3600, log, now }),
    dryRun: {
      run: () => Promise.reject(new Error('nothing to ask')),
      queued: () => Promise.reject(new Error('nothing to ask')),
      ...options.dryRun,
    },
    cas,
    fleet,
    settings: {
      server: {
        body_limit: 65_536,
        headers_timeout: 10,
        request_timeout: 30,
        keep_alive_timeout: 30,
        ...options.settings?.server,
      },
      est: { retry_after: 30 },
      limits: { ...options.settings?.limits },
      otp: { enabled: true, max_uses: 1, default_ttl: 86_400, ...options.settings?.otp },
      admin: { public_metrics: false, console: false, ...options.settings?.admin },
      publication: { enabled: false, ...options.settings?.publication },
      tls: { client_auth: { mode: 'optional' } },
    },
    est: () => ({ port: 9443, certificate }),
    issuers: () => options.issuers ?? [],
    metrics: new Metrics(),
    certificateExpiries: () => [],
    ...(options.missingCredentials && { missingCredentials: options.missingCredentials }),
    reload: options.reload ?? (() => Promise.resolve({ ok: false, reason: 'nothing to reload' })),
    ...(options.consoleFolder !== undefined && { consoleFolder: options.consoleFolder }),
    faults: () => [],
    clientCrls: () => [],
    services: () => [],
    lastReload: () => options.lastReload,
    version: '0.0.0-test',
    node: 'node-1',
    now,
    log,
  };
  const app = createAdminApp(deps, options.tls);
  if (options.addRoutes !== undefined) app.after(() => options.addRoutes?.(app));
  (options.onEnd ?? onTestFinished)(async () => {
    await app.close();
    await store.close();
    folder.remove();
  });
  await app.ready();
  const raw: AdminFixture['raw'] = async (method, url, headers = {}, payload) => {
    const request = { method: method as 'GET', url, headers, ...(payload === undefined ? {} : { payload }) };
    if (method !== 'GET' || !url.startsWith('/admin/events')) return app.inject(request);
    // It never ends.
    const response = await app.inject({ ...request, payloadAsStream: true });
    const isStream = response.statusCode === 200;
    response.stream().destroy();
    return isStream ? response : app.inject(request);
  };
  return {
    app,
    store,
    logged: () => lines.join('\n'),
    advance: (ms) => void (time += ms),
    raw,
    call: (method, url, body) =>
      body === undefined
        ? raw(method, url, bearer)
        : raw(method, url, { ...bearer, 'content-type': 'application/json' }, JSON.stringify(body)),
  };
}

export const bearer = { authorization: `Bearer ${TOKEN}` };

/** What every failure has to look like. */
export function failure(response: Pick<Answered<unknown>, 'statusCode' | 'headers' | 'body' | 'json'>): {
  statusCode: number;
  code: string;
  message: string;
} {
  const body: unknown = response.json();
  if (typeof body !== 'object' || body === null) throw new Error(`not an error body: ${response.body}`);
  const { statusCode, error, code, message, ...rest } = body as Record<string, unknown>;
  if (Object.keys(rest).length > 0) throw new Error(`more than an error has: ${response.body}`);
  if (typeof statusCode !== 'number' || typeof error !== 'string') throw new Error(`not an error: ${response.body}`);
  if (typeof code !== 'string' || typeof message !== 'string') throw new Error(`not an error: ${response.body}`);
  if (!/^application\/json/.test(String(response.headers['content-type']))) throw new Error('not application/json');
  if (statusCode !== response.statusCode) throw new Error(`${statusCode} in a ${response.statusCode}`);
  return { statusCode, code, message };
}

/** Lets a CA issue a certificate and records it as an enrollment does. */
export async function issueFrom(
  ca: Ca,
  store: Store,
  subject: string,
  sans: readonly GeneralName[] = [],
  more: Partial<CertificateRow> = {},
): Promise<CertificateRow> {
  const request_id = randomBytes(8).toString('hex');
  const name = parseDistinguishedName(subject);
  const spki = spkiDer(keyPair('ec:P-256', 'subject'));
  const prepared = await prepareAt(ca.driver, {
    request_id,
    subject: name,
    subjectAltNames: sans,
    spki,
    csr: undefined,
  });
  const intent = reservation({ request_id, ca: ca.label, serial: prepared.serial, subject, created_at: Date.now() });
  await store.reserve(intent, []);
  const issued = await prepared.issue();
  if (issued.status !== 'issued') throw new Error(issued.status);
  const certificate = parseCertificate(issued.certificate);
  const row = certificateRow(intent, {
    subject: formatName(certificate.subject),
    sans: certificate.subjectAltNames.map(formatGeneralName),
    not_before: certificate.notBefore.getTime(),
    not_after: certificate.notAfter.getTime(),
    der: issued.certificate,
    fingerprint_sha256: certificate.fingerprint,
    requester: 'otp:1',
    ...more,
  });
  await store.recordCertificate(row, []);
  return row;
}

/** A CA whose driver only has a chain and a state of health; for what a real CA cannot be made to do. */
export function ailingCa(
  label: string,
  health: () => Promise<HealthReport>,
  chain: readonly Buffer[] = [],
  isDefault = false,
  revoke?: CaDriver['revoke'],
): Ca {
  const no = () => Promise.reject(new Error('this CA has its health only'));
  const close = () => Promise.resolve();
  const driver: CaDriver = { chain: () => chain, health, issue: no, revoke: revoke ?? no, close };
  return new Ca(fileCaConfig(label, isDefault, { certificate: '', chain: '', key: '' }), driver);
}
