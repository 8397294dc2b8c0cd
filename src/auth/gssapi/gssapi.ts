import type { Problem } from '../../config/problem.ts';
import type { Config } from '../../config/schema.ts';
import { describe, EstuaryError, failed, unauthorized } from '../../errors.ts';
import type { IsolatedLog } from '../../process/isolated-process.ts';
import { IsolatedError } from '../../process/protocol.ts';
import type { GssapiIdentity, PresentedCredentials } from '../identity.ts';
import type { AuthPlugin } from '../plugin.ts';
import { GSSAPI_FAILED, KerberosVerifier, type TicketVerifier, UnverifiedTickets } from './kerberos-verifier.ts';
import { checkPrincipalMapping, type Principal, PrincipalMapping } from './principal.ts';
import { decodeNegotiateToken, parseSpnegoToken, SpnegoTokenError, type TicketService } from './spnego-token.ts';

export interface GssapiOptions {
  readonly config: Config['gssapi'];
  /** The server's environment; the variables of Kerberos libraries are passed to the child process. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly log: IsolatedLog;
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
  if (!config.require_crypto_verification) {
    // The configuration check warns of it, also at start. There is no library and no key to load.
    const nothing = (): Promise<void> => Promise.resolve();
    return { plugin: new SpnegoPlugin(new UnverifiedTickets(), mapping), start: nothing, stop: nothing };
  }
  const verifier = kerberosVerifier(options);
  return {
    plugin: new SpnegoPlugin(verifier, mapping),
    async start() {
      await verifier.start();
      const reason = await verifier.missingCredentials();
      if (reason !== undefined)
        log.warn({ reason }, `there are no usable Kerberos credentials for ${String(config.service_principal)}`);
    },
    missingCredentials: () => verifier.missingCredentials(),
    stop: () => verifier.stop(),
  };
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
export async function checkGssapi(options: Omit<GssapiOptions, 'log'>): Promise<Problem[]> {
  const { config } = options;
  if (!config.enabled) return [];
  const problems = checkPrincipalMapping(config).map(({ key, message }) => ({
    key: `gssapi.${key}`,
    message: `${message} (a distinguished name as in RFC 4514)`,
  }));
  const credentials = config.require_crypto_verification
    ? await checkCredentials({ ...options, log: SILENT })
    : undefined;
  return credentials === undefined ? problems : [...problems, credentials];
}

async function checkCredentials(options: GssapiOptions): Promise<Problem | undefined> {
  const verifier = kerberosVerifier(options);
  try {
    await verifier.start();
    const missing = options.config.gssproxy ? undefined : await verifier.missingCredentials();
    return missing === undefined
      ? undefined
      : {
          key: 'gssapi.keytab',
          message: `provides no credentials: ${missing} (a readable keytab with a key of gssapi.service_principal)`,
        };
  } catch (error) {
    const what =
      error instanceof IsolatedError && error.code === 'NO_PACKAGE'
        ? `needs the optional npm package kerberos, which cannot be loaded: ${describe(error)}`
        : `cannot start the Kerberos library: ${describe(error)}`;
    return {
      key: 'gssapi.enabled',
      message: `${what} (install libgssapi-krb5-2, and libkrb5-dev with a compiler before "npm ci"; or false)`,
    };
  } finally {
    await verifier.stop();
  }
}

/** `Authorization: Negotiate` (RFC 4559): checks structure, ticket and subject, cheap checks first. */
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

  /** @throws EstuaryError 401 with the reason only in its detail, 503 if tickets cannot be verified now */
  async authenticate({ authorization }: PresentedCredentials): Promise<GssapiIdentity | undefined> {
    const token = negotiateToken(authorization);
    if (token === undefined) return undefined;
    const ticket = readTicket(token);
    const { principal, replyToken, unverified } = await this.#verifier.verify(token, ticket);
    return { ...this.identityOf(principal), note: unverified, replyToken };
  }

  /** The identity of a principal. @throws EstuaryError 401 `GSSAPI_PRINCIPAL_NOT_MAPPED` */
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
