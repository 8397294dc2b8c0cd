/** The composition root: makes every part from a `Config`; owns start, reload and stop. */
import cluster from 'node:cluster';
import { randomBytes, randomUUID } from 'node:crypto';
import type { Server as HttpServer } from 'node:http';
import type { Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { AdminAuthenticator } from '../auth/admin-authenticator.ts';
import { createEstAuthenticator } from '../auth/est-authenticator.ts';
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
import { planReload } from '../config/diff.ts';
import { loadConfig } from '../config/load.ts';
import type { Warning } from '../config/problem.ts';
import type { Config } from '../config/schema.ts';
import { Enrollment } from '../enrollment/enrollment.ts';
import { KeyGenerator } from '../enrollment/key-generation.ts';
import { reconcile } from '../enrollment/reconcile.ts';
import { sweepRequests } from '../enrollment/sweep-requests.ts';
import { describe } from '../errors.ts';
import { createOperations } from '../http/est/operations.ts';
import { createAdminApp } from '../http/admin/listener.ts';
import { createEstListener } from '../http/est/listener.ts';
import { acceptPartialChains, secureContext, tlsOptions, type TlsMaterial } from '../http/tls.ts';
import { loadLiveState, type LiveState } from './live-state.ts';
import { Turns, type SingleTurns } from '../process/turns.ts';
import { createLogger, type Logger } from '../log.ts';
import { Metrics } from '../metrics.ts';
import { CrlPublisher } from '../publication/crl-publisher.ts';
import { createPublication } from '../http/publication/create.ts';
import { lookupKeyFile, readLookupKey } from '../store/lookup-key-file.ts';
import { MIN_LOOKUP_KEY } from '../store/token-lookup.ts';
import { openStore } from '../store/sqlite/open.ts';
import { lockStore, shareStoreLock } from '../store/sqlite/service-lock.ts';
import type { Store } from '../store/store.ts';
import type { RunningService } from './running-service.ts';
import {
  receiveShare,
  reportListening,
  superviseWorkers,
  turnsWithOthers,
  workerCount,
  type WorkerShare,
} from './supervisor.ts';
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
  const { path } = options.config.store;
  // Before anything else: a start on a store in use changes nothing.
  const lock = cluster.isWorker ? shareStoreLock(path) : await lockStore(path);
  try {
    const service = await startLocked(options);
    return {
      reload: () => service.reload(),
      stop: () => service.stop().finally(() => lock.release()),
    };
  } catch (error) {
    lock.release();
    throw error;
  }
}

async function startLocked(options: ServiceOptions): Promise<RunningService> {
  const { config } = options;
  const log = createLogger(config.log.level);
  const metrics = new Metrics(String(cluster.worker?.id ?? 0));
  const store = await openStore({
    path: config.store.path,
    auditFile: config.audit.file,
    lookupKey: { configured: config.otp.lookup_key?.reveal(), required: config.otp.enabled },
    onCommit: (events) => metrics.observe(events),
  });
  try {
    if (cluster.isWorker) {
      const service = await startListeners(options, { log, metrics, store, share: await receiveShare() });
      reportListening();
      return service;
    }
    for (const { key, message } of options.warnings) log.warn({ key }, message);
    await reconcile(store, log);
    await store.audit([{ type: 'service.start', outcome: 'success', detail: `version ${VERSION}` }]);
    return workerCount(config) > 1
      ? await superviseWorkers({ config, store, log })
      : await startListeners(options, { log, metrics, store, share: { instance: randomUUID() } });
  } catch (error) {
    await store.close();
    throw error;
  }
}

interface Foundation {
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly store: Store;
  readonly share: Pick<WorkerShare, 'instance'> & Partial<WorkerShare>;
}

interface Parts extends Foundation {
  readonly router: CaRouter;
  readonly state: LiveState;
  readonly otp: OtpService;
  /** undefined: switched off. */
  readonly gssapi: Gssapi | undefined;
}

