/** Starts the service of a configuration: the store's lock, the store, and then one process or a supervisor with its workers. */
import { randomUUID } from 'node:crypto';
import type { Warning } from '../config/problem.ts';
import { readMaterial } from '../config/material/load-material.ts';
import type { Material } from '../config/material/material.ts';
import type { Config } from '../config/schema.ts';
import { TicketSecret } from '../http/ticket-secret.ts';
import { createLogger } from '../log.ts';
import { Metrics } from '../metrics.ts';
import { Semaphore } from '../process/semaphore.ts';
import type { WriterAddress } from '../store/calls/writer-address.ts';
import { shareStoreLock } from '../store/sqlite/service-lock.ts';
import { WriterKeeper } from '../store/calls/writer-keeper.ts';
import type { Store } from '../store/store.ts';
import { VERSION } from '../version.ts';
import { assemble, type Foundation } from './assemble.ts';
import { Lifecycle } from './lifecycle.ts';
import { BY_SIGNAL, Reloads, type Prepare } from './reloads.ts';
import { Anchors } from './anchors.ts';
import { Checkpoints } from './checkpoints.ts';
import { nodeName, amongNodes, joinNodes, turnsOver, type Nodes } from './nodes.ts';
import { openConfiguredStore, prepareStore, writerOptions } from './open-store.ts';
import { Retention } from './retention.ts';
import { SearchIndex } from './search-index.ts';
import type { RunningService } from './running-service.ts';
import { superviseWorkers, workerCount } from './supervisor.ts';
import { SupervisorLink } from './worker-channel.ts';

export interface ServiceOptions {
  readonly config: Config;
  readonly material: Material;
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
  const { config, material } = options;
  await prepareStore(config, material);
  // Before anything else: a start on a store in use changes nothing.
  const nodes = await joinNodes(config, material, createLogger(config.log.level));
  return holding(nodes, () => startJoined(options, nodes));
}

async function startJoined(options: ServiceOptions, nodes: Nodes): Promise<RunningService> {
  const { config, material } = options;
  if (workerCount(config) === 1) return startOn(await openBase(config, material), options, nodes);
  // Beside the workers a process that writes the store for all of them.
  const writer = new WriterKeeper(writerOptions(config, material), createLogger(config.log.level));
  await writer.start();
  try {
    const base = await openBase(config, material, { writer: { socket: writer.socket, name: 'supervisor' } });
    const service = await startOn(base, options, nodes, writer);
    return { reload: () => service.reload(), stop: () => service.stop().finally(() => writer.stop()) };
  } catch (error) {
    await writer.stop();
    throw error;
  }
}

/** @param writer undefined: one process is the whole service */
async function startOn(
  base: Base,
  { config, material, configFile, warnings }: ServiceOptions,
  nodes: Nodes,
  writer?: WriterKeeper,
): Promise<RunningService> {
  const { log, store } = base;
  try {
    for (const { key, message } of warnings) log.warn({ key }, message);
    await nodes.begin(store);
    await store.audit([{ type: 'service.start', outcome: 'success', detail: `version ${VERSION}` }]);
    const service =
      writer === undefined
        ? await startAlone({ config, material, configFile }, base, nodes)
        : await superviseWorkers({ config, material, configFile, store, log, writer, nodes });
    // Here, because it has to be one process that exports the audit log: each node's own.
    const isOnDuty = (): boolean => nodes.standing.onDuty;
    const retention = new Retention({ config, store, log, now: Date.now });
    await retention.start();
    const checkpoints = await startCheckpoints({ config, material }, base);
    const anchors = config.store.driver === 'postgres' ? new Anchors(store, log) : undefined;
    await anchors?.start();
    const searchIndex = new SearchIndex(store, log, isOnDuty);
    searchIndex.start();
    return {
      reload: () => service.reload(),
      async stop() {
        await searchIndex.stop();
        await retention.stop();
        await checkpoints?.stop();
        await anchors?.stop();
        await service.stop();
      },
    };
  } catch (error) {
    await store.close();
    throw error;
  }
}

