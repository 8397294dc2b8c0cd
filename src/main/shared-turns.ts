/**
 * Turns that all worker processes take together (`server.workers` above 1): the supervisor gives them out, one at a time
 * for each name. A worker that dies loses its turn.
 */
import { NoTurnError, Turns, type TurnTaker } from '../process/turns.ts';

/** What a worker tells its supervisor; `id` is the worker's own. */
interface TurnRequest {
  readonly turn: 'enter' | 'leave';
  readonly name: string;
  readonly id: number;
}

/** What the supervisor answers when the turn has come. */
export interface TurnGrant {
  readonly turn: 'yours';
  readonly id: number;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

function isRequest(value: unknown): value is TurnRequest {
  return (
    isObject(value) &&
    (value['turn'] === 'enter' || value['turn'] === 'leave') &&
    typeof value['name'] === 'string' &&
    typeof value['id'] === 'number'
  );
}

function isGrant(value: unknown): value is TurnGrant {
  return isObject(value) && value['turn'] === 'yours' && typeof value['id'] === 'number';
}

/** A worker, as the keeper sees it. */
export interface TurnWorker {
  /** `done` is told of failures, too: a worker that is ending is no error. */
  send(message: TurnGrant, done: () => void): unknown;
}

interface Ticket {
  readonly worker: TurnWorker;
  readonly id: number;
}

/** In the supervisor: who has the turn of each name, and who waits for it. The first of a line has it. */
export class TurnKeeper {
  readonly #lines = new Map<string, Ticket[]>();

  /** Takes what a worker sent; `false`: it is no matter of turns. */
  take(worker: TurnWorker, message: unknown): boolean {
    if (!isRequest(message)) return false;
    const { turn, name, id } = message;
    if (turn === 'leave') this.#remove(name, (ticket) => ticket.worker === worker && ticket.id === id);
    else this.#append(name, { worker, id });
    return true;
  }

  /** The worker is gone, and with it what it had or waited for. */
  gone(worker: TurnWorker): void {
    for (const name of [...this.#lines.keys()]) this.#remove(name, (ticket) => ticket.worker === worker);
  }

  #append(name: string, ticket: Ticket): void {
    const line = this.#lines.get(name) ?? [];
    line.push(ticket);
    this.#lines.set(name, line);
    if (line.length === 1) grant(ticket);
  }

  #remove(name: string, matches: (ticket: Ticket) => boolean): void {
    const line = this.#lines.get(name) ?? [];
    const [holder] = line;
    const rest = line.filter((ticket) => !matches(ticket));
    const [next] = rest;
    if (next === undefined) this.#lines.delete(name);
    else this.#lines.set(name, rest);
    if (next !== undefined && next !== holder) grant(next);
  }
}

const grant = ({ worker, id }: Ticket): void => {
  const message: TurnGrant = { turn: 'yours', id };
  worker.send(message, () => undefined);
};

/** The worker's side of the channel to its supervisor. */
export interface SupervisorChannel {
  send(message: unknown): unknown;
  onMessage(listener: (message: unknown) => void): void;
}

/** In a worker: turns of every name. */
export class WorkerTurns {
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
  of(name: string, queueLimit: number): TurnTaker {
    // One of this process stands in the supervisor's line; the others wait here.
    const here = new Turns(1, queueLimit);
    let id = 0;
    return {
      enter: async (waitMs) => {
        const until = performance.now() + waitMs;
        await here.enter(waitMs);
        try {
          id = await this.#enter(name, until - performance.now(), waitMs);
        } catch (error) {
          here.leave();
          throw error;
        }
      },
      leave: () => {
        this.#tell({ turn: 'leave', name, id });
        here.leave();
      },
    };
  }

  async #enter(name: string, left: number, waitMs: number): Promise<number> {
    const id = ++this.#lastId;
    let timer: NodeJS.Timeout | undefined;
    try {
      await new Promise<void>((resolve, reject) => {
        this.#granted.set(id, resolve);
        timer = setTimeout(() => {
          // Also gives back a turn that is on its way.
          this.#tell({ turn: 'leave', name, id });
          reject(new NoTurnError(`no turn within ${waitMs} ms`));
        }, left);
        this.#tell({ turn: 'enter', name, id });
      });
    } finally {
      clearTimeout(timer);
      this.#granted.delete(id);
    }
    return id;
  }

  #tell(request: TurnRequest): void {
    this.#channel.send(request);
  }
}
