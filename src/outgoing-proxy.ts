/** Tunnels through HTTP proxies (RFC 9110 §9.3.6), per HTTPS_PROXY and NO_PROXY. */
import { request as httpRequest, type ClientRequest } from 'node:http';
import { Agent, type AgentOptions } from 'node:https';
import { BlockList, isIP } from 'node:net';
import { type Duplex, PassThrough } from 'node:stream';
import { connect as connectTls, type ConnectionOptions, getCACertificates } from 'node:tls';
import { proxyProblem } from './proxy-url.ts';

/** The proxy is misconfigured (`permanent`), or does not connect. */
export class ProxyError extends Error {
  readonly permanent: boolean;

  constructor(
    message: string,
    { permanent = false, cause }: { readonly permanent?: boolean; readonly cause?: unknown },
  ) {
    super(message, { cause });
    this.permanent = permanent;
  }
}

export interface Proxy {
  readonly url: URL;
  /** The value of Proxy-Authorization. */
  readonly authorization: string | undefined;
}

/**
 * @param configured a URL; `none`: no proxy; undefined: per environment
 * @param password for the URL's user; default: the one in the URL
 * @throws ProxyError for an invalid URL
 */
export function proxyFor(
  target: URL,
  configured: string | undefined,
  password: string | undefined,
  env: Readonly<Record<string, string | undefined>>,
): Proxy | undefined {
  const variable = (name: string): string => env[name.toLowerCase()] ?? env[name] ?? '';
  // As for curl, `host:port` is http://host:port in the environment.
  const text = configured ?? variable('HTTPS_PROXY').replace(/^(?!none$|.*:\/\/)(?=.)/, 'http://');
  if (text === '' || text === 'none' || isExcepted(target, variable('NO_PROXY'))) return undefined;
  const problem = proxyProblem(text);
  if (problem !== undefined) throw new ProxyError(`HTTPS_PROXY ${problem}`, { permanent: true });
  const url = new URL(text);
  const user = decodeURIComponent(url.username);
  const secret = password ?? decodeURIComponent(url.password);
  const authorization = user === '' ? undefined : `Basic ${Buffer.from(`${user}:${secret}`).toString('base64')}`;
  return { url, authorization };
}

/** NO_PROXY lists host names (including subdomains), addresses and address ranges with optional ports, or `*`. */
function isExcepted({ hostname, port }: URL, list: string): boolean {
  const host = hostname.replace(/^\[|\]$/g, '').toLowerCase();
  const ownPort = port === '' ? '443' : port;
  return list.split(/[\s,]+/).some((entry) => {
    if (entry === '*') return true;
    const [, bracketed, plain, entryPort] = /^(?:\[([^\]]+)\]|(.*?))(?::(\d+))?$/.exec(entry) ?? [];
    const isAddress = isIP(entry) !== 0 || entry.includes('/');
    const name = (isAddress ? entry : (bracketed ?? plain ?? '')).toLowerCase().replace(/^\*?\./, '');
    if (name === '' || (!isAddress && entryPort !== undefined && entryPort !== ownPort)) return false;
    if (name.includes('/')) return isInRange(host, name);
    return host === name || (isIP(host) === 0 && host.endsWith(`.${name}`));
  });
}

function isInRange(host: string, range: string): boolean {
  const [network = '', bits = ''] = range.split('/');
  const family = isIP(host);
  if (family === 0 || isIP(network) !== family || !/^\d{1,3}$/.test(bits)) return false;
  if (Number(bits) > (family === 4 ? 32 : 128)) return false;
  const type = family === 4 ? 'ipv4' : 'ipv6';
  const list = new BlockList();
  list.addSubnet(network, Number(bits), type);
  return list.check(host, type);
}

/** Connects to the target through the proxy. @param timeout milliseconds. @throws ProxyError */
export async function openTunnel(target: URL, { url, authorization }: Proxy, timeout: number): Promise<Duplex> {
  const isSecure = url.protocol === 'https:';
  const request = isSecure ? (await import('node:https')).request : httpRequest;
  const authority = `${target.hostname}:${target.port === '' ? '443' : target.port}`;
  const ca = isSecure ? publicCas() : [];
  return new Promise((resolve, reject) => {
    const connecting: ClientRequest = request({
      host: url.hostname.replace(/^\[|\]$/g, ''),
      port: url.port === '' ? (isSecure ? 443 : 80) : Number(url.port),
      ...(isSecure && { ca }),
      method: 'CONNECT',
      path: authority,
      agent: false,
      headers: { Host: authority, ...(authorization === undefined ? {} : { 'Proxy-Authorization': authorization }) },
    });
    const timer = setTimeout(() => connecting.destroy(new Error(`no response within ${timeout / 1000} s`)), timeout);
    const fail = (reason: string, cause?: unknown): void => {
      clearTimeout(timer);
      reject(new ProxyError(`the proxy ${url.host}: ${reason}`, { cause }));
    };
    connecting.once('error', (error) => fail(error.message, error));
    connecting.once('response', ({ statusCode = 0 }) => {
      connecting.destroy();
      fail(`rejects CONNECT ${authority} with ${statusCode}`);
    });
    connecting.once('connect', ({ statusCode = 0 }, socket) => {
      clearTimeout(timer);
      if (statusCode >= 200 && statusCode < 300) resolve(socket);
      else {
        socket.destroy();
        const hint = statusCode === 407 ? ': its user or password is wrong or missing' : '';
        fail(`rejects CONNECT ${authority} with ${statusCode}${hint}`);
      }
    });
    connecting.end();
  });
}

/** The CAs of Node.js and the operating system: a proxy is unrelated to the EST server's CA. */
const publicCas = (): string[] => [...getCACertificates('default'), ...getCACertificates('system')];

/** Milliseconds for CONNECT; the deadline of a request is usually shorter. */
const TUNNEL_TIMEOUT = 30_000;

/** Connects to one server, through the proxy of the environment if one applies. */
export class ProxiedAgent extends Agent {
  readonly #target: URL;
  readonly #tls: ConnectionOptions;
  readonly #env: Readonly<Record<string, string | undefined>>;

  constructor(target: URL, tls: ConnectionOptions, options: AgentOptions = {}, env: typeof process.env = process.env) {
    super({ ...options, ...tls });
    this.#target = target;
    this.#tls = tls;
    this.#env = env;
  }

  override createConnection(...[options, done]: Parameters<Agent['createConnection']>): Duplex | null | undefined {
    const fail = (error: unknown): void =>
      done?.(error instanceof Error ? error : new Error(String(error)), new PassThrough());
    let proxy: Proxy | undefined;
    try {
      proxy = proxyFor(this.#target, undefined, undefined, this.#env);
    } catch (error) {
      process.nextTick(fail, error);
      return undefined;
    }
    if (proxy === undefined) return super.createConnection(options, done);
    this.#throughProxy(proxy).then((socket) => done?.(null, socket), fail);
    return undefined;
  }

  /** @throws ProxyError */
  async #throughProxy(proxy: Proxy): Promise<Duplex> {
    const tunnel = await openTunnel(this.#target, proxy, TUNNEL_TIMEOUT);
    const host = this.#target.hostname.replace(/^\[|\]$/g, '');
    const name = isIP(host) === 0 ? { servername: host } : {};
    const socket = connectTls({ ...this.#tls, socket: tunnel, host, ...name });
    socket.once('close', () => tunnel.destroy());
    return socket;
  }
}
