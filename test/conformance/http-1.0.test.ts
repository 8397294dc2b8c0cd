/** Clients that speak HTTP/1.0, as Debian's libest does: RFC 9110 §2.5, RFC 1945 §6. */
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sendRaw } from '../support/https.ts';
import { type Quickstart, startQuickstart } from '../support/quickstart.ts';
import { requires } from '../support/requires.ts';

describe.skipIf(!requires('curl', 'openssl'))('an HTTP/1.0 request', () => {
  let server: Quickstart;

  beforeAll(async () => {
    server = await startQuickstart();
  });
  afterAll(() => server.stop());

  /** The whole answer, until the server closes; without that the read would go on for a minute. */
  async function send(...lines: readonly string[]): Promise<{ head: string; body: string }> {
    const tls = { ca: readFileSync(server.file('ca/root.pem')) };
    const answer = await sendRaw(server.server.port('est'), tls, lines.join('\r\n'));
    const [head = '', body = ''] = answer.split('\r\n\r\n');
    return { head, body };
  }

  test('gets an HTTP/1.0 answer with its length, and the connection closes', async () => {
    const { head, body } = await send('GET /.well-known/est/cacerts HTTP/1.0', '', '');
    expect(head).toMatch(/^HTTP\/1\.0 200 OK\r\n/);
    expect(head).toContain(`\r\nContent-Length: ${body.length}\r\n`);
    expect(head).toContain('\r\nContent-Type: application/pkcs7-mime; smime-type=certs-only\r\n');
    expect(head).toMatch(/\r\nConnection: close$/);
    expect(head).not.toMatch(/transfer-encoding: chunked/i);
    expect(Buffer.from(body, 'base64').subarray(0, 1)).toEqual(Buffer.from([0x30]));
  });

  test('is challenged in HTTP/1.0, with an empty body', async () => {
    const request = ['POST /.well-known/est/simpleenroll HTTP/1.0', 'Content-Type: application/pkcs10'];
    const { head, body } = await send(...request, 'Content-Length: 4', '', 'MAAA');
    expect(head).toMatch(/^HTTP\/1\.0 401 Unauthorized\r\n/);
    expect(head).toContain('\r\nWWW-Authenticate: Basic realm="est"\r\n');
    expect(head).toContain('\r\nContent-Length: 0\r\n');
    expect(body).toBe('');
  });

  test('gets no invitation to send its body (RFC 9110 §10.1.1)', async () => {
    const request = ['POST /.well-known/est/simpleenroll HTTP/1.0', 'Content-Type: application/pkcs10'];
    const credentials = `Authorization: Basic ${Buffer.from('d:wrong').toString('base64')}`;
    const { head } = await send(...request, credentials, 'Expect: 100-continue', 'Content-Length: 4', '', 'MAAA');
    expect(head).toMatch(/^HTTP\/1\.0 401 Unauthorized\r\n/);
  });

  test('is refused in HTTP/1.0', async () => {
    const { head, body } = await send('GET /.well-known/est/nowhere/cacerts HTTP/1.0', 'Host: localhost', '', '');
    expect(head).toMatch(/^HTTP\/1\.0 404 Not Found\r\n/);
    expect(body).not.toBe('');
  });

  test('HEAD gets no body', async () => {
    const { head, body } = await send('HEAD /.well-known/est/simpleenroll HTTP/1.0', '', '');
    expect(head).toMatch(/^HTTP\/1\.0 405 Method Not Allowed\r\n/);
    expect(body).toBe('');
  });
});
