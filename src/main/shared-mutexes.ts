/**
 * Mutexes that all worker processes share (`server.workers` above 1): the supervisor grants them, one holder at a time for
 * each name. A worker that dies loses what it held.
 */
import { NoPermitError, Semaphore, type Limiter } from '../process/semaphore.ts';

/** What a worker tells its supervisor; `id` is the worker's own. */
interface MutexRequest {
  readonly mutex: 'acquire' | 'release';
  readonly name: string;
  readonly id: number;
}

/** What the supervisor answers when the worker holds the mutex. */
export interface MutexGrant {
  readonly mutex: 'granted';
  readonly id: number;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

function isRequest(value: unknown): value is MutexRequest {
  return (
    isObject(value) &&
    (value['mutex'] === 'acquire' || value['mutex'] === 'release') &&
    typeof value['name'] === 'string' &&
    typeof value['id'] === 'number'
  );
}

function isGrant(value: unknown): value is MutexGrant {
  return isObject(value) && value['mutex'] === 'granted' && typeof value['id'] === 'number';
}

/** A worker, as the keeper sees it. */
export interface MutexWorker {
  /** `done` is told of failures, too: a worker that is ending is no error. */
  send(message: MutexGrant, done: () => void): unknown;
}

interface Ticket {
  readonly worker: MutexWorker;
  readonly id: number;
}

/** In the supervisor: who holds each mutex, and who waits for it. The first of a queue holds it. */
export class SharedMutexes {
  readonly #queues = new Map<string, Ticket[]>();

  /** Takes what a worker sent; `false`: it is about no mutex. */
  take(worker: MutexWorker, message: unknown): boolean {
    if (!isRequest(message)) return false;
    const { mutex, name, id } = message;
    if (mutex === 'release') this.#remove(name, (ticket) => ticket.worker === worker && ticket.id === id);
    else this.#append(name, { worker, id });
    return true;
  }

  /** The worker is gone, and with it what it had or waited for. */
  gone(worker: MutexWorker): void {
    for (const name of [...this.#queues.keys()]) this.#remove(name, (ticket) => ticket.worker === worker);
  }

  #append(name: string, ticket: Ticket): void {
    const queue = this.#queues.get(name) ?? [];
    queue.push(ticket);
    this.#queues.set(name, queue);
    if (queue.length === 1) grant(ticket);
  }

  #remove(name: string, matches: (ticket: Ticket) => boolean): void {
    const queue = this.#queues.get(name) ?? [];
    const [holder] = queue;
    const rest = queue.filter((ticket) => !matches(ticket));
    const [next] = rest;
    if (next === undefined) this.#queues.delete(name);
    else this.#queues.set(name, rest);
    if (next !== undefined && next !== holder) grant(next);
  }
}

const grant = ({ worker, id }: Ticket): void => {
  const message: MutexGrant = { mutex: 'granted', id };
  worker.send(message, () => undefined);
};

/** The worker's side of the channel to its supervisor. */
export interface SupervisorChannel {
  send(message: unknown): unknown;
  onMessage(listener: (message: unknown) => void): void;
}

/** In a worker: the mutexes of all names. */
export class WorkerMutexes {
  readonly #channel: SupervisorChannel;
  readonly #granted = new Map<number, () => void>();
  #lastId = 0;

  constructor(channel: SupervisorChannel) {
    this.#channel = channel;
    channel.onMessage((message) => {
      if (isGrant(message)) this.#granted.get(message.id)?.();
    });
  }

  /** @param queueLimit how many of this process may wait */
  of(name: string, queueLimit: number): Limiter {
    // One of this process stands in the supervisor's queue; the others wait here.
    const here = new Semaphore(1, queueLimit);
    let id = 0;
    return {
      acquire: async (waitMs) => {
        const until = performance.now() + waitMs;
        await here.acquire(waitMs);
        try {
          id = await this.#acquire(name, Math.max(0, until - performance.now()), waitMs);
        } catch (error) {
          here.release();
          throw error;
        }
      },
      release: () => {
        this.#tell({ mutex: 'release', name, id });
        here.release();
      },
    };
  }

  async #acquire(name: string, left: number, waitMs: number): Promise<number> {
    const id = ++this.#lastId;
    let timer: NodeJS.Timeout | undefined;
    try {
      await new Promise<void>((resolve, reject) => {
        this.#granted.set(id, resolve);
        timer = setTimeout(() => {
          // Also releases a mutex whose grant is on its way.
          this.#tell({ mutex: 'release', name, id });
          reject(new NoPermitError(`not acquired within ${waitMs} ms`));
        }, left);
        this.#tell({ mutex: 'acquire', name, id });
      });
    } finally {
      clearTimeout(timer);
      this.#granted.delete(id);
    }
    return id;
  }

  #tell(request: MutexRequest): void {
    this.#channel.send(request);
  }
}
