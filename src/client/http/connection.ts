/**
 * One TLS connection to an EST server with sequential requests. A channel binding is valid only for its connection, so
 * the client must control which one a request uses.
 */
import {
  Agent,
  request as httpRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type OutgoingHttpHeaders,
} from 'node:http';
import { isIP } from 'node:net';
import { checkServerIdentity, connect, type ConnectionOptions, type PeerCertificate, type TLSSocket } from 'node:tls';
import { codeOf } from '../../errors.ts';
import { channelBinding } from '../../pki/channel-binding.ts';
import { OID } from '../../pki/der/oids.ts';
import { encodePem } from '../../pki/der/pem.ts';
import { ClientError } from '../client-error.ts';
import type { Proxy } from '../../outgoing-proxy.ts';
import { openTunnel } from './proxy.ts';
import { tokenSecureContext, type TokenTlsKey } from '../token/tls-key.ts';

/** Above any chain or ML-DSA certificate. */
const MAX_ANSWER = 1024 * 1024;

export interface ClientIdentity {
  /** PEM: the certificate, then its chain. */
  readonly certificate: string;
  /** PEM, or a key in a token. */
  readonly privateKey: string | TokenTlsKey;
}

/** How to authenticate the server. */
export type ServerTrust =
  /** Not at all (RFC 7030 §4.1.1): responses are trusted only after comparison with a fingerprint. */
  | { readonly kind: 'provisional' }
  | {
      readonly kind: 'anchors';
      /** The Explicit TA database: DER. */
      readonly explicit: readonly Buffer[];
      /** The Implicit TA database, if used: PEM. */
      readonly implicit: readonly string[];
      /** Whether id-kp-cmcRA in the server certificate replaces the host name check (RFC 7030 §3.6.1). */
      readonly acceptCmcRa: boolean;
    };

/** What the connections to one server have in common. */
export interface TlsSettings {
  readonly minVersion: 'TLSv1.2' | 'TLSv1.3';
  readonly maxVersion: 'TLSv1.2' | 'TLSv1.3';
  /** Milliseconds for the connection, and for each response. */
  readonly timeout: number;
  readonly proxy: Proxy | undefined;
  /** Overrides the URL's host name in SNI and the certificate check. */
  readonly serverName: string | undefined;
}

interface ConnectionSettings extends TlsSettings {
  readonly trust: ServerTrust;
  readonly identity: ClientIdentity | undefined;
  /** From an earlier connection with the same settings, to resume. */
  readonly session?: Buffer | undefined;
  readonly onSession?: (session: Buffer) => void;
}

export interface HttpAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

interface HttpRequest {
  readonly method: 'GET' | 'POST';
  /** Including the query. */
  readonly path: string;
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: string;
}

export class Connection {
  readonly #socket: TLSSocket;
  readonly #agent: Agent;
  readonly #authority: string;
  readonly #timeout: number;

  private constructor(socket: TLSSocket, url: URL, timeout: number) {
    this.#socket = socket;
    this.#authority = url.host;
    this.#timeout = timeout;
    this.#agent = new Agent({ keepAlive: true, maxSockets: 1 });
    this.#agent.createConnection = () => socket;
    socket.on('error', () => undefined);
  }

  /** @throws ClientError `SERVER_UNREACHABLE`, `SERVER_UNTRUSTED` */
  static async open(url: URL, settings: ConnectionSettings): Promise<Connection> {
    const { proxy, timeout } = settings;
    const tunnel = proxy && (await openTunnel(url, proxy, timeout));
    return new Promise((resolve, reject) => {
      const socket = connect({ ...optionsOf(url, settings), ...(tunnel && { socket: tunnel }) });
      if (tunnel !== undefined) socket.once('close', () => tunnel.destroy());
      const timer = setTimeout(() => fail(new Error(`no TLS connection within ${timeout / 1000} s`)), timeout);
      const fail = (error: Error): void => {
        clearTimeout(timer);
        socket.destroy();
        reject(connectionError(url, error));
      };
      if (settings.onSession !== undefined) socket.on('session', settings.onSession);
      socket.once('error', fail);
      socket.once('secureConnect', () => {
        clearTimeout(timer);
        socket.off('error', fail);
        resolve(new Connection(socket, url, timeout));
      });
    });
  }

  /** Whether another request can use it. */
  get usable(): boolean {
    return !this.#socket.destroyed && this.#socket.writable && !this.#socket.readableEnded;
  }

  /** DER of the server's certificate. */
  get serverCertificate(): Buffer | undefined {
    return this.#socket.getPeerX509Certificate()?.raw;
  }

