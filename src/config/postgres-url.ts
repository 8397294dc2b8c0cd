/** A libpq URL: an RFC 3986 URI that may list several hosts for failover. */
import { cutText } from '../log.ts';

export interface PostgresUrl {
  readonly user: string | undefined;
  readonly password: string | undefined;
  /** In connection order. A host that begins with a slash is the folder of a Unix socket. */
  readonly hosts: readonly { readonly host: string; readonly port: number }[];
  readonly database: string | undefined;
  /** Absent: `disable`, with `sslrootcert` `verify-full`. */
  readonly sslmode: SslMode;
  /** A file, or `system`. */
  readonly sslrootcert: string | undefined;
  /** Settings of the session, such as `-csearch_path=pki`. */
  readonly options: string | undefined;
  readonly application_name: string | undefined;
  /** Seconds. */
  readonly connect_timeout: number | undefined;
}

const SSL_MODES = ['disable', 'require', 'verify-ca', 'verify-full'] as const;
type SslMode = (typeof SSL_MODES)[number];
/** Parameters that are honored as libpq does. */
const PARAMETERS = [
  'host',
  'port',
  'user',
  'password',
  'dbname',
  'application_name',
  'connect_timeout',
  'options',
  'sslmode',
  'sslrootcert',
  'target_session_attrs',
];
/** The server uses only hosts that accept writes. */
const SESSIONS = ['any', 'primary', 'read-write'];

const DEFAULT_PORT = 5432;
const FORM = /^postgres(?:ql)?:\/\/(?:([^:@/?#]*)(?::([^@/?#]*))?@)?([^@/?#]*)(?:\/([^/?#]*))?(?:\?([^#]*))?$/;
const HOST = /^(\[[0-9A-Fa-f:.]+\]|[^:[\]]*)(?::([0-9]{1,5}))?$/;

/** undefined if invalid, as {@link postgresUrlProblem} explains. */
export function parsePostgresUrl(text: string): PostgresUrl | undefined {
  const found = FORM.exec(text);
  if (found === null) return undefined;
  const [, user, password, authority = '', database] = found;
  try {
    const parameters = parametersOf(text);
    const hosts = (authority === '' ? hostsOf(parameters) : authority.split(',')).map(readHost);
    const known = hosts.filter((host) => host !== undefined);
    const timeout = parameters.get('connect_timeout');
    const sslrootcert = parameters.get('sslrootcert');
    const wanted = parameters.get('sslmode') ?? (sslrootcert === undefined ? 'disable' : 'verify-full');
    const sslmode = SSL_MODES.find((mode) => mode === wanted);
    if (known.length < hosts.length || sslmode === undefined || parameterProblem(parameters) !== undefined)
      return undefined;
    return {
      user: parameters.get('user') ?? decoded(user),
      password: parameters.get('password') ?? decoded(password),
      hosts: known,
      database: parameters.get('dbname') ?? decoded(database),
      sslmode,
      sslrootcert,
      options: parameters.get('options'),
      application_name: parameters.get('application_name'),
      connect_timeout: timeout === undefined ? undefined : Number(timeout),
    };
  } catch (error) {
    if (error instanceof URIError) return undefined;
    throw error;
  }
}

/** Why a URL is invalid, without quoting it: it is a secret. */
export function postgresUrlProblem(text: string): string | undefined {
  if (parsePostgresUrl(text) !== undefined) return undefined;
  const form =
    'is not a URL of a PostgreSQL database (postgresql://USER:PASSWORD@HOST/DATABASE, as libpq reads it, with @ in a name or password as %40, / as %2F, % as %25)';
  return (FORM.test(text) ? parameterProblem(parametersOf(text)) : undefined) ?? form;
}

const parametersOf = (text: string): ReadonlyMap<string, string> =>
  new Map(new URLSearchParams((FORM.exec(text)?.[5] ?? '').replaceAll('+', '%2B')));

function parameterProblem(parameters: ReadonlyMap<string, string>): string | undefined {
  const unknown = [...parameters.keys()].find((name) => !PARAMETERS.includes(name));
  if (unknown !== undefined) {
    const instead = unknown.startsWith('ssl') ? '; [store.tls] names certificates' : '';
    return `has the parameter "${cutText(unknown, 40)}", which is not supported (${PARAMETERS.join(', ')}${instead})`;
  }
  if (!/^[1-9]\d{0,3}$/.test(parameters.get('connect_timeout') ?? '1'))
    return 'has another connect_timeout (1 to 9999)';
  const [mode, sessions = 'any'] = [parameters.get('sslmode'), parameters.get('target_session_attrs')];
  if (mode !== undefined && !SSL_MODES.some((known) => known === mode))
    return `has sslmode=${cutText(mode, 40)} (${SSL_MODES.join(', ')})`;
  return SESSIONS.includes(sessions) ? undefined : `has another target_session_attrs (${SESSIONS.join(', ')})`;
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
