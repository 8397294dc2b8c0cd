/** One connection to an LDAP server: TLS from the first operation, no reconnects, one deadline for everything. */
import { isIP, connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls, type ConnectionOptions } from 'node:tls';
import { Client, ResultCodeError, type Entry } from 'ldapts';

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

/** Result codes (RFC 4511 appendix A) that reject a bind; others are server failures. */
const BIND_REFUSED: ReadonlySet<number> = new Set([10, 19, 32, 34, 48, 49, 50, 53]);
/** The same for a search: referral (not followed), noSuchObject, insufficientAccessRights. */
const SEARCH_REFUSED: ReadonlySet<number> = new Set([10, 32, 50]);

export class LdapConnection {
  readonly #client: Client;
  readonly #sockets: Socket[] = [];

  private constructor({ url, ca, timeout }: LdapServer) {
    const tls: ConnectionOptions = { ca, minVersion: 'TLSv1.2' };
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
    await this.#asked(() => this.#client.bind(dn, password), BIND_REFUSED);
  }

  /** At most two entries, enough to detect ambiguity. @throws DirectoryRefusal */
  async search(
    base: string,
    scope: 'base' | 'sub',
    filter: string,
    attributes: readonly string[],
  ): Promise<readonly Entry[]> {
    const { searchEntries } = await this.#asked(
      () => this.#client.search(base, { scope, filter, attributes: [...attributes], sizeLimit: 2 }),
      SEARCH_REFUSED,
    );
    return searchEntries;
  }

  async #asked<T>(operation: () => Promise<T>, refused: ReadonlySet<number>): Promise<T> {
    try {
      return await operation();
    } catch (error) {
      if (error instanceof ResultCodeError && refused.has(error.code)) {
        const why = error.code === 10 ? 'the directory refers to another server, which is not followed' : error.message;
        throw new DirectoryRefusal(why);
      }
      throw error;
    }
  }
}

/** The name required in the server's certificate. */
function identityOf(url: string): ConnectionOptions {
  const host = new URL(url).hostname.replace(/^\[|\]$/g, '');
  return { host, ...(isIP(host) === 0 ? { servername: host } : {}), rejectUnauthorized: true };
}
