/** The composition root: makes every part from a `Config`; owns start, reload and stop. */
import { randomBytes, randomUUID } from 'node:crypto';
import type { Server } from 'node:https';
import { hostname } from 'node:os';
import { createSecureContext } from 'node:tls';
import { AdminAuthenticator } from '../auth/admin-authenticator.ts';
import { createEstAuthenticator, type EstAuthenticator } from '../auth/est-authenticator.ts';
import { FailureRecords } from '../auth/failure-records.ts';
import { startGssapi } from '../auth/gssapi/gssapi.ts';
import type { Gssapi } from '../auth/gssapi/gssapi.ts';
import { MtlsPlugin } from '../auth/mtls/mtls-plugin.ts';
import { OtpPlugin } from '../auth/otp/otp-plugin.ts';
import { HashingPool } from '../auth/otp/hashing-pool.ts';
import { OtpService } from '../auth/otp/otp-service.ts';
import type { AuthPlugin } from '../auth/plugin.ts';
import { createRouter } from '../ca/create-router.ts';
import { watchExpiry } from '../ca/expiry.ts';
import type { CaRouter } from '../ca/router.ts';
import { createCmcServer } from '../cmc/create.ts';
import type { CmcServer } from '../cmc/server.ts';
import type { Warning } from '../config/problem.ts';
import type { Config } from '../config/schema.ts';
import { Enrollment } from '../enrollment/enrollment.ts';
import { KeyGenerator } from '../enrollment/key-generation.ts';
import { reconcile } from '../enrollment/reconcile.ts';
import { sweepRequests } from '../enrollment/sweep-requests.ts';
import { createOperations } from '../http/est/operations.ts';
import type { ServiceCondition } from '../http/admin/dependencies.ts';
import { createAdminApp } from '../http/admin/listener.ts';
import { createEstListener } from '../http/est/listener.ts';
import { affordable, openFileLimit } from '../http/open-files.ts';
import { acceptPartialChains, secureContext, tlsOptions, type TlsListener } from '../http/tls.ts';
import { Listener, type ListenerContext } from './listener.ts';
import { loadLiveState, type LiveState } from './live-state.ts';
import { Semaphore, type MakeMutex } from '../process/semaphore.ts';
import { createLogger, type Logger } from '../log.ts';
import { Metrics } from '../metrics.ts';
import { CrlPublisher } from '../publication/crl-publisher.ts';
import { createPublication } from '../http/publication/create.ts';
import { lookupKeyFile, readLookupKey } from '../store/lookup-key-file.ts';
import { MIN_LOOKUP_KEY } from '../store/token-lookup.ts';
import { openStore } from '../store/sqlite/open.ts';
import { lockStore, shareStoreLock, type ServiceLock } from '../store/sqlite/service-lock.ts';
import type { Store } from '../store/store.ts';
import { Reloads, type Prepared } from './reloads.ts';
import type { RunningService } from './running-service.ts';
import type { WorkerConnections } from './shared-connections.ts';
import { superviseWorkers, workerCount } from './supervisor.ts';
import { SupervisorLink } from './worker-channel.ts';
import { VERSION } from '../version.ts';

export interface ServiceOptions {
  readonly config: Config;
  /** For SIGHUP, which reads it again. */
  readonly configFile: string;
  readonly warnings: readonly Warning[];
}

/**
 * Starts everything; resolves when the listeners answer.
 *
 * @throws whatever keeps it from starting; nothing stays open then
 */
export async function startService(options: ServiceOptions): Promise<RunningService> {
  // Before anything else: a start on a store in use changes nothing.
  return holding(await lockStore(options.config.store.path), () => startLocked(options));
}

async function startLocked({ config, configFile, warnings }: ServiceOptions): Promise<RunningService> {
  const base = await openBase(config);
  const { log, store } = base;
  try {
    for (const { key, message } of warnings) log.warn({ key }, message);
    await reconcile(store, log);
    await store.audit([{ type: 'service.start', outcome: 'success', detail: `version ${VERSION}` }]);
    return workerCount(config) > 1
      ? await superviseWorkers({ config, configFile, store, log })
      : await startAlone(config, configFile, base);
  } catch (error) {
    await store.close();
    throw error;
  }
}

