/** Tries several servers in order. */
import { ClientError, type ClientErrorCode } from './client-error.ts';
import type { CertificateConfig } from './config/schema.ts';
import type { EstOperations } from './context.ts';
import type { ReadPassword } from './http/authentication.ts';
import type { ClientIdentity } from './http/connection.ts';
import type { EstServerSettings } from './http/est-server.ts';
import { proxyFor } from './http/proxy.ts';
import { estBase } from './http/urls.ts';
import { establishTrust, type TrustTask } from './trust/establish.ts';

/** Errors after which another server may succeed. */
const SERVER_ERRORS: ReadonlySet<ClientErrorCode> = new Set([
  'PROXY_FAILED',
  'SERVER_UNAVAILABLE',
  'SERVER_UNREACHABLE',
  'SERVER_UNTRUSTED',
]);

/** What the requests for one certificate work with. */
export interface ClientTask extends TrustTask {
  readonly config: CertificateConfig;
}

interface Access {
  readonly identity: ClientIdentity | undefined;
  readonly password?: ReadPassword | undefined;
  /** Called before each server. */
  readonly begin?: (base: URL) => void;
}

/**
 * Works with the first server that is available, which the trusted CAs authenticate.
 * @throws ClientError of the last server
 */
export async function withFirstServer<T>(
  task: ClientTask,
  access: Access,
  work: (server: EstOperations) => Promise<T>,
  [url = '', ...others]: readonly string[] = task.server.url,
): Promise<T> {
  const [next] = others;
  try {
    const base = estBase(url, task.config.label);
    access.begin?.(base);
    const server = await establishTrust(serverSettings(base, task, access.password), task, access.identity);
    try {
      return await work(server);
    } finally {
      server.close();
    }
  } catch (error) {
    if (next === undefined || !(error instanceof ClientError) || !concernsServer(error)) throw error;
    task.context.log('warning', task.config.name, `${error.message}; trying ${next}`);
  }
  return withFirstServer(task, access, work, others);
}

function serverSettings(
  base: URL,
  { config, server, context }: ClientTask,
  password?: ReadPassword,
): EstServerSettings {
  const { username, kerberos, token_file: tokenFile } = config;
  const line = (file: string): string => (context.disk.read(file) ?? '').trim();
  const { proxy, proxy_password_file: proxyPassword } = server;
  return {
    base,
    minVersion: server.min_version,
    maxVersion: server.max_version,
    timeout: server.timeout * 1000,
    proxy: proxyFor(base, proxy, proxyPassword === undefined ? undefined : line(proxyPassword), context.env),
    serverName: server.tls_server_name,
    credentials: {
      username,
      password,
      kerberos,
      bearer: tokenFile === undefined ? undefined : () => Promise.resolve(bearerToken(line(tokenFile), tokenFile)),
    },
    now: () => context.now(),
    randomBytes: (count) => context.randomBytes(count),
  };
}

/** @throws ClientError `CREDENTIALS_MISSING` */
function bearerToken(token: string, file: string): string {
  if (/^[\w.~+/-]+=*$/.test(token)) return token;
  throw new ClientError('unauthenticated', 'CREDENTIALS_MISSING', `${file} is missing, or is not a bearer token`);
}

/** Whether another server may succeed; 429 limits the client at every server. */
const concernsServer = ({ code, status }: ClientError): boolean => SERVER_ERRORS.has(code) && status !== 429;
