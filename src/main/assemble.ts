/**
 * The composition root: creates every part of the service and starts nothing. No socket, timer or process exists before
 * lifecycle.ts starts the parts. It is long because the wiring belongs in one place.
 */
import { randomBytes } from 'node:crypto';
import { AdminAuthenticator } from '../auth/admin-authenticator.ts';
import { AdminSessions } from '../auth/admin-sessions.ts';
import { createEstAuthenticator } from '../auth/est-authenticator.ts';
import { FailureRecords } from '../auth/failure-records.ts';
import { createGssapi, type Gssapi } from '../auth/gssapi/gssapi.ts';
import { MtlsPlugin, validatePresented } from '../auth/mtls/mtls.ts';
import { presentedCertificates } from '../auth/mtls/presented-certificates.ts';
import { GuardedAttempts } from '../auth/guarded-attempts.ts';
import { IssuerKeys } from '../auth/jwt/issuer-keys.ts';
import { JwtPlugin } from '../auth/jwt/jwt-plugin.ts';
import { OidcSignIn } from '../auth/oidc/oidc-sign-in.ts';
import { Directory, LdapPlugin } from '../auth/ldap/directory.ts';
import { HashingPool } from '../auth/otp/hashing-pool.ts';
import { OtpPlugin, OtpService } from '../auth/otp/otp-service.ts';
import type { AuthPlugin } from '../auth/plugin.ts';
import { warnOfExpiry, watchExpiry } from '../ca/expiry.ts';
import type { Ca, CaRouter } from '../ca/router.ts';
import { createCmcServer } from '../cmc/server.ts';
import type { Material } from '../config/material/material.ts';
import type { Config } from '../config/schema.ts';
import { shownConfig } from '../config/shown.ts';
import { ExternalAuthorization } from '../enrollment/authorization/external-authorization.ts';
import { Enrollment } from '../enrollment/enrollment.ts';
import { KeyGenerator } from '../enrollment/key-generation.ts';
import { DryRun } from '../enrollment/dry-run.ts';
import { ServerCertificate, serverCertificateFolder } from '../enrollment/server-certificate.ts';
import { sweepRequests } from '../enrollment/sweep-requests.ts';
import { unauthorized } from '../errors.ts';
import { Fleet } from '../fleet/fleet.ts';
import { UseRecorder } from '../fleet/use-recorder.ts';
import { createAdminApp } from '../http/admin/listener.ts';
import { createEstListener, type EstListenerOptions } from '../http/est/listener.ts';
import { createOperations } from '../http/est/operations.ts';
import { OpenRequests } from '../http/admission.ts';
import { createPublication } from '../http/publication/listener.ts';
import type { TicketSecret } from '../http/ticket-secret.ts';
import { TlsEnd } from '../http/tls.ts';
import type { Logger } from '../log.ts';
import type { Metrics } from '../metrics.ts';
import type { MakeMutex } from '../process/fair-limiter.ts';
import { atIntervals } from '../process/turns.ts';
import type { Reload } from '../config/diff.ts';
import type { Warning } from '../config/problem.ts';
import { Notifier } from '../notification/notifier.ts';
import { createReceiver } from '../notification/receivers.ts';
import { Warnings, type WarningsOptions } from '../notification/warnings.ts';
import { CrlPublisher } from '../publication/crl-publisher.ts';
import { REJECTIONS_WRITTEN } from '../rejections.ts';
import type { ServiceState } from '../service-state-metrics.ts';
import { hmacKeyFile, lookupKeyFile, makeLookupKey, MIN_LOOKUP_KEY, readLookupKey } from '../store/lookup-key-file.ts';
import type { Store } from '../store/store.ts';
import { VERSION } from '../version.ts';
import { fleetTasks, isValidClient } from './fleet-tasks.ts';
import { bindAll, Listener, listenerContext, proxies } from './listener.ts';
import { LiveCas } from './live-cas.ts';
import { keySource, LiveSettings, trustedBy } from './live-settings.ts';
import type { NodeClock } from './nodes.ts';
import { requireOne, ServiceWatch } from './service-watch.ts';
import { nodeName } from './open-store.ts';
import { type Part, reporting } from './part.ts';
import { watchExpiries } from './watch-ends.ts';

/** Milliseconds between checks of the server's own certificate, which another node may have renewed. */
const RENEWAL_LOOK = 60_000;
const WARNINGS_LOOK = 5000;
const CHAINS_LOOK = 1000;
/** Callers that may wait for the one that renews it. */
const MAX_RENEWERS = 256;

