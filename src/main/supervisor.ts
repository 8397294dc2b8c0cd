/**
 * `server.workers` > 1: one supervisor, and as many processes that share the listeners. The supervisor signs nothing and
 * answers nobody; it hands out what the workers must share, above all the configuration in force, brings back one that died
 * and closes what that one left open.
 */
import cluster, { type Worker } from 'node:cluster';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import type { Config } from '../config/schema.ts';
import type { Material } from '../config/material/material.ts';
import { packConfig } from '../config/transfer.ts';
import { failed } from '../errors.ts';
import type { ReloadOrder, ReloadOutcome } from '../config/reload.ts';
import { reconcile } from '../enrollment/reconcile.ts';
import type { Logger } from '../log.ts';
import type { Nodes } from './nodes.ts';
import { BY_SIGNAL, Reloads, type Prepared } from './reloads.ts';
import type { RunningService } from './running-service.ts';
import { ConnectionKeeper } from './shared-connections.ts';
import { MetricsKeeper } from './shared-metrics.ts';
import { SharedMutexes } from './shared-mutexes.ts';
import type { WriterKeeper } from '../store/calls/writer-keeper.ts';
import type { Store } from '../store/store.ts';
import { isFromWorker, type FromWorker, type ToWorker } from './worker-channel.ts';

interface Member {
  /** From 1; whoever replaces a dead worker gets its number. */
  readonly slot: number;
  readonly worker: Worker;
  readonly instance: string;
  /** Has got a configuration, so that it must hear of the next. */
  informed: boolean;
  listening: boolean;
}

/** Milliseconds before a dead worker is replaced, so that one which cannot live does not spin. */
const RESTART_DELAY = 1000;
/** Milliseconds between two attempts to close what a dead worker left open. */
const RECONCILE_PAUSE = 2000;
/** Milliseconds between two words to the workers on what the node is to the others. */
const STANDING_INTERVAL = 1000;
/** Milliseconds that a worker may take to read and check a new configuration. */
const PREPARE_DEADLINE = 60_000;

/** How many processes the configuration asks for; 0 stands for one per core. */
export function workerCount(config: Config): number {
  return config.server.workers === 0 ? availableParallelism() : config.server.workers;
}

export interface SupervisorOptions {
  readonly config: Config;
  readonly material: Material;
  readonly configFile: string;
  readonly store: Store;
  readonly log: Logger;
  /** The process that writes the store for the workers. */
  readonly writer: Pick<WriterKeeper, 'socket' | 'drop'>;
  readonly nodes: Nodes;
}

/**
 * Starts the workers and resolves when every one of them listens.
 *
 * @throws EstuaryError 500 `WORKER_START` when a worker ends before it listens; the others are stopped then
 */
export async function superviseWorkers(options: SupervisorOptions): Promise<RunningService> {
  // The workers accept for themselves. Connections that this process hands out (Node's round robin) stay open without end, and
  // nobody answers them, when the worker dies or hangs before it has taken them.
  cluster.schedulingPolicy = cluster.SCHED_NONE;
  const supervisor = new Supervisor(options);
  await supervisor.start();
  return supervisor;
}

class Supervisor implements RunningService {
  readonly #options: SupervisorOptions;
  readonly #members = new Map<number, Member>();
  readonly #mutexes = new SharedMutexes();
  readonly #connections: ConnectionKeeper;
  readonly #metrics = new MetricsKeeper();
  readonly #reloads: Reloads;
  #inForce: unknown;
  #lastPrepare = 0;
  /** Those who wait for a share while it is not settled which configuration that has. */
  #waiting: Member[] | undefined;
  #stopping = false;
  #telling: NodeJS.Timeout | undefined;

  constructor(options: SupervisorOptions) {
    this.#options = options;
    const { max_connections: total, max_connections_per_address: perAddress } = options.config.server;
    this.#connections = new ConnectionKeeper({ total, perAddress });
    this.#inForce = packConfig(options.config);
    this.#reloads = new Reloads({ ...options, prepare: (config) => this.#prepare(config) });
  }

