/** Starts a configured service: the store's lock, the store, the parts, and the node's tasks. */
import { randomUUID } from 'node:crypto';
import { type Fault, reported, type Warning } from '../config/problem.ts';
import type { Material } from '../config/material/material.ts';
import type { Config } from '../config/schema.ts';
import { createLogger, type DestinationStream } from '../log.ts';
import { Metrics } from '../metrics.ts';
import { VERSION } from '../version.ts';
import { assemble, type Foundation } from './assemble.ts';
import { whenDatabaseAnswers } from './database-wait.ts';
import { Lifecycle } from './lifecycle.ts';
import { Reloads, withoutCa } from './reloads.ts';
import { nodeTasks } from './node-tasks.ts';
import { joinNodes, type Nodes } from './nodes.ts';
import { openConfiguredStore } from './open-store.ts';
import { lockAuditFile, type ServiceLock } from '../store/sqlite/service-lock.ts';

export interface ServiceOptions {
  readonly config: Config;
  readonly material: Material;
  /** SIGHUP reads it again. */
  readonly configFile: string;
  readonly warnings: readonly Warning[];
  readonly faults: readonly Fault[];
  /** Ends the wait for a database that does not answer. */
  readonly stopping?: AbortSignal;
  /** Called repeatedly during this wait. */
  readonly onWait?: () => void;
  /** Default: standard output. */
  readonly logTo?: DestinationStream;
}

export interface RunningService {
  /** Applies what can change live. After a failure the old configuration stays in force. Never throws. */
  reload(): Promise<void>;
  /** Stops accepting, waits for requests in flight up to `server.shutdown_grace`, and closes everything. */
  stop(): Promise<void>;
  /** Resolves with the reason if the service cannot continue: its database is older than its audit file. */
  readonly failure: Promise<Error>;
}

type Base = Pick<Foundation, 'log' | 'metrics' | 'store' | 'instance'>;

const IGNORED = ['SIGUSR1', 'SIGUSR2'] as const;

/** Starts everything; resolves when the listeners accept. @throws the problem; everything is closed then */
export async function startService(options: ServiceOptions): Promise<RunningService> {
  const { config, material } = options;
  const log = createLogger(config.log.level, options.logTo);
  const ignored = (name: NodeJS.Signals): void => log.info(`${name} has no effect; SIGHUP reloads the configuration`);
  for (const name of IGNORED) process.on(name, ignored);
  const instance = randomUUID();
  // First: a start on a store in use must change nothing.
  const join = (): Promise<Nodes> => joinNodes(config, material, instance, log);
  const { joined: nodes, endWait } = await whenDatabaseAnswers(join, { ...options, log });
  let audit: ServiceLock | undefined;
  try {
    audit = lockAuditFile(config.audit.file);
    const metrics = new Metrics();
    const failure = Promise.withResolvers<Error>();
    const store = await openConfiguredStore(config, material, {
      now: nodes.clock.now,
      onCommit: (events) => metrics.observe(events),
      onBehind: failure.resolve,
      isHeld: () => nodes.state.held,
    });
    try {
      const service = await startOn({ log, metrics, store, instance }, options, nodes, endWait);
      return {
        reload: () => service.reload(),
        stop: () =>
          service.stop().finally(async () => {
            for (const name of IGNORED) process.off(name, ignored);
            audit?.release();
            await nodes.release();
          }),
        failure: failure.promise,
      };
    } catch (error) {
      await store.close();
      throw error;
    }
  } catch (error) {
    await endWait();
    audit?.release();
    await nodes.release();
    throw error;
  }
}

async function startOn(
  base: Base,
  options: ServiceOptions,
  nodes: Nodes,
  endWait: () => Promise<void>,
): Promise<Omit<RunningService, 'failure'>> {
  const { log, store } = base;
  const { config, material, configFile, warnings, faults } = options;
  const { now } = nodes.clock;
  const isOnDuty = (): boolean => nodes.state.onDuty;
  const known = [...warnings, ...(await withoutCa(config, store, now())), ...faults.map(reported)];
  for (const { key, message } of known) log.warn({ key }, message);
  const reloads = new Reloads({
    config,
    material,
    configFile,
    faults,
    store,
    now,
    log,
    prepare: (next, nextMaterial) => lifecycle.prepare(next, nextMaterial),
  });
  const foundation: Foundation = {
    ...base,
    clock: nodes.clock,
    ticketSecret: nodes.ticketSecret,
    makeMutex: nodes.makeMutex,
    isOnDuty,
    lastReload: () => reloads.last,
    faults: () => reloads.faults,
    reload: (order) => reloads.reload(order),
  };
  const assembly = await assemble(config, material, foundation);
  const parts = [{ bind: endWait }, ...assembly.parts, ...nodeTasks({ config, material, store, log, now, isOnDuty })];
  const lifecycle = new Lifecycle({ ...assembly, parts }, foundation);
  await lifecycle.start(async () => {
    await nodes.begin(store);
    await store.audit([{ type: 'service.start', outcome: 'success', detail: `version ${VERSION}` }]);
  });
  return {
    reload: async () => {
      await reloads.reload({ dryRun: false });
    },
    async stop() {
      await lifecycle.stop();
      await store.audit([{ type: 'service.stop', outcome: 'success' }]);
      await store.close();
    },
  };
}