/** What exists before the parts. */
export interface Foundation {
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly store: Store;
  /** The owner of this process's reservations. */
  readonly instance: string;
  /** For TLS sessions of this process and of nodes that share the secret. */
  readonly ticketSecret: TicketSecret;
  readonly makeMutex: MakeMutex;
  readonly clock: NodeClock;
  /** Whether this node performs the tasks that only one node performs. */
  readonly isOnDuty: () => boolean;
  readonly lastReload: () => ServiceState['lastReload'];
  /** Of files, since the last reload. */
  readonly faults: () => readonly Warning[];
  readonly reload: Reload;
}

/** The parts of the service, created but not started. */
export interface Assembly {
  /** Replaced by a reload. */
  readonly live: LiveSettings;
  readonly cas: LiveCas;
  /** In start order; they stop in reverse. */
  readonly parts: readonly Part[];
}

/**
 * Creates every part from the configuration and the files that it names.
 * @throws EstuaryError for an unusable configuration; nothing needs to be closed then
 */
export async function assemble(config: Config, material: Material, foundation: Foundation): Promise<Assembly> {
  const { log, metrics, store, instance, isOnDuty, makeMutex, clock } = foundation;
  const { now } = clock;
  const common = { store, log, now, instance, isOnDuty };
  const authorization = new ExternalAuthorization({
    log,
    observe: (ca, outcome, seconds) => {
      metrics.countAuthorization(ca, outcome, seconds);
      services.note('authorization', ca, outcome === 'failed' ? 'it did not decide' : undefined);
    },
    retryAfter: config.est.retry_after,
  });
  const requests = new OpenRequests();
  const liveCas = new LiveCas(config, material, {
    authorization,
    context: { now, env: process.env, log, makeMutex, store },
    log,
    onChange: () => {
      crls.casChanged();
      warnOfExpiry({ cas: issuers, log, now });
    },
    endOfWork: () => Promise.all([requests.endOfThese(), crls.idle()]),
  });
  const { router: cas } = liveCas;
  const live = new LiveSettings(cas, ownCertificate(config, cas, foundation));
  const directory =
    config.auth.ldap &&
    new Directory({
      settings: config.auth.ldap,
      ca: () => trustedBy(live.current.named.directory),
      retryAfter: config.est.retry_after,
      now: Date.now,
    });
  const gssapi = config.gssapi.enabled
    ? createGssapi({ config: config.gssapi, environment: process.env, log, directory })
    : undefined;
  const otp = await createOtp(config, store, now);
  const keys = issuerKeys(config, live);
  const services = watchedServices(config, { live, directory, keys });
  const failures = new FailureRecords({ store, log, now, observe: metrics.observe.bind(metrics) });
  const plugins = enabledPlugins(config, { live, gssapi, otp, directory, keys, store });
  const authenticator = createEstAuthenticator({ plugins, store, failures });
  const enrollment = new Enrollment({
    ...common,
    authorization,
    authenticator,
    otp,
    rules: { clientIdBinding: config.otp.bind_client_id, popLinking: config.est },
    keyGenerator: new KeyGenerator(config.serverkeygen.ml_dsa_key),
    keyProtection: () => live.current.keyProtection,
    retryAfter: config.est.retry_after,
    failures,
    retryWindow: config.otp.retry_window * 1000,
    maxWait: config.server.request_timeout * 1000,
  });
  const issuers = (): readonly Ca[] => cas.issuers;
  const crls = new CrlPublisher({
    ...common,
    cas: issuers,
    interval: config.publication.crl_interval,
    afterRevocation: config.publication.crl_after_revocation,
  });
  const cmcServer = createCmcServer(config, {
    ...common,
    cas,
    enrollment,
    otp,
    trust: () => live.current.estTrust,
    parties: () => live.current.cmc,
    crls,
  });

  const dryRun = new DryRun({
    enrollment,
    now,
    otp: config.otp.enabled,
    bindings: { ldap: config.auth.ldap?.bind, jwt: config.auth.jwt?.bind },
    mtls: config.tls.client_auth.mode === 'none' ? undefined : new MtlsPlugin(() => live.clientTrust, store, false),
    gssapi: gssapi?.plugin,
  });
  const adminAuthenticator = new AdminAuthenticator(() => live.current.admin, store, failures, now);
  const sessions = new AdminSessions({
    ...common,
    authenticator: adminAuthenticator,
    times: () => live.current.sessions,
    failures,
  });
  const notifiers = config.notifications.map(
    (receiver) =>
      new Notifier({
        ...common,
        config: receiver,
        receiver: createReceiver(receiver, material.receivers.get(receiver.name)),
        node: nodeName(config),
        observe: metrics.countNotification.bind(metrics),
      }),
  );
  const context = listenerContext(config, log);
  const est = new TlsEnd('est', config, foundation.ticketSecret);
  // The two know of each other: what is seen is written before states are derived.
  const recorder: UseRecorder = new UseRecorder({
    store,
    now,
    reject: (rejections) => fleet.reject(rejections),
    isValid: (certificates) => isValidClient(live, store, certificates, now()),
  });
  const fleet: Fleet = new Fleet({
    ...common,
    cas,
    authorities: () => live.current.cmc.raCertificates,
    forgetExpired: () => live.current.configuration.fleet.forget_expired,
    flush: () => recorder.flush(),
    reports: notifiers.length > 0,
  });
  const operations = createOperations({
    sawRenewalInfo: (ca, serial) => recorder.sawRenewalInfo(ca, serial),
    ...{ authenticator, enrollment, cmcServer, store, now },
    retryAfter: config.est.retry_after,
    serverKeyGen: config.est.serverkeygen,
    currentCrl: (ca, signer) => crls.current(ca, signer),
    csrattrsRequireMtls: config.est.csrattrs_require_mtls,
    fullCmc: config.est.fullcmc,
    fullCmcRequireMtls: config.est.fullcmc_require_mtls,
    cmcParties: () => live.current.cmc,
  });
  const estApp = createEstListener({
    config,
    errors: { negotiate: config.gssapi.enabled, bearer: config.auth.jwt !== undefined },
    forwarding: forwarding(config, live),
    tls: est.options,
    router: cas,
    operations,
    log,
    metrics,
    // A certificate that is renewed authenticates before the new one is issued.
    observe: ({ age, took, ...seen }) =>
      recorder.saw({ ...seen, at: Math.floor(now() - took), connected_at: Math.round(now() - age) }),
  });
  const writeRejections = (): Promise<void> =>
    metrics.rejections.flush(store, now()).catch(reporting(log, 'cannot write the counts of rejected requests'));
  let isStopping = false;
  const admin = new TlsEnd('admin', config, foundation.ticketSecret);
  const adminApp = createAdminApp(
    {
      ...common,
      lastReload: foundation.lastReload,
      faults: foundation.faults,
      clientCrls: () => live.clientCrls(now()),
      services: () => [
        ...services.reports,
        ...notifiers.map(({ name, problem }) => ({
          name: 'notification',
          ca: '',
          problem: problem && `${name}: ${problem}`,
        })),
      ],
      reload: foundation.reload,
      isStopping: () => isStopping,
      certificateExpiries: () => live.current.certificateExpiries,
      ...(gssapi?.missingCredentials && { missingCredentials: gssapi.missingCredentials }),
      otp,
      authenticator: adminAuthenticator,
      sessions,
      configuration: () => shownConfig(live.current.configuration),
      cas,
      est: () => {
        const address = estApp.server.address();
        const port = address === null || typeof address === 'string' ? config.est.port : address.port;
        return { port, certificate: live.current.estTls.certificate };
      },
      issuers: () => [
        ...(live.current.estTrust?.certificates ?? []),
        ...cas.all.flatMap(({ clientIssuers }) => clientIssuers.certificates),
      ],
      crls,
      notifiers,
      fleet,
      dryRun,
      settings: config,
      metrics,
      version: VERSION,
      node: nodeName(config),
      ...(clock.skew && { clockSkew: clock.skew }),
    },
    admin.options,
  );
  const publication = createPublication(config, { router: cas, crls, store, log, metrics, now });
  for (const app of [estApp, adminApp, publication]) if (app !== undefined) requests.follow(app.server);
  live.add({ end: est, server: estApp.server, material: ({ estTls }) => estTls });
  live.add({ end: admin, server: adminApp.server, material: ({ adminTls }) => adminTls });
  const reusePort = config.server.reuse_port;
  const listeners = [
    new Listener('est', { ...config.est, reusePort }, estApp, context, proxies(config)),
    // The admin port shows which node responds.
    new Listener('admin', config.admin, adminApp, context),
    publication && new Listener('publication', { ...config.publication, reusePort }, publication, context),
  ].filter((listener) => listener !== undefined);

  return {
    live,
    cas: liveCas,
    parts: [
      liveCas,
      ...(gssapi === undefined ? [] : [gssapi]),
      // Not earlier: a remote CA reports its certificate on start.
      { start: async () => live.replace(await live.make(config, material)) },
      repeating(() => live.renewTicketKeys()),
      repeating(() =>
        atIntervals(CHAINS_LOOK, () => void live.renewChains().catch(reporting(log, 'cannot use a new chain of a CA'))),
      ),
      { start: () => metrics.start(), stop: () => metrics.close() },
      { stop: writeRejections },
      repeating(() => atIntervals(REJECTIONS_WRITTEN, () => void writeRejections())),
      { stop: () => failures.close() },
      { stop: () => enrollment.close() },
      { stop: () => authorization.close() },
      repeating(() =>
        sweepRequests({
          ...common,
          lifetimes: {
            pending_ttl: config.requests.pending_ttl * 1000,
            retention:
              (config.retention.requests > 0 ? config.retention.requests * 86_400 : config.requests.retention) * 1000,
          },
          lookForUnanswered: () => enrollment.lookForUnanswered(cas.all),
        }),
      ),
      services,
      ...notifiers,
      repeating(() =>
        watchingWarnings(config, { ...common, cas, crls, fleet, clientCrls: () => live.clientCrls(now()) }),
      ),
      repeating(() => watchExpiry({ cas: issuers, log, now })),
      repeating(() => watchExpiries({ ends: () => live.current.certificateExpiries, config, log, now })),
      // Does nothing without `tls.automatic`.
      repeating(() =>
        atIntervals(
          RENEWAL_LOOK,
          () => void live.renewOwn().catch(reporting(log, 'the server certificate has expired')),
        ),
      ),
      ...fleetTasks({ ...common, fleet, recorder }),
      // Not in bind(): the CAs must have started.
      { start: () => (publication === undefined ? undefined : crls.start()), stop: () => crls.stop() },
      listening(listeners, config.server.shutdown_grace * 1000),
      { stop: () => void (isStopping = true) },
    ],
  };
}