/** One process that is the whole service. */
async function startAlone(config: Config, configFile: string, base: Base): Promise<RunningService> {
  const { log, store } = base;
  const reloads = new Reloads({ config, configFile, store, log, prepare: (next) => service.prepare(next) });
  const service = await startListeners(config, {
    ...base,
    instance: randomUUID(),
    makeMutex: (_name, queueLimit) => new Semaphore(1, queueLimit),
    condition: () => ({ workersDown: [], reloadFailed: reloads.failed }),
  });
  return {
    reload: () => reloads.reload(),
    async stop() {
      await service.stop();
      await store.audit([{ type: 'service.stop', outcome: 'success' }]);
      await store.close();
    },
  };
}

/**
 * One worker of a supervised service: with the configuration that its supervisor has in force, whatever the file says.
 *
 * @throws as {@link startService}
 */
export async function startWorker(): Promise<RunningService> {
  const link = new SupervisorLink();
  const { inForce: config, instance, ticketSecret } = await link.share();
  return holding(shareStoreLock(config.store.path), async () => {
    const base = await openBase(config, new Metrics((own) => link.shareMetrics(own)));
    try {
      const service = await startListeners(config, {
        ...base,
        instance,
        ticketSecret: Buffer.from(ticketSecret, 'hex'),
        connections: link.connections,
        makeMutex: (name, queueLimit) => link.mutexes.of(name, queueLimit),
        condition: () => link.condition,
      });
      link.listens((next) => service.prepare(next));
      return {
        // The supervisor reloads, for all of its workers at once.
        reload: () => Promise.resolve(),
        stop: () => service.stop().then(() => base.store.close()),
      };
    } catch (error) {
      await base.store.close();
      throw error;
    }
  });
}

/** Starts what needs the store's lock, and lets go of it at the end. */
async function holding(lock: ServiceLock, start: () => Promise<RunningService>): Promise<RunningService> {
  try {
    const service = await start();
    return { reload: () => service.reload(), stop: () => service.stop().finally(() => lock.release()) };
  } catch (error) {
    lock.release();
    throw error;
  }
}

interface Base {
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly store: Store;
}

async function openBase({ log, store, audit, otp }: Config, metrics = new Metrics()): Promise<Base> {
  return {
    log: createLogger(log.level),
    metrics,
    store: await openStore({
      path: store.path,
      auditFile: audit.file,
      node: store.node_name ?? hostname(),
      lookupKey: { configured: otp.lookup_key?.reveal(), required: otp.enabled },
      onCommit: (events) => metrics.observe(events),
    }),
  };
}

interface Foundation extends Base {
  /** The owner of this process's reservations. */
  readonly instance: string;
  /** Given where other processes resume this one's TLS sessions. */
  readonly ticketSecret?: Buffer;
  /** Given where connections are counted with those of other processes. */
  readonly connections?: WorkerConnections;
  readonly makeMutex: MakeMutex;
  readonly condition: () => ServiceCondition;
}

interface Parts extends Foundation {
  readonly router: CaRouter;
  readonly state: LiveState;
  readonly otp: OtpService;
  /** undefined: switched off. */
  readonly gssapi: Gssapi | undefined;
}

async function startListeners(config: Config, foundation: Foundation): Promise<Service> {
  const router = await createRouter(config, {
    now: Date.now,
    env: process.env,
    log: foundation.log,
    makeMutex: foundation.makeMutex,
  });
  let gssapi: Gssapi | undefined;
  try {
    const { otp } = config;
    gssapi = await startGssapiIfEnabled(config, foundation.log);
    const service = new Service(config, {
      ...foundation,
      router,
      state: await loadLiveState(config, router),
      gssapi,
      otp: await OtpService.create(
        foundation.store,
        { ...otp, hmacKey: otp.hmac_key?.reveal(), lookupKey: lookupKey(config) },
        new HashingPool({
          concurrency: otp.hash_concurrency,
          queue: otp.hash_queue,
          retryAfter: config.est.retry_after,
        }),
      ),
    });
    await service.listen();
    return service;
  } catch (error) {
    await gssapi?.stop();
    await closeDrivers(router);
    throw error;
  }
}

/** As the store has checked it; where it was lost, one-time passwords are off, and nothing is looked up. */
function lookupKey({ otp, store }: Config): Buffer {
  return otp.lookup_key?.reveal() ?? readLookupKey(lookupKeyFile(store.path)) ?? randomBytes(MIN_LOOKUP_KEY);
}

async function startGssapiIfEnabled({ gssapi }: Config, log: Logger): Promise<Gssapi | undefined> {
  return gssapi.enabled ? await startGssapi({ config: gssapi, environment: process.env, log }) : undefined;
}

