/** A libpq URL: an RFC 3986 URI that may list several hosts for failover. */

export interface PostgresUrl {
  readonly user: string | undefined;
  readonly password: string | undefined;
  /** In connection order. A host that begins with a slash is the folder of a Unix socket. */
  readonly hosts: readonly { readonly host: string; readonly port: number }[];
  readonly database: string | undefined;
  /** The query parameters. */
  readonly parameters: ReadonlyMap<string, string>;
}

const DEFAULT_PORT = 5432;
const FORM = /^postgres(?:ql)?:\/\/(?:([^:@/?#]*)(?::([^@/?#]*))?@)?([^@/?#]*)(?:\/([^/?#]*))?(?:\?([^#]*))?$/;
const HOST = /^(\[[0-9A-Fa-f:.]+\]|[^:[\]]*)(?::([0-9]{1,5}))?$/;

/** undefined if invalid. The text is a secret, so no message quotes it. */
export function parsePostgresUrl(text: string): PostgresUrl | undefined {
  const found = FORM.exec(text);
  if (found === null) return undefined;
  const [, user, password, authority = '', database, query = ''] = found;
  try {
    const parameters = new Map(new URLSearchParams(query.replaceAll('+', '%2B')));
    const hosts = (authority === '' ? hostsOf(parameters) : authority.split(',')).map(readHost);
    const known = hosts.filter((host) => host !== undefined);
    if (known.length < hosts.length) return undefined;
    return {
      user: decoded(user),
      password: decoded(password),
      hosts: known,
      database: decoded(database),
      parameters,
    };
  } catch (error) {
    if (error instanceof URIError) return undefined;
    throw error;
  }
}

/** As in libpq, `host` and `port` may be parameters with parallel lists. */
function hostsOf(parameters: ReadonlyMap<string, string>): string[] {
  const ports = parameters.get('port')?.split(',') ?? [];
  return (parameters.get('host') ?? 'localhost').split(',').map((host, index) => {
    const port = ports[index] ?? ports[0];
    return port === undefined ? encodeURIComponent(host) : `${encodeURIComponent(host)}:${port}`;
  });
}

function readHost(text: string): { host: string; port: number } | undefined {
  const [, host = '', port] = HOST.exec(text) ?? [];
  const number = port === undefined ? DEFAULT_PORT : Number(port);
  if (host === '' || number < 1 || number > 65_535) return undefined;
  return { host: decodeURIComponent(host).replace(/^\[|\]$/g, ''), port: number };
}

const decoded = (text: string | undefined): string | undefined =>
  text === undefined || text === '' ? undefined : decodeURIComponent(text);

/** Whether traffic to a host stays on this machine. */
export function isLocalHost(host: string): boolean {
  return host === 'localhost' || host === '::1' || host.startsWith('127.') || host.startsWith('/');
}
