/** One connection to an LDAP server: TLS from the first operation, no reconnects, one deadline for everything. */
import { isIP, connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls, type ConnectionOptions } from 'node:tls';
import { Client, type Entry, type Filter, PasswordPolicyControl, PasswordPolicyError, ResultCodeError } from 'ldapts';
import { anchoredAt } from '../../https-client.ts';

/** The directory rejected the operation. */
export class DirectoryRefusal extends Error {}

interface LdapServer {
  readonly url: string;
  readonly starttls: boolean;
  /** PEM; undefined: the CAs of Node.js. */
  readonly ca: string | undefined;
  /** Milliseconds for the whole connection. */
  readonly timeout: number;
}

/**
 * Result codes (RFC 4511 appendix A) that reject a bind; others are server failures. Every error of a search is one: a
 * base that does not exist or may not be searched is not the requester's fault.
 */
const BIND_REFUSED: ReadonlySet<number> = new Set([10, 19, 32, 34, 48, 49, 50, 53]);
const REFERRAL = 10;
/** Result codes of a search by an account that may do nothing but change its password. */
const RESTRICTED: ReadonlySet<number> = new Set([50, 53]);

export class LdapConnection {
  readonly #client: Client;
  readonly #sockets: Socket[] = [];

  private constructor({ url, ca, timeout }: LdapServer) {
    const tls: ConnectionOptions = { ...anchoredAt(ca), minVersion: 'TLSv1.2' };
    // The library would reconnect without StartTLS, and the next bind would send its password in the clear.
    const only = <T extends Socket>(socket: T): T => {
      this.#sockets.push(socket);
      return socket;
    };
    const refuseSecond = (): void => {
      if (this.#sockets.length > 0) throw new Error('the connection was lost');
    };
    this.#client = new Client({
      url,
      timeout,
      connectTimeout: timeout,
      ...(url.startsWith('ldaps:') ? { tlsOptions: tls } : {}),
      createConnection: ((port: number, host: string) => {
        refuseSecond();
        return only(connectTcp(port, host));
      }) as typeof connectTcp,
      createSecureConnection: ((...args: [number, string, ConnectionOptions] | [ConnectionOptions]) => {
        if (args.length === 1) return only(connectTls({ ...args[0], ...tls, ...identityOf(url) }));
        refuseSecond();
        return only(connectTls(args[0], args[1], { ...args[2], ...identityOf(url) }));
      }) as typeof connectTls,
    });
  }

  /** Runs work with a connection and closes it. @throws DirectoryRefusal; any other error is a server failure */
  static async use<T>(server: LdapServer, work: (connection: LdapConnection) => Promise<T>): Promise<T> {
    const connection = new LdapConnection(server);
    const { promise: late, reject } = Promise.withResolvers<never>();
    const timer = setTimeout(() => reject(new Error('no response in time')), server.timeout);
    const working = (async () => {
      if (server.starttls) await connection.#client.startTLS({});
      return work(connection);
    })();
    working.catch(() => undefined);
    try {
      return await Promise.race([working, late]);
    } finally {
      clearTimeout(timer);
      for (const socket of connection.#sockets) socket.on('error', () => undefined).destroy();
    }
  }

  /** @throws DirectoryRefusal for a wrong password or an unknown DN */
  async bind(dn: string, password: string): Promise<void> {
    // RFC 4513 §5.1.2: a bind without a password always succeeds.
    if (dn === '' || password === '') throw new DirectoryRefusal('an empty name or password');
    try {
      await this.#client.bind(dn, password);
    } catch (error) {
      if (error instanceof ResultCodeError && BIND_REFUSED.has(error.code)) throw new DirectoryRefusal(reasonOf(error));
      throw error;
    }
  }

  /**
   * As {@link bind}; then reads the account's own entry, which it may be unable to read.
   * @throws DirectoryRefusal also for a password that must be changed first, despite a successful bind
   */
  async prove(
    dn: string,
    password: string,
    attributes: readonly string[],
  ): Promise<PromiseSettledResult<readonly Entry[]>> {
    await this.bind(dn, password);
    const [read] = await Promise.allSettled([this.search(dn, 'base', '(objectClass=*)', attributes)]);
    const reason: unknown = read.status === 'rejected' ? read.reason : undefined;
    const cause = reason instanceof Error ? reason.cause : undefined;
    if (!(cause instanceof ResultCodeError) || !RESTRICTED.has(cause.code)) return read;
    // Not with the first bind: some directories fail for a control that they do not know.
    const policy = new PasswordPolicyControl();
    await this.#client.bind(dn, password, policy).catch(() => undefined);
    if (policy.value?.error === PasswordPolicyError.ChangeAfterReset)
      throw new DirectoryRefusal('the password must be changed first');
    return read;
  }

  /** At most two entries, enough to detect ambiguity. */
  async search(
    base: string,
    scope: 'base' | 'sub',
    filter: string | Filter,
    attributes: readonly string[],
  ): Promise<readonly Entry[]> {
    const options = {
      scope,
      filter,
      attributes: [...attributes],
      explicitBufferAttributes: ['objectSid'],
      sizeLimit: 2,
    };
    try {
      return (await this.#client.search(base, options)).searchEntries;
    } catch (error) {
      if (error instanceof ResultCodeError) throw new Error(`${base}: ${reasonOf(error)}`, { cause: error });
      throw error;
    }
  }
}

const reasonOf = ({ code, message }: ResultCodeError): string =>
  code === REFERRAL ? 'the directory refers to another server, which is not followed' : message;

/** The name required in the server's certificate. */
function identityOf(url: string): ConnectionOptions {
  const host = new URL(url).hostname.replace(/^\[|\]$/g, '');
  return { host, ...(isIP(host) === 0 ? { servername: host } : {}), rejectUnauthorized: true };
}
