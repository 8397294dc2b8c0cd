import { EstuaryError, describe, unauthorized, unavailable, isUnavailable } from '../../errors.ts';
import { IsolatedError } from '../../process/protocol.ts';
import { IsolatedProcess } from '../../process/isolated-process.ts';
import type { IsolatedLog } from '../../process/isolated-process.ts';
import { siblingModule } from '../../process/sibling-module.ts';
import { kerberosEnvironment } from './kerberos-environment.ts';
import type { CredentialConfig } from './kerberos-environment.ts';
import { makePrincipal, parsePrincipal } from './principal.ts';
import type { Principal } from './principal.ts';
import { readAccepted } from './spnego-protocol.ts';
import type { StartArgs } from './spnego-protocol.ts';
import type { TicketService } from './spnego-token.ts';
import type { TicketVerifier, VerifiedTicket } from './ticket-verifier.ts';

export interface KerberosVerifierOptions {
  readonly config: CredentialConfig & { readonly service_principal: string };
  /** The server's environment, of which the Kerberos libraries' variables are passed on. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly log: IsolatedLog;
  /** Milliseconds that a client waits at most for a permit, and again for the library. */
  readonly deadlineMs?: number;
}

/** Public sentence of every refusal (service-spec.md, "Messages used for authentication failures"). */
export const GSSAPI_FAILED = 'GSSAPI authentication failed';

const DEADLINE_MS = 5000;
const START_TIMEOUT_MS = 15_000;
const RETRY_AFTER = 10;
/** Library calls at a time. One takes a millisecond or two; more than the cores only matters while gssproxy is slow. */
const CONCURRENCY = 4;
const QUEUE_LIMIT = 128;
/** Characters of a client's word for a service that are worth logging. */
const MAX_NAME = 256;
const SUBJECT = 'Kerberos authentication';

/** Verifies tickets with the system's GSS-API library, in a child process with a deadline. */
export class KerberosVerifier implements TicketVerifier {
  readonly #process: IsolatedProcess;
  readonly #service: Principal;
  readonly #deadlineMs: number;

  constructor({ config, environment, log, deadlineMs = DEADLINE_MS }: KerberosVerifierOptions) {
    this.#service = parsePrincipal(config.service_principal);
    this.#deadlineMs = deadlineMs;
    this.#process = new IsolatedProcess({
      module: siblingModule(import.meta.url, './spnego-child'),
      code: 'GSSAPI',
      subject: SUBJECT,
      env: kerberosEnvironment(config, environment, CONCURRENCY),
      init: { service: this.#service.components.join('@') } satisfies StartArgs,
      startTimeoutMs: START_TIMEOUT_MS,
      concurrency: CONCURRENCY,
      queueLimit: QUEUE_LIMIT,
      retryAfter: RETRY_AFTER,
      log,
    });
  }

  /** The child's process id while it is up. */
  get pid(): number | undefined {
    return this.#process.pid;
  }

  /** Why tickets cannot be verified now; undefined while they can. */
  get down(): string | undefined {
    return this.#process.state === 'up' ? undefined : this.#process.reason;
  }

  /** @throws IsolatedError `NO_PACKAGE` when the npm package `kerberos` or a library of the system is missing */
  async start(): Promise<void> {
    await this.#process.start();
  }

  async stop(): Promise<void> {
    await this.#process.stop();
  }

  async missingCredentials(): Promise<string | undefined> {
    try {
      await this.#process.call('probe', undefined, { deadlineMs: this.#deadlineMs });
      return undefined;
    } catch (error) {
      // Busy is no reason to send anybody elsewhere.
      return this.down ?? (error instanceof IsolatedError ? describe(error) : undefined);
    }
  }

  async verify(token: string, ticket: TicketService): Promise<VerifiedTicket> {
    const { principal, replyToken } = await this.#accept(token, ticket);
    // The library takes any key of the keytab for this service and host, whatever the realm; the configuration names one.
    if (ticket.realm !== this.#service.realm) throw refused('the ticket is of another realm', ticket);
    return { principal: parse(principal, ticket), replyToken: replyToken ?? undefined };
  }

  async #accept(token: string, ticket: TicketService): Promise<ReturnType<typeof readAccepted>> {
    try {
      return readAccepted(await this.#process.call('accept', { token }, { deadlineMs: this.#deadlineMs }));
    } catch (error) {
      if (error instanceof IsolatedError && error.code === 'REFUSED') throw refused(error.message, ticket);
      if (isUnavailable(error)) throw error;
      // Without credentials of our own, or when the library crashed or hung, the client's ticket was not judged.
      const options = { retryAfter: RETRY_AFTER, detail: describe(error), cause: error };
      throw unavailable('GSSAPI_UNAVAILABLE', `${SUBJECT} is temporarily unavailable`, options);
    }
  }
}

function refused(reason: string, ticket: TicketService): EstuaryError {
  const { text } = makePrincipal(ticket.components, ticket.realm);
  return unauthorized('GSSAPI_FAILED', GSSAPI_FAILED, { detail: `${reason} (ticket for ${text.slice(0, MAX_NAME)})` });
}

function parse(principal: string, ticket: TicketService): Principal {
  try {
    return parsePrincipal(principal);
  } catch (error) {
    throw refused(`principal "${principal}": ${describe(error)}`, ticket);
  }
}
