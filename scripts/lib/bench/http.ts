/** The least HTTP/1.1 client that will do, so that the load generator costs as little as it can. */
import { once } from 'node:events';
import { connect, type SecureContext, type TLSSocket } from 'node:tls';

export interface Target {
  readonly port: number;
  /** Holds the server's CA and, for mTLS, the client's certificate and key. */
  readonly context: SecureContext;
  /** The session to resume. */
  readonly session?: Buffer | undefined;
}

export interface Reply {
  readonly status: number;
  readonly body: string;
}

/** The bytes of one enrollment request. */
export function enrollRequest(operation: string, csr: Buffer, authorization?: string): Buffer {
  // libest reads base64 in lines only.
  const body = csr.toString('base64').replaceAll(/.{1,64}/g, '$&\n');
  const lines = [
    `POST /.well-known/est/${operation} HTTP/1.1`,
    'Host: localhost',
    'Content-Type: application/pkcs10',
    `Content-Length: ${body.length}`,
    ...(authorization === undefined ? [] : [`Authorization: ${authorization}`]),
  ];
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n${body}`, 'latin1');
}

/** The bytes of a request for the CA certificates. */
export const CACERTS_REQUEST = Buffer.from(
  'GET /.well-known/est/cacerts HTTP/1.1\r\nHost: localhost\r\n\r\n',
  'latin1',
);

/** A fresh connection; with a full handshake unless there is a session to resume. */
export async function open({ port, context, session }: Target): Promise<TLSSocket> {
  const place = { host: '127.0.0.1', servername: 'localhost', port };
  const socket = connect({ ...place, secureContext: context, ...(session === undefined ? {} : { session }) });
  socket.setNoDelay(true);
  await once(socket, 'secureConnect');
  return socket;
}

/**
 * Sends one request and reads its answer.
 *
 * @throws {Error} when the connection ends before the answer is whole.
 */
export function exchange(socket: TLSSocket, request: Buffer): Promise<Reply> {
  return new Promise((resolve, reject) => {
    let text = '';
    const onData = (chunk: Buffer): void => {
      text += chunk.toString('latin1');
      const reply = parse(text);
      if (reply === undefined) return;
      done();
      resolve(reply);
    };
    const onEnd = (): void => {
      done();
      reject(new Error('the connection ended before the answer'));
    };
    const done = (): void => {
      socket.off('data', onData).off('close', onEnd).off('error', onEnd);
    };
    socket.on('data', onData).on('close', onEnd).on('error', onEnd);
    socket.write(request);
  });
}

function parse(text: string): Reply | undefined {
  const end = text.indexOf('\r\n\r\n');
  if (end < 0) return undefined;
  const head = text.slice(0, end);
  const length = Number(/^content-length: *(\d+)$/im.exec(head)?.[1] ?? 0);
  const body = text.slice(end + 4);
  return body.length < length ? undefined : { status: Number(head.slice(9, 12)), body };
}
