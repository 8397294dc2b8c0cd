import type { Problem, Warning } from '../../config/problem.ts';
import type { Config } from '../../config/schema.ts';
import { describe, EstuaryError, failed, unauthorized } from '../../errors.ts';
import type { IsolatedLog } from '../../process/isolated-process.ts';
import { IsolatedError } from '../../process/protocol.ts';
import { CredentialRefused } from '../guarded-attempts.ts';
import type { GssapiIdentity, PresentedCredentials } from '../identity.ts';
import type { Directory } from '../ldap/directory.ts';
import type { AuthPlugin } from '../plugin.ts';
import { AccountLookup } from './account-lookup.ts';
import { GSSAPI_FAILED, KerberosVerifier, type TicketVerifier, UnverifiedTickets } from './kerberos-verifier.ts';
import { checkPrincipalMapping, parsePrincipal, type Principal, PrincipalMapping } from './principal.ts';
import { decodeNegotiateToken, parseSpnegoToken, SpnegoTokenError, type TicketService } from './spnego-token.ts';

export interface GssapiOptions {
  readonly config: Config['gssapi'];
  /** The server's environment; the variables of Kerberos libraries are passed to the child process. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly log: IsolatedLog;
  /** For `[gssapi.directory]`. */
  readonly directory?: Pick<Directory, 'lookUp'> | undefined;
}

/** The enabled `Negotiate` method. */
export interface Gssapi {
  readonly plugin: SpnegoPlugin;
  /**
   * Starts the child process, if any. Warns of missing credentials and looks for them again in each request: gssproxy
   * may start later, and a keytab may be in replacement.
   * @throws Error if the library cannot be loaded, as {@link checkGssapi} reports
   */
  readonly start: () => Promise<void>;
  /** Why tickets cannot be verified now; undefined if they can. Absent if nothing is verified. */
  readonly missingCredentials?: () => Promise<string | undefined>;
  /** Ends the child process, if any. */
  readonly stop: () => Promise<void>;
}

export function createGssapi(options: GssapiOptions): Gssapi {
  const { config, log } = options;
  const mapping = new PrincipalMapping(config);
  const accounts = accountLookup(options);
  if (!config.require_crypto_verification) {
    // The configuration check warns of it, also at start. There is no library and no key to load.
    const nothing = (): Promise<void> => Promise.resolve();
    return { plugin: new SpnegoPlugin(new UnverifiedTickets(), mapping), start: nothing, stop: nothing };
  }
  const verifier = kerberosVerifier(options);
  return {
    plugin: new SpnegoPlugin(verifier, mapping, accounts),
    async start() {
      await verifier.start();
      const reason = await verifier.missingCredentials();
      if (reason !== undefined)
        log.warn({ reason }, `there are no usable Kerberos credentials for ${String(config.service_principal)}`);
    },
    missingCredentials: async () => (await verifier.missingCredentials()) ?? verifier.replayCacheProblem(),
    stop: () => verifier.stop(),
  };
}

function accountLookup({ config, directory }: GssapiOptions): AccountLookup | undefined {
  const { directory: settings, service_principal } = config;
  if (settings === undefined || directory === undefined || service_principal === undefined) return undefined;
  return new AccountLookup(directory, settings, parsePrincipal(service_principal).realm);
}

const SILENT: IsolatedLog = { info: () => undefined, warn: () => undefined, error: () => undefined };

function kerberosVerifier({ config, environment, log }: GssapiOptions): KerberosVerifier {
  const { service_principal, keytab, gssproxy } = config;
  if (service_principal === undefined) throw failed('GSSAPI_MISCONFIGURED', 'gssapi.service_principal is missing');
  return new KerberosVerifier({ config: { service_principal, keytab, gssproxy }, environment, log });
}

/**
 * Problems of `[gssapi]` beyond single keys: the mapping, the npm package, the keytab. An unavailable gssproxy is not a
 * configuration error.
 */
