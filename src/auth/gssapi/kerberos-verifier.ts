import { describe, EstuaryError, failed, isUnavailable, unauthorized, unavailable } from '../../errors.ts';
import { type IsolatedLog, IsolatedProcess } from '../../process/isolated-process.ts';
import { fileURLToPath } from 'node:url';
import { IsolatedError, startedModule } from '../../process/protocol.ts';
import { makePrincipal, parsePrincipal, type Principal } from './principal.ts';
import { readAccepted, type StartArgs } from './spnego-protocol.ts';
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
  /**
   * @param token base64 of a token with a valid structure
   * @param ticket its cleartext
   * @throws EstuaryError 401 if the token proves nothing, 503 if it cannot be verified now
   */
  verify(token: string, ticket: TicketService): Promise<VerifiedTicket>;
}

/** The `[gssapi]` keys that select the credentials. */
interface CredentialConfig {
  readonly keytab?: string | undefined;
  readonly gssproxy: boolean;
}

/** Variables of the Kerberos and GSS-API libraries that an administrator may set for the server. */
const PASSED_ON = [
  'KRB5_TRACE',
  'KRB5RCACHEDIR',
  'GSS_MECH_CONFIG',
  'GSSPROXY_SOCKET',
  'LD_LIBRARY_PATH',
  'PATH',
  'TMPDIR',
  'TZ',
] as const;

const CHILD = startedModule('auth/gssapi/spnego-child');
/** Comes first in KRB5_CONFIG, so that its settings count. */
const ACCEPTOR_CONFIG = fileURLToPath(new URL('acceptor-krb5.conf', CHILD));

/**
 * The environment of the GSSAPI child process. It fixes what must not depend on how the server was started: the
 * credentials, that a host name is used as written, and the replay cache, which KRB5RCACHETYPE or KRB5RCACHENAME could
 * turn off.
 * @param threads concurrent library calls; each takes a thread of libuv's pool
 */
function kerberosEnvironment(
  config: CredentialConfig,
  server: Readonly<Record<string, string | undefined>>,
  threads: number,
): Record<string, string> {
  const env: Record<string, string> = {
    KRB5_CONFIG: `${ACCEPTOR_CONFIG}:${server['KRB5_CONFIG'] ?? '/etc/krb5.conf'}`,
    KRB5RCACHENAME: 'dfl:',
    UV_THREADPOOL_SIZE: String(threads),
  };
  for (const name of PASSED_ON) {
    const value = server[name];
    if (value !== undefined) env[name] = value;
  }
  if (config.gssproxy) {
    // REMOTE_ONLY: without gssproxy the library must not fall back to another keytab.
    return { ...env, GSS_USE_PROXY: 'yes', GSSPROXY_BEHAVIOR: 'REMOTE_ONLY', KRB5_KTNAME: 'MEMORY:none' };
  }
  if (config.keytab === undefined) throw failed('GSSAPI_MISCONFIGURED', 'gssapi: neither keytab nor gssproxy');
  return { ...env, KRB5_KTNAME: `FILE:${config.keytab}` };
}

interface KerberosVerifierOptions {
  readonly config: CredentialConfig & { readonly service_principal: string };
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly log: IsolatedLog;
  /** Maximum milliseconds to wait for a permit, and again for the library. */
  readonly deadlineMs?: number;
}

/** Public message of every rejection. */
export const GSSAPI_FAILED = 'GSSAPI authentication failed';

const DEADLINE_MS = 5000;
const START_TIMEOUT_MS = 15_000;
const RETRY_AFTER = 10;
/**
 * Concurrent library calls of a millisecond or two; more than the number of cores helps only while gssproxy is slow.
 */
const CONCURRENCY = 4;
const QUEUE_LIMIT = 128;
/** Maximum characters of a client's service name in the logs. */
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
      module: CHILD,
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

  get pid(): number | undefined {
    return this.#process.pid;
  }

  get down(): string | undefined {
    return this.#process.state === 'up' ? undefined : this.#process.reason;
  }

  /** @throws IsolatedError `NO_PACKAGE` if the npm package `kerberos` or a system library is missing */
  async start(): Promise<void> {
    await this.#process.start();
  }

  async stop(): Promise<void> {
    await this.#process.stop();
  }

  /** Why credentials are missing; undefined if they are available. */
  async missingCredentials(): Promise<string | undefined> {
    try {
      await this.#process.call('probe', undefined, { deadlineMs: this.#deadlineMs });
      return undefined;
    } catch (error) {
      // Being busy is no reason to direct clients elsewhere.
      return this.down ?? (error instanceof IsolatedError ? describe(error) : undefined);
    }
  }

  /** Why replays cannot be detected, so that no ticket is accepted; undefined if they can, or gssproxy does it. */
  async replayCacheProblem(): Promise<string | undefined> {
    const answer = await this.#process.call('replayCache', undefined, { deadlineMs: this.#deadlineMs }).catch(() => '');
    return typeof answer === 'string' && answer !== '' ? answer : undefined;
  }

  async verify(token: string, ticket: TicketService): Promise<VerifiedTicket> {
    const { principal, replyToken } = await this.#accept(token, ticket);
    // The library accepts every ticket that a key of the keytab opens, and in Active Directory all services of an
    // account have one key: of any class, and in any realm.
    if (ticket.realm !== this.#service.realm) throw refused('the ticket is from another realm', ticket);
    const [wanted, presented] = [this.#service, ticket].map(({ components }) => components[0]?.toLowerCase());
    if (presented !== wanted) throw refused('the ticket is for another service', ticket);
    return { principal: parse(principal, ticket), replyToken: replyToken ?? undefined };
  }

  async #accept(token: string, ticket: TicketService): Promise<ReturnType<typeof readAccepted>> {
    try {
      return readAccepted(await this.#process.call('accept', { token }, { deadlineMs: this.#deadlineMs }));
    } catch (error) {
      if (error instanceof IsolatedError && error.code === 'REFUSED') throw refused(error.message, ticket);
      if (isUnavailable(error)) throw error;
      // Without credentials, or if the library crashed or hung, the client's ticket was not checked.
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

/**
 * `require_crypto_verification = false`: takes the service name in the ticket's cleartext as the principal. It
 * authenticates nobody, since anyone can create such a token. For development, and for hints next to client
 * certificates.
 */
export class UnverifiedTickets implements TicketVerifier {
  hint({ components, realm }: TicketService): string {
    return `Kerberos hint, NOT verified: ${makePrincipal(components, realm).text.slice(0, MAX_NAME)}`;
  }

  verify(_token: string, ticket: TicketService): Promise<VerifiedTicket> {
    return Promise.resolve({
      principal: makePrincipal(ticket.components, ticket.realm),
      replyToken: undefined,
      unverified: 'the ticket was NOT verified (gssapi.require_crypto_verification = false)',
    });
  }
}
