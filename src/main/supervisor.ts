/**
 * `server.workers` > 1: one supervisor, and as many processes that share the listeners. The supervisor holds no key and
 * answers nobody; it hands out what the workers must share, brings back one that died and closes what that one left open.
 */
import cluster, { type Worker } from 'node:cluster';
import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import type { Config } from '../config/schema.ts';
import { failed } from '../errors.ts';
import { reconcile } from '../enrollment/reconcile.ts';
import type { Logger } from '../log.ts';
import type { RunningService } from './running-service.ts';
import { ConnectionKeeper, WorkerConnections } from './shared-connections.ts';
import { TurnKeeper, WorkerTurns } from './shared-turns.ts';
import type { Store } from '../store/store.ts';

/** What a worker gets from its supervisor before it starts. */
export interface WorkerShare {
  /** The owner of its reservations. */
  readonly instance: string;
  /** 48 octets, hex: of these the keys come, so that TLS session tickets of one worker resume on another. */
  readonly ticketSecret: string;
}

interface Member {
  readonly worker: Worker;
  readonly instance: string;
}

/** What a worker says to its supervisor. */
const ASKING = 'asking for what is shared';
const LISTENING = 'listening';

/** Milliseconds before a dead worker is replaced, so that one which cannot live does not spin. */
const RESTART_DELAY = 1000;

/** How many processes the configuration asks for; 0 stands for one per core. */
export function workerCount(config: Config): number {
  return config.server.workers === 0 ? availableParallelism() : config.server.workers;
}

export interface SupervisorOptions {
  readonly config: Config;
  readonly store: Store;
  readonly log: Logger;
}

/**
 * Starts the workers and resolves when every one of them listens.
 *
 * @throws EstuaryError 500 `WORKER_START` when a worker ends before it listens; the others are stopped then
 */
export async function superviseWorkers(options: SupervisorOptions): Promise<RunningService> {
  const supervisor = new Supervisor(options);
  await supervisor.start();
  return supervisor;
}

class Supervisor implements RunningService {
  readonly #options: SupervisorOptions;
  readonly #ticketSecret = randomBytes(48).toString('hex');
  readonly #members = new Map<number, Member>();
  readonly #turns = new TurnKeeper();
  readonly #connections: ConnectionKeeper;
  #stopping = false;

  constructor(options: SupervisorOptions) {
    this.#options = options;
    const { max_connections: total, max_connections_per_address: perAddress } = options.config.server;
    this.#connections = new ConnectionKeeper({ total, perAddress });
  }

  async start(): Promise<void> {
    const started = Array.from({ length: workerCount(this.#options.config) }, () => this.#startOne());
    try {
      await Promise.all(started);
    } catch (error) {
      await this.stop();
      throw error;
    }
  }

  /** Each worker reads the configuration again by itself; the same signal tells it to. */
  reload(): Promise<void> {
    for (const { worker } of this.#members.values()) worker.process.kill('SIGHUP');
    return Promise.resolve();
  }

  async stop(): Promise<void> {
    this.#stopping = true;
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
    await this.#options.store.close();
  }

  #startOne(): Promise<void> {
    const worker = cluster.fork();
    const instance = randomUUID();
    this.#members.set(worker.id, { worker, instance });
    const share: WorkerShare = { instance, ticketSecret: this.#ticketSecret };
    return new Promise((resolve, reject) => {
      worker.on('message', (message) => {
        // Only a worker that asks listens: what is sent before that would be lost.
        if (message === ASKING) worker.send(share);
        else if (message === LISTENING) resolve();
        else if (!this.#turns.take(worker, message)) this.#connections.take(worker, message);
      });
      worker.once('exit', (code, signal) => {
        reject(failed('WORKER_START', 'A worker process ended before it listened.'));
        void this.#ended(worker, instance, code === 0 ? signal : code);
      });
    });
  }

  async #ended(worker: Worker, instance: string, reason: string | number): Promise<void> {
    this.#members.delete(worker.id);
    this.#turns.gone(worker);
    this.#connections.gone(worker);
    if (this.#stopping) return;
    const { log, store } = this.#options;
    log.error({ worker: worker.id, reason }, 'a worker process died');
    try {
      await reconcile(store, log, instance);
    } catch (error) {
      log.error({ err: error }, 'what a dead worker left open could not be closed; the next start does it');
    }
    setTimeout(() => {
      if (!this.#stopping) this.#startOne().catch((error: unknown) => log.error({ err: error }, 'worker not replaced'));
    }, RESTART_DELAY);
  }
}

/** In a worker: what the supervisor shares. */
export async function receiveShare(): Promise<WorkerShare> {
  const message = await new Promise<unknown>((resolve) => {
    process.once('message', resolve);
    process.send?.(ASKING);
  });
  if (!isShare(message)) throw new TypeError('the supervisor sent something else than its share');
  return message;
}

function isShare(value: unknown): value is WorkerShare {
  return (
    typeof value === 'object' &&
    value !== null &&
    'instance' in value &&
    typeof value.instance === 'string' &&
    'ticketSecret' in value &&
    typeof value.ticketSecret === 'string'
  );
}

const channel = {
  send: (message: unknown) => process.send?.(message, () => undefined),
  onMessage: (listener: (message: unknown) => void) => process.on('message', listener),
};

/** In a worker: the turns that it takes with the others. */
export const turnsWithOthers = (): WorkerTurns => new WorkerTurns(channel);

/** In a worker: the connections that are counted with the others'. */
export const connectionsWithOthers = (): WorkerConnections => new WorkerConnections(channel);

/** In a worker: tells the supervisor that the listeners are up. */
export function reportListening(): void {
  process.send?.(LISTENING);
}
