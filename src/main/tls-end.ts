import { createSecureContext, type TlsOptions } from 'node:tls';
import type { Server } from 'node:https';
import type { Config } from '../config/schema.ts';
import { handshakeOptions, present, secureContext, type TlsListener, type TlsMaterial } from '../http/tls.ts';

/** Our end of the TLS connections of one listener. */
export class TlsEnd {
  readonly #listener: TlsListener;

  /** @param ticketSecret given where other processes resume this one's sessions */
  constructor(name: TlsListener['name'], { server, tls, admin }: Config, ticketSecret: Buffer | undefined) {
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
}
