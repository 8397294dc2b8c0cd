import { makePrincipal, type Principal } from './principal.ts';
import type { TicketService } from './spnego-token.ts';

/** Who a token says its sender is. */
export interface VerifiedTicket {
  readonly principal: Principal;
  /** base64 of the token for `WWW-Authenticate: Negotiate …` (mutual authentication), if the client asked for one. */
  readonly replyToken: string | undefined;
  /** Set when nothing was verified: why, for the audit. */
  readonly unverified?: string;
}

/** What stands behind `Authorization: Negotiate`. */
export interface TicketVerifier {
  /** What an unverified ticket claims, for the audit log; absent where tickets are verified. */
  hint?(ticket: TicketService): string;
  /** Why there are no credentials to verify tickets with; undefined while there are. Absent: none are needed. */
  missingCredentials?(): Promise<string | undefined>;
  start(): Promise<void>;
  stop(): Promise<void>;
  /**
   * @param token base64 of a token whose structure has been read
   * @param ticket what its cleartext says
   * @throws EstuaryError 401 when the token proves nothing, 503 when it cannot be checked now
   */
  verify(token: string, ticket: TicketService): Promise<VerifiedTicket>;
}

/** Longer names are cut off in the audit log. */
const MAX_HINT = 256;

/**
 * `require_crypto_verification = false`: takes the service name in the ticket's cleartext for the principal. It
 * authenticates nobody, as anybody can write such a token. For development, and for hints where client certificates
 * authenticate.
 */
export class UnverifiedTickets implements TicketVerifier {
  async start(): Promise<void> {
    // Nothing to start: no library, no key.
  }

  async stop(): Promise<void> {
    // Nothing was started.
  }

  hint({ components, realm }: TicketService): string {
    return `Kerberos hint, NOT verified: ${makePrincipal(components, realm).text.slice(0, MAX_HINT)}`;
  }

  verify(_token: string, ticket: TicketService): Promise<VerifiedTicket> {
    return Promise.resolve({
      principal: makePrincipal(ticket.components, ticket.realm),
      replyToken: undefined,
      unverified: 'the ticket was NOT verified (gssapi.require_crypto_verification = false)',
    });
  }
}
