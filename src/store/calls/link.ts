/** How the calls of a process reach the thread that has the database open (thread-link.ts). */
import type { EstuaryError } from '../../errors.ts';
import { StoreLost } from './errors.ts';
import type { Request, Response } from './calls.ts';

export interface LinkEvents {
  response(response: Response): void;
  /** Called once: no response follows. */
  end(reason: EstuaryError): void;
}

export interface Link {
  send(request: Request): void;
}

/** Starts the thread, also again after it ended. */
export type OpenLink = (events: LinkEvents) => Link;

/** Why calls without an answer failed. @param detail for the log */
export function lost(detail: string): StoreLost {
  return new StoreLost(detail);
}
