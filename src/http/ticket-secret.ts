/**
 * The secret from which the keys of TLS session tickets are derived. Nodes can share it. Each node advances it when a period is over: each
 * secret is derived from the one before, which is then forgotten. So a stolen secret does not open earlier tickets (a TLS 1.2 ticket
 * contains the keys of its connection).
 */
import { hash, hkdfSync, randomBytes } from 'node:crypto';

/** Milliseconds; a ticket of a period that is over is good for nothing, and its client shakes hands in full. */
export const TICKET_PERIOD = 12 * 3_600_000;
const OCTETS = 48;
/** Octets that Node wants for the keys: name, HMAC, AES. */
const KEYS = 48;

/** A secret in a form that another node can take. */
interface SharedTicketSecret {
  readonly secret: string;
  /** Which period it is of, counted from the epoch. */
  readonly period: number;
}

export class TicketSecret {
  readonly #now: () => number;
  readonly #secret: Buffer;
  #period: number;

  private constructor(secret: Buffer, period: number, now: () => number) {
    this.#secret = secret;
    this.#period = period;
    this.#now = now;
  }

  /** A new one. @param now milliseconds since the epoch */
  static random(now: () => number = Date.now): TicketSecret {
    return new TicketSecret(randomBytes(OCTETS), periodAt(now()), now);
  }

  /** The secret of another node. */
  static of({ secret, period }: SharedTicketSecret, now: () => number = Date.now): TicketSecret {
    return new TicketSecret(Buffer.from(secret, 'hex'), period, now);
  }

  /** For another node. */
  share(): SharedTicketSecret {
    this.#goOn();
    return { secret: this.#secret.toString('hex'), period: this.#period };
  }

  /**
   * The present keys of one listener, in Node's form. Other anchors, other keys: whom the handshake let in under the former ones has to
   * show its certificate again.
   *
   * @param anchors PEM, of client certificates
   */
  keysOf(listener: string, anchors: readonly string[]): Buffer {
    this.#goOn();
    const info = `estuary ${listener} tickets ${hash('sha256', anchors.join('\n'))}`;
    return Buffer.from(hkdfSync('sha256', this.#secret, '', info, KEYS));
  }

  /** A clock that was set back changes nothing: there is no way back. */
  #goOn(): void {
    for (const period = periodAt(this.#now()); this.#period < period; this.#period++)
      this.#secret.set(Buffer.from(hkdfSync('sha256', this.#secret, '', 'estuary next ticket secret', OCTETS)));
  }
}

const periodAt = (time: number): number => Math.floor(time / TICKET_PERIOD);