async function startListeners(options: ServiceOptions, foundation: Foundation): Promise<RunningService> {
  const router = await createRouter(options.config, {
    now: Date.now,
    env: process.env,
    log: foundation.log,
    singleTurns: singleTurns(),
  });
  let gssapi: Gssapi | undefined;
  try {
    const { otp } = options.config;
    gssapi = await startGssapiIfEnabled(options.config, foundation.log);
    const service = new Service(options, {
      ...foundation,
      router,
      state: await loadLiveState(options.config, router),
      gssapi,
      otp: await OtpService.create(
        foundation.store,
        { ...otp, hmacKey: otp.hmac_key?.reveal(), lookupKey: lookupKey(options.config) },
        new HashingPool({
          concurrency: otp.hash_concurrency,
          queue: otp.hash_queue,
          retryAfter: options.config.est.retry_after,
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

function singleTurns(): SingleTurns {
  if (!cluster.isWorker) return (_name, queueLimit) => new Turns(1, queueLimit);
  const turns = turnsWithOthers();
  return (name, queueLimit) => turns.of(name, queueLimit);
}

async function startGssapiIfEnabled({ gssapi }: Config, log: Logger): Promise<Gssapi | undefined> {
  return gssapi.enabled ? await startGssapi({ config: gssapi, environment: process.env, log }) : undefined;
}

const closeDrivers = (router: CaRouter): Promise<unknown> =>
  Promise.all(router.all.map(({ driver }) => driver.close()));

/** Milliseconds between looks for connections that have become idle while stopping. */
const IDLE_CHECK = 100;

interface Listener<S extends HttpServer = HttpServer> {
  readonly name: 'est' | 'admin' | 'publication';
  readonly host: string;
  readonly port: number;
  readonly server: S;
  readonly listen: () => Promise<unknown>;
  readonly close: () => Promise<unknown>;
}

class Service implements RunningService {
  readonly #options: ServiceOptions;
  #config: Config;
  readonly #log: Logger;
  readonly #metrics: Metrics;
  readonly #store: Store;
  readonly #router: CaRouter;
  readonly #gssapi: Gssapi | undefined;
  readonly #keyGenerator = new KeyGenerator();
  readonly #enrollment: Enrollment;
  readonly #failures: FailureRecords;
  readonly #crls: CrlPublisher;
  readonly #stopSweeping: () => void;
  readonly #stopWatchingExpiry: () => void;
  readonly #listeners: readonly [est: Listener<Server>, admin: Listener<Server>, ...publication: Listener[]];
  readonly #ticketKeys: Buffer | undefined;
  #state: LiveState;

  constructor(options: ServiceOptions, parts: Parts) {
    const { log, metrics, store, share, router, state, otp, gssapi } = parts;
    this.#options = options;
    this.#config = options.config;
    this.#log = log;
    this.#metrics = metrics;
    this.#store = store;
    this.#router = router;
    this.#gssapi = gssapi;
    this.#state = state;
    this.#ticketKeys = share.ticketKeys === undefined ? undefined : Buffer.from(share.ticketKeys, 'hex');
    const { instance } = share;
    const observe = metrics.observe.bind(metrics);
    this.#failures = new FailureRecords({ store, log, now: Date.now, observe });
    this.#enrollment = new Enrollment({
      store,
      log,
      now: Date.now,
      instance,
      keyGenerator: this.#keyGenerator,
      retryAfter: this.#config.est.retry_after,
      popLinking: this.#config.est,
    });
    const { pending_ttl: pending, retention } = this.#config.requests;
    const lifetimes = { pending_ttl: pending * 1000, retention: retention * 1000 };
    const lookForUnanswered = (): Promise<void> => this.#enrollment.lookForUnanswered(router.all);
    this.#stopSweeping = sweepRequests({ store, log, now: Date.now, lifetimes, lookForUnanswered });
    this.#stopWatchingExpiry = watchExpiry({ cas: router.all, log, now: Date.now });
    const { crl_interval: interval } = this.#config.publication;
    this.#crls = new CrlPublisher({ store, cas: router.all, interval, log, now: Date.now });
    const [est, admin] = [this.#makeEst(parts), this.#makeAdmin(otp)];
    for (const { server } of [est, admin]) acceptPartialChains(server);
    const publication = createPublication(options.config, { router, crls: this.#crls, store, log, now: Date.now });
    this.#listeners =
      publication === undefined
        ? [est, admin]
        : [est, admin, listener('publication', options.config.publication, publication.app)];
  }

  #makeEst(parts: Parts): Listener<Server> {
    const { otp } = parts;
    const { est, server, tls, gssapi } = this.#config;
    const authenticator = createEstAuthenticator({
      plugins: this.#plugins(otp),
      store: this.#store,
      failures: this.#failures,
    });
    const app = createEstListener({
      tls: {
        ...tlsOptions(this.#state.estTls, tls.client_auth.mode, server.handshake_timeout * 1000),
        ...this.#tickets(),
      },
      router: this.#router,
      operations: createOperations({
        authenticator,
        otp,
        enrollment: this.#enrollment,
        store: this.#store,
        retryAfter: est.retry_after,
        clientIdBinding: this.#config.otp.bind_client_id,
        serverKeyGen: est.serverkeygen,
        currentCrl: (ca, signer) => this.#crls.current(ca, signer),
        keyGenerator: this.#keyGenerator,
        keyProtection: () => this.#state.keyProtection,
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
    return listener('est', est, app);
  }

  #makeCmcServer({ otp, share }: Parts): CmcServer {
    const [store, log] = [this.#store, this.#log];
    return createCmcServer(this.#config, {
      store,
      log,
      enrollment: this.#enrollment,
      lockout: otp.lockout,
      trust: () => this.#state.estTrust,
      parties: () => this.#state.cmc,
      crls: this.#crls,
      instance: share.instance,
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

  #makeAdmin(otp: OtpService): Listener<Server> {
    const { admin, server } = this.#config;
    const app = createAdminApp(
      {
        store: this.#store,
        otp,
        authenticator: new AdminAuthenticator(() => this.#state.admin, this.#store, this.#failures),
        cas: this.#router,
        settings: this.#config,
        metrics: this.#metrics,
        version: VERSION,
        now: Date.now,
        log: this.#log,
      },
      { ...tlsOptions(this.#state.adminTls, admin.tls.mode, server.handshake_timeout * 1000), ...this.#tickets() },
    );
    return listener('admin', admin, app);
  }

  #tickets(): { ticketKeys?: Buffer } {
    return this.#ticketKeys === undefined ? {} : { ticketKeys: this.#ticketKeys };
  }

  async listen(): Promise<void> {
    try {
      for (const { name, host, port, server, listen } of this.#listeners) {
        await listen();
        const address = server.address();
        this.#log.info({ listener: name, address: host, port: portOf(address) ?? port }, 'listening');
      }
    } catch (error) {
      await this.#closeListeners();
      throw error;
    }
  }

  async reload(): Promise<void> {
    try {
      const { config, warnings } = await loadConfig(this.#options.configFile, process.env);
      const plan = planReload(this.#config, config);
      this.#apply(await loadLiveState(plan.config, this.#router));
      this.#log.level = plan.config.log.level;
      this.#config = plan.config;
      await this.#store.reopenAuditFile();
      await this.#store.audit([{ type: 'config.reload', outcome: 'success', detail: plan.live.join(', ') }]);
      for (const { key, message } of warnings) this.#log.warn({ key }, message);
      if (plan.restart.length > 0) this.#log.warn({ keys: plan.restart }, 'changed keys that need a restart');
      this.#log.info({ keys: plan.live }, 'configuration reloaded');
    } catch (error) {
      const detail = describe(error);
      this.#log.error({ detail }, 'reload failed; the old configuration stays in force');
      await this.#store
        .audit([{ type: 'config.reload', outcome: 'failure', detail }])
        .catch((failure: unknown) => this.#log.error({ detail: describe(failure) }, 'reload failure not audited'));
    }
  }

  #apply(state: LiveState): void {
    const [est, admin] = this.#listeners;
    const apply = (server: Server, material: TlsMaterial): void => {
      server.setSecureContext({ ...secureContext(material), ...this.#tickets() });
      acceptPartialChains(server);
    };
    apply(est.server, state.estTls);
    apply(admin.server, state.adminTls);
    this.#state = state;
  }

  async stop(): Promise<void> {
    this.#log.info('stopping');
    await this.#closeListeners();
    this.#stopSweeping();
    this.#stopWatchingExpiry();
    this.#enrollment.close();
    await this.#gssapi?.stop();
    await closeDrivers(this.#router);
    await this.#failures.close();
    if (!cluster.isWorker) await this.#store.audit([{ type: 'service.stop', outcome: 'success' }]);
    await this.#store.close();
    this.#metrics.close();
    this.#log.info('stopped');
  }

  /** Requests in flight get their time; what is still open then is cut. */
  async #closeListeners(): Promise<void> {
    const servers = this.#listeners.map(({ server }) => server);
    const cut = setTimeout(() => servers.forEach((server) => server.closeAllConnections()), this.#graceMilliseconds());
    // A connection whose last request has just been answered is kept alive for a next one that must not come.
    const idle = setInterval(() => servers.forEach((server) => server.closeIdleConnections()), IDLE_CHECK);
    await Promise.all(this.#listeners.map(({ close }) => close()));
    clearTimeout(cut);
    clearInterval(idle);
    await this.#crls.stop();
  }

  #graceMilliseconds(): number {
    return this.#config.server.shutdown_grace * 1000;
  }
}

interface App<S extends HttpServer> {
  readonly server: S;
  readonly listen: (at: { host: string; port: number }) => Promise<unknown>;
  readonly close: () => Promise<unknown>;
}

function listener<S extends HttpServer>(
  name: Listener['name'],
  { host, port }: { readonly host: string; readonly port: number },
  app: App<S>,
): Listener<S> {
  return {
    name,
    host,
    port,
    server: app.server,
    listen: () => app.listen({ host, port }),
    close: () => app.close(),
  };
}

function portOf(address: AddressInfo | string | null): number | undefined {
  return typeof address === 'object' ? address?.port : undefined;
}
