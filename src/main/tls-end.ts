import { createSecureContext, type TlsOptions } from 'node:tls';
import type { Server } from 'node:https';
import type { Config } from '../config/schema.ts';
import type { TicketSecret } from '../http/ticket-secret.ts';
import {
  handshakeOptions,
  present,
  renewTicketKeys,
  secureContext,
  type TlsListener,
  type TlsMaterial,
} from '../http/tls.ts';

/** Our end of the TLS connections of one listener. */
export class TlsEnd {
  readonly #listener: TlsListener;

  constructor(name: TlsListener['name'], { server, tls, admin }: Config, ticketSecret: TicketSecret) {
    this.#listener = {
      name,
      mode: name === 'est' ? tls.client_auth.mode : admin.tls.mode,
      handshakeTimeout: server.handshake_timeout * 1000,
      ticketSecret,
    };
  }

  /** For making the server. */
  get options(): TlsOptions {
    return handshakeOptions(this.#listener);
  }

  /** @throws Error when TLS cannot be spoken with it */
  check(material: TlsMaterial): void {
    createSecureContext(secureContext(material, this.#listener));
  }

  /** Puts it in force. */
  present(server: Server, material: TlsMaterial): void {
    present(server, material, this.#listener);
  }

  /** From time to time: the keys of session tickets are those of a period. */
  renewTicketKeys(server: Server, material: TlsMaterial): void {
    renewTicketKeys(server, material, this.#listener);
  }
}
