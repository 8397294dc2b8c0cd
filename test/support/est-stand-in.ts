/** An HTTPS server that answers as a test says, with a certificate as a test says: what a client has to hold its own against. */
import { once } from 'node:events';
import { createServer, type Server } from 'node:https';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { TLSSocket, type TlsOptions } from 'node:tls';
import { certsOnly } from '../../src/pki/cms/cms.ts';
import { encodePem } from '../../src/pki/der/pem.ts';
import { parseCsr, type Csr } from '../../src/pki/pkcs10/csr.ts';
import { pkcs8Pem } from './keys.ts';
import type { Issuer } from './certificates.ts';

export interface StandInRequest {
  readonly method: string;
  /** What follows `/.well-known/est/`. */
  readonly operation: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
  readonly socket: TLSSocket;
  readonly response: ServerResponse;
  /** DER subject of the client's certificate, hex of its fingerprint; undefined: none. */
  readonly clientCertificate: string | undefined;
}

export interface StandIn {
  readonly url: string;
  readonly requests: readonly StandInRequest[];
  stop(): Promise<void>;
}

/** @param answer undefined where it has answered itself */
export async function startStandIn(
  certificate: Issuer,
  answer: (request: StandInRequest) => unknown,
  options: TlsOptions = {},
  host = '127.0.0.1',
): Promise<StandIn> {
  const requests: StandInRequest[] = [];
  const server: Server = createServer(
    {
      cert: encodePem('CERTIFICATE', certificate.der),
      key: pkcs8Pem(certificate.keys),
      requestCert: true,
      rejectUnauthorized: false,
      ...options,
    },
    (message, response) => {
      readAll(message)
        .then(async (body) => {
          const { socket } = message;
          if (!(socket instanceof TLSSocket)) throw new TypeError('no TLS');
          const path = message.url ?? '';
          const request: StandInRequest = {
            method: message.method ?? '',
            operation: path.replace('/.well-known/est/', ''),
            path,
            headers: message.headers,
            body,
            socket,
            response,
            clientCertificate: socket.getPeerX509Certificate()?.fingerprint256,
          };
          requests.push(request);
          await answer(request);
        })
        // The client is gone, or gets no answer.
        .catch(() => response.destroy());
    },
  );
  server.listen(0, host);
  await once(server, 'listening');
  return {
    url: `https://localhost:${(server.address() as AddressInfo).port}`,
    requests,
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

async function readAll(message: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(Buffer.from(chunk as Uint8Array));
  return Buffer.concat(chunks).toString('latin1');
}

/** A certs-only answer. */
export function sendCertificates({ response }: StandInRequest, ders: readonly Buffer[], smime = true): ServerResponse {
  const type = `application/pkcs7-mime${smime ? '; smime-type=certs-only' : ''}`;
  response.writeHead(200, { 'Content-Type': type, 'Content-Transfer-Encoding': 'base64' });
  return response.end(certsOnly(ders).toString('base64'));
}

export function sendStatus(
  { response }: StandInRequest,
  status: number,
  headers: Readonly<Record<string, string>> = {},
  text = '',
): ServerResponse {
  response.writeHead(status, { 'Content-Type': 'text/plain', ...headers });
  return response.end(text);
}

export const csrOf = ({ body }: StandInRequest): Csr => parseCsr(Buffer.from(body, 'base64'));