  async start(): Promise<void> {
    const slots = Array.from({ length: workerCount(this.#options.config) }, (_, index) => index + 1);
    try {
      await Promise.all(slots.map((slot) => this.#startOne(slot)));
    } catch (error) {
      await this.#endWorkers();
      throw error;
    }
    this.#telling = setInterval(() => this.#tellStanding(), STANDING_INTERVAL).unref();
    this.#tellStanding();
    this.#options.log.info({ workers: slots.length }, 'all workers listen');
  }

  async reload(): Promise<void> {
    await this.#reload(BY_SIGNAL);
  }

  async #reload(order: ReloadOrder): Promise<ReloadOutcome> {
    const outcome = await this.#reloads.reload(order);
    this.#tellCondition();
    return outcome;
  }

  async stop(): Promise<void> {
    const { log, store } = this.#options;
    await this.#endWorkers();
    await store.audit([{ type: 'service.stop', outcome: 'success' }]);
    await store.close();
    log.info('all workers stopped');
  }

  async #endWorkers(): Promise<void> {
    this.#stopping = true;
    clearInterval(this.#telling);
    const ends = [...this.#members.values()].map(async ({ worker }) => {
      if (worker.isDead()) return;
      const end = once(worker, 'exit');
      worker.process.kill('SIGTERM');
      const timer = setTimeout(
        () => worker.process.kill('SIGKILL'),
        (this.#options.config.server.shutdown_grace + 5) * 1000,
      );
      await end;
      clearTimeout(timer);
    });
    await Promise.all(ends);
  }

  async #startOne(slot: number): Promise<void> {
    const instance = randomUUID();
    await this.#options.nodes.add(instance);
    const worker = cluster.fork();
    const member: Member = { slot, worker, instance, informed: false, listening: false };
    this.#members.set(slot, member);
    return new Promise((resolve, reject) => {
      worker.on('message', (message: unknown) => {
        if (!isFromWorker(message)) {
          if (!this.#mutexes.take(worker, message) && !this.#metrics.take(worker, message))
            this.#connections.take(worker, message);
        } else if (message.says === 'asks for its share') this.#share(member);
        else if (message.says === 'asks for a reload') {
          const { id, order } = message;
          void this.#reload(order).then((outcome) => tell(member, { reloaded: id, outcome }));
        } else if (message.says === 'listens') {
          member.listening = true;
          tell(member, { standing: this.#options.nodes.standing });
          this.#metrics.add(worker);
          this.#tellCondition();
          resolve();
        }
      });
      worker.once('exit', (code, signal) => {
        reject(failed('WORKER_START', 'A worker process ended before it listened.'));
        this.#ended(member, code === 0 ? signal : code);
      });
    });
  }

  /** Only a worker that asks listens: what is sent before that would be lost. */
  #share(member: Member): void {
    if (this.#waiting !== undefined) {
      this.#waiting.push(member);
      return;
    }
    member.informed = true;
    const { socket: writer } = this.#options.writer;
    const { instance } = member;
    const { nodes } = this.#options;
    const ticketSecret = nodes.ticketSecret.share();
    tell(member, { share: { instance, ticketSecret, standing: nodes.standing, writer, config: this.#inForce } });
  }

  #ended({ slot, worker, instance }: Member, reason: string | number): void {
    this.#members.delete(slot);
    this.#mutexes.gone(worker);
    this.#connections.gone(worker);
    this.#metrics.gone(worker);
    if (this.#stopping) return;
    const { log } = this.#options;
    log.error({ worker: slot, worker_pid: worker.process.pid, reason }, 'a worker process died');
    this.#tellCondition();
    void this.#closeLeftOpen(instance);
    setTimeout(() => {
      if (!this.#stopping)
        this.#startOne(slot).catch((error: unknown) => log.error({ err: error }, 'worker not replaced'));
    }, RESTART_DELAY);
  }

  /** Goes on trying while the store is away. */
  async #closeLeftOpen(instance: string): Promise<void> {
    const { log, store, writer, nodes } = this.#options;
    try {
      // What is still on its way from the dead worker would come after.
      await writer.drop(instance);
      await reconcile(store, log, instance);
      nodes.remove(instance);
    } catch (error) {
      log.error(
        { err: error },
        'what a dead worker left open could not be closed now; it is tried again, also at the next start',
      );
      setTimeout(() => {
        if (!this.#stopping) void this.#closeLeftOpen(instance);
      }, RECONCILE_PAUSE);
    }
  }

  /** Has every worker read and check it; each applies it only once all of them can. */
  async #prepare(config: Config): Promise<Prepared> {
    const id = ++this.#lastPrepare;
    const packed = packConfig(config);
    this.#waiting = [];
    const members = [...this.#members.values()].filter(({ informed }) => informed);
    const end = (message: ToWorker): void => {
      for (const member of members) tell(member, message);
      const waiting = this.#waiting ?? [];
      this.#waiting = undefined;
      for (const member of waiting) this.#share(member);
    };
    try {
      // One goes ahead: what is wrong with a token's PIN is found with one attempt, not with one of each worker.
      const [first, ...others] = members;
      if (first !== undefined) await prepared(first, id, packed);
      await Promise.all(others.map((member) => prepared(member, id, packed)));
    } catch (error) {
      end({ drop: id });
      throw error;
    }
    return {
      apply: () => {
        this.#inForce = packed;
        end({ apply: id });
      },
      drop: () => end({ drop: id }),
    };
  }

  /** A worker that is told nothing any more has no supervisor any more, and ends. */
  #tellStanding(): void {
    const { standing } = this.#options.nodes;
    for (const member of this.#members.values()) if (member.listening) tell(member, { standing });
  }

  /** What `/readyz` of every worker says of the others. */
  #tellCondition(): void {
    const up = new Set([...this.#members.values()].filter(({ listening }) => listening).map(({ slot }) => slot));
    const slots = Array.from({ length: workerCount(this.#options.config) }, (_, index) => index + 1);
    const workersDown = slots.filter((slot) => !up.has(slot));
    const condition = { workersDown, workers: slots.length, ...this.#reloads.condition };
    for (const member of this.#members.values()) if (member.listening) tell(member, { condition });
  }
}

/** A worker that is ending is no error. */
function tell({ worker }: Member, message: ToWorker): void {
  if (worker.isConnected()) worker.send(message, () => undefined);
}

/** Resolves when the worker is ready to apply the configuration, or is gone: its successor gets what is in force then. */
function prepared(member: Member, id: number, config: unknown): Promise<void> {
  const { worker, slot } = member;
  return new Promise((resolve, reject) => {
    const refuse = (reason: string): void =>
      reject(failed('CONFIG_RELOAD', 'A worker cannot use the new configuration.', { detail: reason }));
    const timer = setTimeout(() => refuse(`worker ${slot} did not answer in time`), PREPARE_DEADLINE);
    const onMessage = (message: unknown): void => {
      const answer: FromWorker | undefined = isFromWorker(message) ? message : undefined;
      if (answer?.says !== 'prepared' || answer.id !== id) return;
      done();
      if (answer.problem === undefined) resolve();
      else refuse(answer.problem);
    };
    const onExit = (): void => {
      done();
      resolve();
    };
    const done = (): void => {
      clearTimeout(timer);
      worker.off('message', onMessage);
      worker.off('exit', onExit);
    };
    worker.on('message', onMessage);
    worker.once('exit', onExit);
    tell(member, { prepare: id, config });
  });
}
