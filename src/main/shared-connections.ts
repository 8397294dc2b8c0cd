/**
 * The limits of connections over all worker processes (`server.workers` above 1): the workers tell their supervisor of each
 * connection that begins or ends; it counts, and answers only where one is too many. A worker that dies loses its own.
 */
import { ConnectionTally, REACHED_LIMITS, type ConnectionLimits, type ReachedLimit } from '../http/connection-tally.ts';
import type { SharedConnections } from '../http/connections.ts';

/** What a worker tells its supervisor; `id` is the worker's own. */
type ConnectionReport =
  | { readonly connection: 'opened'; readonly id: number; readonly listener: string; readonly address: string }
  | { readonly connection: 'closed'; readonly id: number };

/** What the supervisor answers to the connection that is one too many. */
export interface ConnectionRefusal {
  readonly connection: 'refused';
  readonly id: number;
  readonly reached: ReachedLimit;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

function isReport(value: unknown): value is ConnectionReport {
  if (!isObject(value) || typeof value['id'] !== 'number') return false;
  if (value['connection'] === 'closed') return true;
  return (
    value['connection'] === 'opened' && typeof value['listener'] === 'string' && typeof value['address'] === 'string'
  );
}

function isRefusal(value: unknown): value is ConnectionRefusal {
  return (
    isObject(value) &&
    value['connection'] === 'refused' &&
    typeof value['id'] === 'number' &&
    REACHED_LIMITS.some((limit) => limit === value['reached'])
  );
}

/** A worker, as the keeper sees it. */
export interface ConnectionWorker {
  /** `done` is told of failures, too: a worker that is ending is no error. */
  send(message: ConnectionRefusal, done: () => void): unknown;
}

interface Counted {
  readonly tally: ConnectionTally;
  readonly address: string;
}

/** In the supervisor: the connections of all workers. */
export class ConnectionKeeper {
  readonly #limits: ConnectionLimits;
  readonly #tallies = new Map<string, ConnectionTally>();
  readonly #counted = new Map<ConnectionWorker, Map<number, Counted>>();

  constructor(limits: ConnectionLimits) {
    this.#limits = limits;
  }

  /** Takes what a worker sent; `false`: it is no matter of connections. */
  take(worker: ConnectionWorker, message: unknown): boolean {
    if (!isReport(message)) return false;
    const counted = this.#counted.get(worker) ?? new Map<number, Counted>();
    this.#counted.set(worker, counted);
    if (message.connection === 'opened') {
      const { id, listener, address } = message;
      const tally = this.#tally(listener);
      const reached = tally.add(address);
      if (reached === undefined) counted.set(id, { tally, address });
      else worker.send({ connection: 'refused', id, reached }, () => undefined);
    } else {
      remove(counted.get(message.id));
      counted.delete(message.id);
    }
    return true;
  }

  /** The worker is gone, and with it its connections. */
  gone(worker: ConnectionWorker): void {
    for (const counted of this.#counted.get(worker)?.values() ?? []) remove(counted);
    this.#counted.delete(worker);
  }

  #tally(listener: string): ConnectionTally {
    const tally = this.#tallies.get(listener) ?? new ConnectionTally(this.#limits);
    this.#tallies.set(listener, tally);
    return tally;
  }
}

/** One that was refused was never counted. */
function remove(counted: Counted | undefined): void {
  counted?.tally.remove(counted.address);
}

/** The worker's side of the channel to its supervisor. */
export interface SupervisorChannel {
  send(message: unknown): unknown;
  onMessage(listener: (message: unknown) => void): void;
}

/** In a worker: tells the supervisor. */
export class WorkerConnections implements SharedConnections {
  readonly #channel: SupervisorChannel;
  readonly #refuse = new Map<number, (reached: ReachedLimit) => void>();
  #lastId = 0;

  constructor(channel: SupervisorChannel) {
    this.#channel = channel;
    channel.onMessage((message) => {
      if (isRefusal(message)) this.#refuse.get(message.id)?.(message.reached);
    });
  }

  opened(listener: string, address: string, refuse: (reached: ReachedLimit) => void): () => void {
    const id = ++this.#lastId;
    this.#refuse.set(id, refuse);
    this.#tell({ connection: 'opened', id, listener, address });
    return () => {
      this.#refuse.delete(id);
      this.#tell({ connection: 'closed', id });
    };
  }

  #tell(report: ConnectionReport): void {
    this.#channel.send(report);
  }
}
