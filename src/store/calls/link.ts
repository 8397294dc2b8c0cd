/** The way of a caller's messages to whoever has the database: a thread of its own (thread-link.ts), or a socket (socket-link.ts). */
import type { EstuaryError } from '../../errors.ts';
import { StoreLost } from '../store-lost.ts';
import type { Request, Response } from './calls.ts';

/** What comes of a link. */
export interface LinkEvents {
  /** @param at when it was sent, see clock.ts; Infinity where nothing can come between the sender's acts and their being known */
  response(response: Response, at: number): void;
  /** Once: nothing comes any more. */
  end(reason: EstuaryError): void;
}

export interface Link {
  send(request: Request): void;
}

/** Begins a life of the other side, or a connection to it. */
export type OpenLink = (events: LinkEvents) => Link;

/** Why calls that got no answer failed. @param detail for the log */
export function lost(detail: string): StoreLost {
  return new StoreLost(detail);
}