const closeDrivers = (router: CaRouter): Promise<unknown> =>
  Promise.all(router.all.map(({ driver }) => driver.close()));

class Service {
  readonly #config: Config;
  readonly #log: Logger;
  readonly #metrics: Metrics;
  readonly #store: Store;
  readonly #router: CaRouter;
  readonly #gssapi: Gssapi | undefined;
  readonly #authenticator: EstAuthenticator;
  readonly #enrollment: Enrollment;
  readonly #failures: FailureRecords;
  readonly #crls: CrlPublisher;
  readonly #stopSweeping: () => void;
  readonly #stopWatchingExpiry: () => void;
  readonly #listeners: readonly [est: Listener<Server>, admin: Listener<Server>, ...publication: Listener[]];
  readonly #ticketSecret: Buffer | undefined;
  readonly #listenerContext: ListenerContext;
  #state: LiveState;

  constructor(config: Config, parts: Parts) {
    const { log, metrics, store, instance, router, state, otp, gssapi } = parts;
    this.#config = config;
    this.#log = log;
    this.#metrics = metrics;
    this.#store = store;
    this.#router = router;
    this.#gssapi = gssapi;
    this.#state = state;
    this.#ticketSecret = parts.ticketSecret;
    this.#listenerContext = listenerContext(config, log, parts.connections);
    const observe = metrics.observe.bind(metrics);
    this.#failures = new FailureRecords({ store, log, now: Date.now, observe });
    this.#authenticator = createEstAuthenticator({ plugins: this.#plugins(otp), store, failures: this.#failures });
    this.#enrollment = new Enrollment({
      store,
      log,
      now: Date.now,
      instance,
      authenticator: this.#authenticator,
      otp,
      rules: { clientIdBinding: this.#config.otp.bind_client_id, popLinking: this.#config.est },
      keyGenerator: new KeyGenerator(),
      keyProtection: () => this.#state.keyProtection,
      retryAfter: this.#config.est.retry_after,
    });
    const { pending_ttl: pending, retention } = this.#config.requests;
    const lifetimes = { pending_ttl: pending * 1000, retention: retention * 1000 };
    const lookForUnanswered = (): Promise<void> => this.#enrollment.lookForUnanswered(router.all);
    this.#stopSweeping = sweepRequests({ store, log, now: Date.now, lifetimes, lookForUnanswered });
    this.#stopWatchingExpiry = watchExpiry({ cas: router.all, log, now: Date.now });
    const { crl_interval: interval } = this.#config.publication;
    this.#crls = new CrlPublisher({ store, cas: router.all, interval, log, now: Date.now });
    const [est, admin] = [this.#makeEst(parts), this.#makeAdmin(parts)];
    for (const { server } of [est, admin]) acceptPartialChains(server);
    const publication = createPublication(config, { router, crls: this.#crls, store, log, now: Date.now });
    this.#listeners =
      publication === undefined
        ? [est, admin]
        : [est, admin, new Listener('publication', config.publication, publication.app, this.#listenerContext)];
  }

  #makeEst(parts: Parts): Listener<Server> {
    const { est, server, gssapi } = this.#config;
    const app = createEstListener({
      tls: tlsOptions(this.#state.estTls, this.#tlsListener('est')),
      router: this.#router,
      operations: createOperations({
        authenticator: this.#authenticator,
        enrollment: this.#enrollment,
        retryAfter: est.retry_after,
        serverKeyGen: est.serverkeygen,
        currentCrl: (ca, signer) => this.#crls.current(ca, signer),
        csrattrsRequireMtls: est.csrattrs_require_mtls,
        fullCmc: est.fullcmc,
        fullCmcRequireMtls: est.fullcmc_require_mtls,
        cmcParties: () => this.#state.cmc,
        cmcServer: this.#makeCmcServer(parts),
        now: Date.now,
      }),
      log: this.#log,
      bodyLimit: server.body_limit,
      headersTimeout: server.headers_timeout * 1000,
      requestTimeout: server.request_timeout * 1000,
      keepAliveTimeout: server.keep_alive_timeout * 1000,
      errors: { retryAfter: est.retry_after, negotiate: gssapi.enabled },
      lineLength: est.base64_line_length,
      metrics: this.#metrics,
    });
    return new Listener('est', est, app, this.#listenerContext);
  }

  #makeCmcServer({ otp, instance }: Parts): CmcServer {
    const [store, log] = [this.#store, this.#log];
    return createCmcServer(this.#config, {
      store,
      log,
      enrollment: this.#enrollment,
      lockout: otp.lockout,
      trust: () => this.#state.estTrust,
      parties: () => this.#state.cmc,
      crls: this.#crls,
      instance,
      now: Date.now,
    });
  }

  /** The methods that the configuration switches on. */
  #plugins(otp: OtpService): AuthPlugin[] {
    const { estTrust } = this.#state;
    return [
      ...(estTrust === undefined ? [] : [new MtlsPlugin(() => this.#state.estTrust ?? estTrust, this.#store)]),
      ...(this.#gssapi === undefined ? [] : [this.#gssapi.plugin]),
      ...(this.#config.otp.enabled ? [new OtpPlugin(otp)] : []),
    ];
  }

  #makeAdmin({ otp, condition }: Parts): Listener<Server> {
    const { admin } = this.#config;
    const app = createAdminApp(
      {
        store: this.#store,
        condition,
        otp,
        authenticator: new AdminAuthenticator(() => this.#state.admin, this.#store, this.#failures),
        cas: this.#router,
        settings: this.#config,
        metrics: this.#metrics,
        version: VERSION,
        now: Date.now,
        log: this.#log,
      },
      tlsOptions(this.#state.adminTls, this.#tlsListener('admin')),
    );
    return new Listener('admin', admin, app, this.#listenerContext);
  }

  #tlsListener(name: TlsListener['name']): TlsListener {
    const { server, tls, admin } = this.#config;
    return {
      name,
      mode: name === 'est' ? tls.client_auth.mode : admin.tls.mode,
      handshakeTimeout: server.handshake_timeout * 1000,
      ticketSecret: this.#ticketSecret,
    };
  }

  async listen(): Promise<void> {
    try {
      for (const listener of this.#listeners) await listener.listen();
    } catch (error) {
      await this.#closeListeners();
      throw error;
    }
  }

  /**
   * Reads what a new configuration names, and checks that it can be used.
   *
   * @throws whatever is wrong with it; nothing has changed then
   */
  async prepare(config: Config): Promise<Prepared> {
    // Its own file, in each process: a rotated one is followed whatever becomes of the reload.
    await this.#store.reopenAuditFile();
    const state = await loadLiveState(config, this.#router);
    createSecureContext(secureContext(state.estTls, this.#tlsListener('est')));
    createSecureContext(secureContext(state.adminTls, this.#tlsListener('admin')));
    return {
      apply: () => {
        this.#apply(state);
        this.#log.level = config.log.level;
      },
      drop: () => undefined,
    };
  }

  #apply(state: LiveState): void {
    const [est, admin] = this.#listeners;
    est.server.setSecureContext(secureContext(state.estTls, this.#tlsListener('est')));
    admin.server.setSecureContext(secureContext(state.adminTls, this.#tlsListener('admin')));
    for (const { server } of [est, admin]) acceptPartialChains(server);
    this.#state = state;
  }

  /**
   * Stops accepting, lets requests in flight finish within `server.shutdown_grace`, closes all but the store, which its
   * opener closes.
   */
  async stop(): Promise<void> {
    this.#log.info('stopping');
    await this.#closeListeners();
    this.#stopSweeping();
    this.#stopWatchingExpiry();
    this.#enrollment.close();
    await this.#gssapi?.stop();
    await closeDrivers(this.#router);
    await this.#failures.close();
    this.#metrics.close();
    this.#log.info('stopped');
  }

  /** Requests in flight get their time; what is still open then is cut. */
  async #closeListeners(): Promise<void> {
    const grace = this.#config.server.shutdown_grace * 1000;
    await Promise.all(this.#listeners.map((listener) => listener.close(grace)));
    await this.#crls.stop();
  }
}

/** What all listeners share; says so when the system allows fewer connections than the configuration. */
function listenerContext(
  { server, publication }: Config,
  log: Logger,
  shared: WorkerConnections | undefined,
): ListenerContext {
  const wanted = { total: server.max_connections, perAddress: server.max_connections_per_address };
  const openFiles = openFileLimit();
  const limits = affordable(wanted, publication.enabled ? 3 : 2, openFiles);
  if (limits.total < wanted.total)
    log.warn(
      { open_files: openFiles, max_connections: limits.total },
      'the limit of open files allows fewer connections than server.max_connections (for each listener and process)',
    );
  return { limits, log, shared };
}