  get channelBinding(): Buffer | undefined {
    return channelBinding(this.#socket, 'client');
  }

  /** @throws ClientError `SERVER_UNREACHABLE` for an incomplete response; the server may have processed the request */
  send({ method, path, headers = {}, body }: HttpRequest): Promise<HttpAnswer> {
    return new Promise((resolve, reject) => {
      const request = httpRequest({
        agent: this.#agent,
        method,
        path,
        setHost: false,
        headers: {
          Host: this.#authority,
          ...headers,
          ...(body === undefined ? {} : { 'Content-Length': Buffer.byteLength(body) }),
        },
      });
      const timer = setTimeout(
        () => request.destroy(new Error(`no response within ${this.#timeout / 1000} s`)),
        this.#timeout,
      );
      const chunks: Buffer[] = [];
      let answer: IncomingMessage | undefined;
      const finish = ({ statusCode = 0, headers: received }: IncomingMessage): void => {
        clearTimeout(timer);
        resolve({ status: statusCode, headers: received, body: Buffer.concat(chunks) });
      };
      const fail = (error: Error): void => {
        clearTimeout(timer);
        this.close();
        if (answer?.complete === true) {
          chunks.push(uncounted(error));
          finish(answer);
        } else reject(unreachable(`${method} ${path} on ${this.#authority}: ${error.message}`, error));
      };
      request.once('error', fail);
      request.once('response', (response) => {
        answer = response;
        let length = 0;
        response.on('data', (chunk: Buffer) => {
          chunks.push(chunk);
          length += chunk.length;
          if (length > MAX_ANSWER) request.destroy(new Error('the response is too long'));
        });
        response.once('error', fail);
        response.once('aborted', () => fail(new Error('the response is incomplete')));
        response.once('end', () => finish(response));
      });
      request.end(body);
    });
  }

  close(): void {
    this.#agent.destroy();
    this.#socket.destroy();
  }
}

/** Data after the end of a response: the Content-Length of libest's serverkeygen responses is too small. */
function uncounted(error: Error): Buffer {
  if (!('rawPacket' in error && Buffer.isBuffer(error.rawPacket) && 'bytesParsed' in error)) return Buffer.alloc(0);
  // The parser counts the octet that it stopped at.
  return error.rawPacket.subarray(Number(error.bytesParsed) - 1);
}

function optionsOf(
  url: URL,
  { trust, identity, minVersion, maxVersion, session, serverName }: ConnectionSettings,
): ConnectionOptions {
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const name = serverName ?? host;
  const options: ConnectionOptions = {
    host,
    port: url.port === '' ? 443 : Number(url.port),
    // RFC 6066 §3: never an address.
    ...(isIP(name) === 0 ? { servername: name } : {}),
    minVersion,
    maxVersion,
    ALPNProtocols: ['http/1.1'],
    ...(session && { session }),
    ...trustOptions(trust, name),
  };
  if (identity === undefined) return options;
  const { certificate: cert, privateKey } = identity;
  if (typeof privateKey === 'string') return { ...options, cert, key: privateKey };
  return { ...options, secureContext: tokenSecureContext(privateKey, { ...options, cert }) };
}

function trustOptions(trust: ServerTrust, host: string): ConnectionOptions {
  if (trust.kind === 'provisional') return { rejectUnauthorized: false };
  return {
    rejectUnauthorized: true,
    ca: [...trust.explicit.map((der) => encodePem('CERTIFICATE', der)), ...trust.implicit],
    // An anchor need not be self-signed: the fingerprint may be that of an issuing CA.
    allowPartialTrustChain: true,
    checkServerIdentity: (_name, certificate) => identityProblem(host, certificate, trust.acceptCmcRa),
  };
}

/** Checks the host name (RFC 6125) or, if configured, id-kp-cmcRA instead (RFC 7030 §3.6.1). */
function identityProblem(host: string, certificate: PeerCertificate, acceptCmcRa: boolean): Error | undefined {
  const purposes: readonly string[] = certificate.ext_key_usage ?? [];
  const problem = checkServerIdentity(host, certificate);
  if (problem === undefined || (acceptCmcRa && purposes.includes(OID.cmcRA))) return undefined;
  const names = certificate.subjectaltname ?? certificate.subject.CN;
  const shown = [names ?? []]
    .flat()
    .join(', ')
    .replace(/(?:DNS|IP Address):/g, '');
  const reason = `its certificate is for ${shown === '' ? 'no name' : shown}, not for ${host}`;
  return Object.assign(new Error(reason), { code: HOST_NAME_MISMATCH });
}

const HOST_NAME_MISMATCH = 'ERR_TLS_CERT_ALTNAME_INVALID';

const CERTIFICATE_ERRORS = new Set([
  'CERT_HAS_EXPIRED',
  'CERT_NOT_YET_VALID',
  'CERT_SIGNATURE_FAILURE',
  'CERT_UNTRUSTED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  HOST_NAME_MISMATCH,
  'INVALID_CA',
  'INVALID_PURPOSE',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]);

function connectionError(url: URL, error: Error): ClientError {
  const code = codeOf(error);
  const reason = code === 'ECONNREFUSED' ? 'connection refused: no server listens there' : error.message;
  if (!CERTIFICATE_ERRORS.has(code)) return unreachable(`${url.host}: ${reason}`, error);
  const clock = code === 'CERT_NOT_YET_VALID' || code === 'CERT_HAS_EXPIRED' ? '; or the clock is wrong' : '';
  return new ClientError(
    'untrusted',
    'SERVER_UNTRUSTED',
    `${url.host} is not trusted: ${error.message} (${code})${clock}`,
    { cause: error },
  );
}

const unreachable = (message: string, cause: unknown): ClientError =>
  new ClientError('later', 'SERVER_UNREACHABLE', message, { cause });
