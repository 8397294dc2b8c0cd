import { unauthorized } from '../../errors.ts';
import type { GssapiIdentity } from '../identity.ts';
import { GSSAPI_FAILED } from './kerberos-verifier.ts';
import type { PrincipalMapping } from './principal-mapping.ts';
import { SpnegoTokenError, decodeNegotiateToken, parseSpnegoToken } from './spnego-token.ts';
import type { TicketService } from './spnego-token.ts';
import type { TicketVerifier } from './ticket-verifier.ts';

/** A Kerberos identity, and what the audit has to say about how it was found. */
export interface SpnegoOutcome {
  readonly identity: GssapiIdentity;
  readonly detail: string | undefined;
}

/** `Authorization: Negotiate` (RFC 4559): structure, ticket, subject; the cheap checks first. */
export class SpnegoAuthenticator {
  readonly #verifier: TicketVerifier;
  readonly #mapping: PrincipalMapping;

  constructor(verifier: TicketVerifier, mapping: PrincipalMapping) {
    this.#verifier = verifier;
    this.#mapping = mapping;
  }

  /**
   * @param token the base64 after `Negotiate `
   * @throws EstuaryError 401 with the reason in its detail only, 503 when tickets cannot be verified now
   */
  async authenticate(token: string): Promise<SpnegoOutcome> {
    const ticket = readTicket(token);
    const { principal, replyToken, unverified } = await this.#verifier.verify(token, ticket);
    const mapped = this.#mapping.map(principal);
    if ('unmapped' in mapped)
      throw unauthorized('GSSAPI_PRINCIPAL_NOT_MAPPED', 'principal not mapped', {
        detail: `${principal.text}: ${mapped.unmapped}`,
      });
    const identity: GssapiIdentity = {
      method: 'gssapi',
      requester: `gssapi:${principal.text}`,
      display: principal.text,
      principal: principal.text,
      subject: mapped.subject,
      replyToken,
    };
    return { identity, detail: unverified };
  }
}

function readTicket(token: string): TicketService {
  try {
    return parseSpnegoToken(decodeNegotiateToken(token));
  } catch (error) {
    if (!(error instanceof SpnegoTokenError)) throw error;
    throw unauthorized('GSSAPI_FAILED', GSSAPI_FAILED, { detail: `${error.defect}: ${error.message}` });
  }
}
