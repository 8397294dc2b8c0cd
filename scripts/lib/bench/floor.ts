/**
 * The floor: a bare TLS server of Node that verifies one signature and makes one for each request, and does nothing else. What Estuary
 * cannot get below. A process of its own, started by enroll.ts with the folder of a fleet.
 */
import { generateKeyPairSync, sign, verify } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createServer, type TLSSocket } from 'node:tls';

export interface FloorMessage {
  readonly port: number;
}

/** About the size of a CSR's and a certificate's signed part, and of an answer. */
const SIGNED = Buffer.alloc(400, 1);
const BODY = 'A'.repeat(1100);
const ANSWER = Buffer.from(
  `HTTP/1.1 200 OK\r\nContent-Type: application/pkcs7-mime\r\nContent-Length: ${BODY.length}\r\n\r\n${BODY}`,
);

const folder = process.argv[2] ?? '';
const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const signature = sign('sha256', SIGNED, privateKey);

/** Bytes of the first request in `text`, or undefined while it is not whole. */
function requestLength(text: string): number | undefined {
  const head = text.indexOf('\r\n\r\n');
  if (head < 0) return undefined;
  const length = head + 4 + Number(/^content-length: *(\d+)$/im.exec(text.slice(0, head))?.[1] ?? 0);
  return text.length < length ? undefined : length;
}

function serve(socket: TLSSocket): void {
  let text = '';
  socket.on('error', () => socket.destroy());
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1');
    for (let length = requestLength(text); length !== undefined; length = requestLength(text)) {
      text = text.slice(length);
      if (!verify('sha256', SIGNED, publicKey, signature)) throw new Error('the signature is good');
      sign('sha256', SIGNED, privateKey);
      socket.write(ANSWER);
    }
  });
}

const file = (name: string): Buffer => readFileSync(join(folder, name));
const server = createServer(
  {
    cert: file('tls/server.pem'),
    key: file('tls/server.key'),
    ca: [file('ca/root.pem'), file('ca/issuing.pem')],
    requestCert: true,
    rejectUnauthorized: true,
  },
  serve,
);
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  const message: FloorMessage = { port: address.port };
  process.send?.(message);
});