export async function checkGssapi(options: Pick<GssapiOptions, 'config' | 'environment'>): Promise<{
  /** Of the configuration alone. */
  readonly mistakes: readonly Problem[];
  readonly problems: readonly Problem[];
  readonly warnings: readonly Warning[];
}> {
  const { config } = options;
  if (!config.enabled) return { mistakes: [], problems: [], warnings: [] };
  const mistakes = checkPrincipalMapping(config).map(({ key, message }) => ({
    key: `gssapi.${key}`,
    message: `${message} (a distinguished name as in RFC 4514)`,
  }));
  if (!config.require_crypto_verification) return { mistakes, problems: [], warnings: [] };
  const { problem, warning } = await checkCredentials({ ...options, log: SILENT });
  return {
    mistakes,
    problems: problem === undefined ? [] : [problem],
    warnings: warning === undefined ? [] : [warning],
  };
}

async function checkCredentials(
  options: GssapiOptions,
): Promise<{ readonly problem?: Problem; readonly warning?: Warning }> {
  const verifier = kerberosVerifier(options);
  try {
    await verifier.start();
    const missing = options.config.gssproxy ? undefined : await verifier.missingCredentials();
    if (missing !== undefined)
      return {
        problem: {
          key: 'gssapi.keytab',
          message: `provides no credentials: ${missing} (a readable keytab with a key of gssapi.service_principal)`,
        },
      };
    const cache = await verifier.replayCacheProblem();
    const message = `every ticket gets 503, because the ${cache} (a folder that the server can write to, in the environment variable KRB5RCACHEDIR)`;
    return cache === undefined ? {} : { warning: { key: 'gssapi.enabled', message } };
  } catch (error) {
    const what =
      error instanceof IsolatedError && error.code === 'NO_PACKAGE'
        ? `needs the optional npm package kerberos, which cannot be loaded: ${describe(error)}`
        : `cannot start the Kerberos library: ${describe(error)}`;
    const message = `${what} (install libgssapi-krb5-2, then libkrb5-dev, python3, make and g++, and run "npm rebuild kerberos"; or false)`;
    return { problem: { key: 'gssapi.enabled', message } };
  } finally {
    await verifier.stop();
  }
}

/** `Authorization: Negotiate` (RFC 4559): checks structure, ticket and subject, cheap checks first. */
export class SpnegoPlugin implements AuthPlugin {
  readonly method = 'gssapi';
  readonly #verifier: TicketVerifier;
  readonly #mapping: PrincipalMapping;
  readonly #accounts: Pick<AccountLookup, 'accountOf'> | undefined;

  constructor(verifier: TicketVerifier, mapping: PrincipalMapping, accounts?: Pick<AccountLookup, 'accountOf'>) {
    this.#verifier = verifier;
    this.#mapping = mapping;
    this.#accounts = accounts;
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

  /** @throws EstuaryError 401 with the reason only in its detail, 503 if tickets cannot be verified now */
  async authenticate({ authorization }: PresentedCredentials): Promise<GssapiIdentity | undefined> {
    const token = negotiateToken(authorization);
    if (token === undefined) return undefined;
    const ticket = readTicket(token);
    const { principal, replyToken, unverified } = await this.#verifier.verify(token, ticket);
    const identity = this.identityOf(await this.#accountOf(principal));
    const note = unverified ?? (identity.display === principal.text ? undefined : `as ${principal.text}`);
    return { ...identity, note, replyToken };
  }

  /** @throws EstuaryError 401 `GSSAPI_FAILED`, 503 if the directory does not answer */
  async #accountOf(principal: Principal): Promise<Principal> {
    if (this.#accounts === undefined) return principal;
    try {
      return await this.#accounts.accountOf(principal);
    } catch (error) {
      if (!(error instanceof CredentialRefused)) throw error;
      throw unauthorized('GSSAPI_FAILED', GSSAPI_FAILED, { detail: `${principal.text}: ${error.message}` });
    }
  }

  /** The identity of a principal. @throws EstuaryError 401 `GSSAPI_PRINCIPAL_NOT_MAPPED` */
  identityOf(authenticated: Principal): GssapiIdentity {
    const principal = this.#mapping.written(authenticated);
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

/** The token of the `Negotiate` scheme (RFC 9110 §11.1: case-insensitive); undefined for other schemes. */
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