/** undefined: the configuration names a certificate file. */
function ownCertificate(
  config: Config,
  cas: CaRouter,
  { store, instance, log, makeMutex, clock }: Foundation,
): ServerCertificate | undefined {
  const { automatic } = config.tls;
  if (automatic === undefined) return undefined;
  return new ServerCertificate({
    ca: () => cas.find(automatic.ca),
    names: automatic.names,
    folder: serverCertificateFolder(config),
    store,
    instance,
    log,
    now: clock.now,
    mutex: makeMutex('tls.automatic', MAX_RENEWERS),
  });
}

function createOtp(
  { otp, est, store: { driver, path } }: Config,
  store: Store,
  now: () => number,
): Promise<OtpService> {
  // The store has checked it. If the key is lost, one-time passwords are off and nothing is looked up.
  const made = driver === 'sqlite' ? readLookupKey(lookupKeyFile(path)) : undefined;
  const lookupKey = otp.lookup_key?.reveal() ?? made ?? randomBytes(MIN_LOOKUP_KEY);
  const { hash_concurrency: concurrency, hash_queue: queue } = otp;
  const pool = new HashingPool({ concurrency, queue, retryAfter: est.retry_after });
  const hmacKey = otp.hmac_key?.reveal() ?? (driver === 'sqlite' ? ownHmacKey(hmacKeyFile(path), otp) : undefined);
  return OtpService.create(store, { ...otp, hmacKey, lookupKey }, pool, now);
}