/** Here for the same reason; undefined where none are wanted. */
async function startCheckpoints(
  { config, material }: Pick<ServiceOptions, 'config' | 'material'>,
  { store, log }: Base,
): Promise<Checkpoints | undefined> {
  const { checkpoint_interval: seconds } = config.audit;
  if (seconds === 0 || material.checkpointKey === undefined) return undefined;
  const privateKey = material.checkpointKey;
  const checkpoints = new Checkpoints({ store, node: nodeName(config), log, privateKey, interval: seconds * 1000 });
  await checkpoints.start();
  return checkpoints;
}

/** One process that is the whole service. */
async function startAlone(
  { config, material, configFile }: Omit<ServiceOptions, 'warnings'>,
  base: Base,
  nodes: Nodes,
): Promise<RunningService> {
  const { log, store } = base;
  const instance = randomUUID();
  await nodes.add(instance);
  const prepare: Prepare = (next, nextMaterial) => service.prepare(next, nextMaterial);
  const reloads = new Reloads({ config, material, configFile, store, log, prepare });
  const service = await startProcess(config, material, {
    ...base,
    store: asNode(config, store, () => nodes.standing.held),
    instance,
    ticketSecret: nodes.ticketSecret,
    makeMutex: turnsOver(config, material) ?? ((_name, queueLimit) => new Semaphore(1, queueLimit)),
    isOnDuty: () => nodes.standing.onDuty,
    condition: () => ({ workersDown: [], ...reloads.condition }),
    reload: (order) => reloads.reload(order),
  });
  return {
    reload: async () => {
      await reloads.reload(BY_SIGNAL);
    },
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
  const { inForce: config, instance, ticketSecret, writer } = await link.share();
  const material = await readMaterial(config);
  return holding(shareLock(config), async () => {
    const base = await openBase(config, material, {
      metrics: new Metrics((own) => link.shareMetrics(own)),
      writer: { socket: writer, name: instance },
    });
    try {
      const service = await startProcess(config, material, {
        ...base,
        store: asNode(config, base.store, () => link.standing.held),
        instance,
        ticketSecret: TicketSecret.of(ticketSecret),
        connections: link.connections,
        makeMutex: turnsOver(config, material) ?? ((name, queueLimit) => link.mutexes.of(name, queueLimit)),
        isOnDuty: () => link.standing.onDuty,
        condition: () => link.condition,
        reload: (order) => link.reload(order),
      });
      link.listens(async (next) => service.prepare(next, await readMaterial(next)));
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
async function holding(lock: Pick<Nodes, 'release'>, start: () => Promise<RunningService>): Promise<RunningService> {
  try {
    const service = await start();
    return { reload: () => service.reload(), stop: () => service.stop().finally(() => lock.release()) };
  } catch (error) {
    await lock.release();
    throw error;
  }
}

/** A worker keeps other services from a store in a file as long as it lives; those of a database have leases. */
function shareLock({ store }: Config): Pick<Nodes, 'release'> {
  const lock = store.driver === 'sqlite' ? shareStoreLock(store.path) : undefined;
  return { release: () => Promise.resolve(lock?.release()) };
}

/** The store of a service that is alone is its own. */
const asNode = ({ store: { driver } }: Config, store: Store, isHeld: () => boolean): Store =>
  driver === 'sqlite' ? store : amongNodes(store, isHeld);

type Base = Pick<Foundation, 'log' | 'metrics' | 'store'>;

interface Surroundings {
  readonly metrics?: Metrics;
  /** Where another process writes the store. */
  readonly writer?: WriterAddress;
}

async function openBase(
  config: Config,
  material: Material,
  { metrics = new Metrics(), writer }: Surroundings = {},
): Promise<Base> {
  return {
    log: createLogger(config.log.level),
    metrics,
    store: await openConfiguredStore(config, material, {
      ...(writer === undefined ? {} : { writer }),
      onCommit: (events) => metrics.observe(events),
    }),
  };
}

async function startProcess(config: Config, material: Material, foundation: Foundation): Promise<Lifecycle> {
  const service = new Lifecycle(await assemble(config, material, foundation), foundation);
  await service.start();
  return service;
}
