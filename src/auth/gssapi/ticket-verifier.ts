import { makePrincipal, type Principal } from './principal.ts';
import type { TicketService } from './spnego-token.ts';

/** The sender according to a token. */
export interface VerifiedTicket {
  readonly principal: Principal;
  /** base64 of the token for `WWW-Authenticate: Negotiate …` (mutual authentication), if requested. */
  readonly replyToken: string | undefined;
  /** If nothing was verified: the reason, for the audit log. */
  readonly unverified?: string;
}

/** Verifies `Authorization: Negotiate`. */
export interface TicketVerifier {
  /** The claim of an unverified ticket, for the audit log; absent if tickets are verified. */
  hint?(ticket: TicketService): string;
  /** Why credentials are missing; undefined if they are available. Absent if none are needed. */
  missingCredentials?(): Promise<string | undefined>;
  start(): Promise<void>;
  stop(): Promise<void>;
  /**
   * @param token base64 of a token with a valid structure
   * @param ticket its cleartext
   * @throws EstuaryError 401 if the token proves nothing, 503 if it cannot be verified now
   */
  verify(token: string, ticket: TicketService): Promise<VerifiedTicket>;
}

/** Maximum characters in the audit log. */
const MAX_HINT = 256;

/**
 * `require_crypto_verification = false`: takes the service name in the ticket's cleartext as the principal. It
 * authenticates nobody, since anyone can create such a token. For development, and for hints next to client
 * certificates.
 */
export class UnverifiedTickets implements TicketVerifier {
  async start(): Promise<void> {
    // No library and no key to load.
  }

  async stop(): Promise<void> {}

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
