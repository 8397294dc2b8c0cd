import { EstuaryError, unauthorized } from '../../errors.ts';
import type { GssapiIdentity, PresentedCredentials } from '../identity.ts';
import type { AuthPlugin } from '../plugin.ts';
import { GSSAPI_FAILED } from './kerberos-verifier.ts';
import type { Principal, PrincipalMapping } from './principal.ts';
import { SpnegoTokenError, decodeNegotiateToken, parseSpnegoToken } from './spnego-token.ts';
import type { TicketService } from './spnego-token.ts';
import type { TicketVerifier } from './ticket-verifier.ts';

/** `Authorization: Negotiate` (RFC 4559): structure, ticket, subject; the cheap checks first. */
export class SpnegoPlugin implements AuthPlugin {
  readonly method = 'gssapi';
  readonly #verifier: TicketVerifier;
  readonly #mapping: PrincipalMapping;

  constructor(verifier: TicketVerifier, mapping: PrincipalMapping) {
    this.#verifier = verifier;
    this.#mapping = mapping;
  }

  hint({ authorization }: PresentedCredentials): string | undefined {
    const token = negotiateToken(authorization);
    if (token === undefined || this.#verifier.hint === undefined) return undefined;
    try {
      return this.#verifier.hint(readTicket(token));
    } catch (error) {
      if (error instanceof EstuaryError) return undefined;
      throw error;
    }
  }

  /** @throws EstuaryError 401 with the reason in its detail only, 503 when tickets cannot be verified now */
  async authenticate({ authorization }: PresentedCredentials): Promise<GssapiIdentity | undefined> {
    const token = negotiateToken(authorization);
    if (token === undefined) return undefined;
    const ticket = readTicket(token);
    const { principal, replyToken, unverified } = await this.#verifier.verify(token, ticket);
    return { ...this.identityOf(principal), note: unverified, replyToken };
  }

  /** Whom a principal is here. @throws EstuaryError 401 `GSSAPI_PRINCIPAL_NOT_MAPPED` */
  identityOf(principal: Principal): GssapiIdentity {
    const mapped = this.#mapping.map(principal);
    if ('unmapped' in mapped)
      throw unauthorized('GSSAPI_PRINCIPAL_NOT_MAPPED', 'principal not mapped', {
        detail: `${principal.text}: ${mapped.unmapped}`,
      });
    return {
      method: 'gssapi',
      requester: `gssapi:${principal.text}`,
      display: principal.text,
      principal: principal.text,
      name: this.#mapping.nameOf(principal),
      subject: mapped.subject,
      replyToken: undefined,
    };
  }
}

/** What follows the scheme `Negotiate` (RFC 9110 §11.1: without case); undefined for other schemes. */
function negotiateToken(authorization: string | undefined): string | undefined {
  if (authorization === undefined || !/^negotiate(?: |$)/i.test(authorization)) return undefined;
  return authorization.slice('negotiate'.length).trim();
}

function readTicket(token: string): TicketService {
  try {
    return parseSpnegoToken(decodeNegotiateToken(token));
  } catch (error) {
    if (!(error instanceof SpnegoTokenError)) throw error;
    throw unauthorized('GSSAPI_FAILED', GSSAPI_FAILED, { detail: `${error.defect}: ${error.message}` });
  }
}
