/** Which requests are at work, on all listeners of a process: what a reload has replaced may be closed once none of them uses it. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { exchangeOf } from './exchange.ts';

/** Those that came between two calls of {@link OpenRequests.endOfThese}. */
interface Generation {
  open: number;
  /** Called at the end of the last one, where nobody comes to them any more. */
  ended: (() => void) | undefined;
}

export class OpenRequests {
  #current: Generation = { open: 0, ended: undefined };
  #before: Promise<unknown> = Promise.resolve();

  /** Follows every request of a server. */
  follow(server: Server): void {
    server.prependListener('request', (request: IncomingMessage, response: ServerResponse) => {
      const generation = this.#current;
      generation.open++;
      const end = (): void => {
        generation.open--;
        if (generation.open === 0) generation.ended?.();
      };
      response.once('close', () => {
        // What was asked for may go on without the one who asked.
        const { atWork } = exchangeOf(request);
        if (atWork === undefined) end();
        else void atWork.then(end);
      });
    });
  }

  /** Resolves once every request that has come by now is answered, or given up and what it asked for is done. */
  endOfThese(): Promise<unknown> {
    const these = this.#current;
    this.#current = { open: 0, ended: undefined };
    const end = these.open === 0 ? undefined : new Promise<void>((resolve) => (these.ended = resolve));
    this.#before = Promise.all([this.#before, end]);
    return this.#before;
  }
}