/** Also read with another algorithm, for tokens that were made before it. */
const ownHmacKey = (file: string, { hash_algorithm, enabled }: Config['otp']): Buffer | undefined =>
  readLookupKey(file) ?? (enabled && hash_algorithm === 'sha256-hmac' ? makeLookupKey(file) : undefined);

const issuerKeys = ({ auth: { jwt }, est }: Config, live: LiveSettings): IssuerKeys | undefined =>
  jwt &&
  new IssuerKeys({ source: keySource(jwt, () => live.current.named), retryAfter: est.retry_after, now: Date.now });

function watchedServices(
  { admin, gssapi }: Config,
  { live, directory, keys }: Pick<PluginSources, 'live' | 'directory' | 'keys'>,
): ServiceWatch {
  const groups = [gssapi.directory?.required_group];
  // Reads the metadata anew.
  const probeProvider = async () => live.current.admin.oidc && new OidcSignIn(live.current.admin.oidc.settings).begin();
  const services = [
    directory && { name: 'ldap', probe: () => directory.probe(groups).then(requireOne) },
    keys && { name: 'jwks', probe: () => keys.probe() },
    admin.oidc && { name: 'oidc', probe: probeProvider },
  ];
  return new ServiceWatch(services.filter((service) => service !== undefined));
}

