import { makePrincipal } from './principal.ts';
import type { TicketService } from './spnego-token.ts';
import type { TicketVerifier, VerifiedTicket } from './ticket-verifier.ts';

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
