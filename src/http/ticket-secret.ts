/**
 * The secret from which the keys of TLS session tickets are derived. Nodes can share it. Each node derives a new secret
 * from the old one in each period and forgets the old one, so a stolen secret does not open earlier tickets (a TLS 1.2
 * ticket contains the keys of its connection).
 */
import { hash, hkdfSync, randomBytes } from 'node:crypto';

/** Milliseconds; clients with a ticket of an earlier period perform a full handshake. */
export const TICKET_PERIOD = 12 * 3_600_000;
const OCTETS = 48;
/** Octets of Node's ticket keys: name, HMAC, AES. */
const KEYS = 48;

interface SharedTicketSecret {
  readonly secret: string;
  /** Number of its period since the epoch. */
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

  static random(now: () => number = Date.now): TicketSecret {
    return new TicketSecret(randomBytes(OCTETS), periodAt(now()), now);
  }

  /** The secret of another node. */
  static of({ secret, period }: SharedTicketSecret, now: () => number = Date.now): TicketSecret {
    return new TicketSecret(Buffer.from(secret, 'hex'), period, now);
  }

  share(): SharedTicketSecret {
    this.#goOn();
    return { secret: this.#secret.toString('hex'), period: this.#period };
  }

  /**
   * The current ticket keys of one listener. Other anchors give other keys: clients that the old anchors accepted must
   * present their certificate again.
   * @param anchors PEM, of client certificates
   */
  keysOf(listener: string, anchors: readonly string[]): Buffer {
    this.#goOn();
    const info = `estuary ${listener} tickets ${hash('sha256', anchors.join('\n'))}`;
    return Buffer.from(hkdfSync('sha256', this.#secret, '', info, KEYS));
  }

  /** A clock that was set back changes nothing: derivation is one-way. */
  #goOn(): void {
    for (const period = periodAt(this.#now()); this.#period < period; this.#period++)
      this.#secret.set(Buffer.from(hkdfSync('sha256', this.#secret, '', 'estuary next ticket secret', OCTETS)));
  }
}

const periodAt = (time: number): number => Math.floor(time / TICKET_PERIOD);