interface PluginSources {
  readonly live: LiveSettings;
  readonly gssapi: Gssapi | undefined;
  readonly directory: Directory | undefined;
  readonly keys: IssuerKeys | undefined;
  readonly otp: OtpService;
  readonly store: Store;
}

/** The configured methods, by precedence. */
function enabledPlugins(config: Config, sources: PluginSources): AuthPlugin[] {
  const { tls, otp, auth, est } = config;
  const { live, gssapi, directory, keys, store } = sources;
  const { lockout } = sources.otp;
  const retryAfter = est.retry_after;
  const guarded = (method: 'ldap' | 'jwt') =>
    new GuardedAttempts({ method, lockout, tokenLength: otp.token_length, retryAfter });
  const plugins = [
    tls.client_auth.mode === 'none' ? undefined : new MtlsPlugin(() => live.clientTrust, store),
    gssapi?.plugin,
    auth.jwt && keys && new JwtPlugin({ settings: auth.jwt, keys, attempts: guarded('jwt'), store }),
    auth.ldap && directory && new LdapPlugin(directory, guarded('ldap'), auth.ldap.bind),
    otp.enabled ? new OtpPlugin(sources.otp) : undefined,
  ];
  return plugins.filter((plugin) => plugin !== undefined);
}

function forwarding({ est, tls }: Config, live: LiveSettings): EstListenerOptions['forwarding'] {
  if (est.client_certificate_header === undefined) return undefined;
  const { client_address: clientAddress } = est.client_certificate_header;
  return {
    proxies: () => live.current.named.proxies?.certificates ?? [],
    clientAddress,
    now: Date.now,
    check: async (presented) => {
      if (tls.client_auth.mode !== 'required') return;
      const certificates = presentedCertificates(presented);
      if (certificates === undefined) throw unauthorized('CLIENT_CERTIFICATE_REQUIRED', 'client certificate required');
      await validatePresented(live.clientTrust, certificates, Date.now());
    },
  };
}

/** A part that repeats work until the function that `begin` returns is called. */
function repeating(begin: () => () => void): Part {
  let end: (() => void) | undefined;
  return { start: () => void (end = begin()), stop: () => end?.() };
}

/** @param grace milliseconds for requests in flight; connections that are still open then are closed */
function listening(listeners: readonly Listener[], grace: number): Part {
  return {
    bind: () => bindAll(listeners),
    start: () => {
      for (const listener of listeners) listener.open();
    },
    stop: async () => {
      await Promise.all(listeners.map((listener) => listener.close(grace)));
    },
  };
}

/** Records what expires, is overdue or unavailable. A slow check makes the next one later. */
function watchingWarnings(
  { notifications, publication: { enabled } }: Config,
  {
    log,
    isOnDuty,
    ...sources
  }: Pick<WarningsOptions, 'store' | 'cas' | 'crls' | 'fleet' | 'clientCrls' | 'now'> &
    Pick<Foundation, 'log' | 'isOnDuty'>,
): () => void {
  if (notifications.length === 0) return () => undefined;
  const days = [...new Set(notifications.flatMap((notification) => notification.days))];
  const warnings = new Warnings({ ...sources, days, isPublished: enabled });
  let timer: NodeJS.Timeout | undefined = setTimeout(() => void look(), 0);
  const look = async (): Promise<void> => {
    const began = performance.now();
    if (isOnDuty()) await warnings.look().catch(reporting(log, 'warnings could not be recorded'));
    const pause = WARNINGS_LOOK + 20 * (performance.now() - began);
    if (timer !== undefined) timer = setTimeout(() => void look(), pause).unref();
  };
  return () => {
    clearTimeout(timer);
    timer = undefined;
  };
}
