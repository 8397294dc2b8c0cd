/** Outside mode `required` the handshake of the EST and admin listeners verifies nothing. */
import { createServer, type Server } from 'node:https';
import { connect as connectTcp } from 'node:net';
import { connect, TLSSocket } from 'node:tls';
import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import { answerBrokenRequests } from '../../src/http/broken-requests.ts';
import { Exchanges } from '../../src/http/exchange.ts';
import { Connections } from '../../src/http/connections.ts';
import { TicketSecret } from '../../src/http/ticket-secret.ts';
import { TlsEnd, type ClientAuthMode } from '../../src/http/tls.ts';
import { encodePem } from '../../src/pki/der/pem.ts';
import { dns, makeCa, makeClient, subjectAltName, type Issuer } from '../support/certificates.ts';
import { pkcs8Pem } from '../support/keys.ts';
import { runAny } from '../support/command.ts';

const pem = (...certificates: readonly Issuer[]): string =>
  certificates.map(({ der }) => encodePem('CERTIFICATE', der)).join('');

const root = await makeCa('CN=Root');
const issuing = await makeCa('CN=Issuing', { issuer: root, slot: 'new' });
/** The same CA before its key was replaced. */
const formerly = await makeCa('CN=Issuing', { issuer: root, slot: 'old' });
const server = await makeClient('CN=localhost', root, { extensions: [subjectAltName(dns('localhost'))] });
const device = await makeClient('CN=device', formerly);
const current = await makeClient('CN=current', issuing);

let running: Server | undefined;
const log: Partial<Record<string, unknown>>[] = [];
afterEach(() => {
  running?.close();
  running?.closeAllConnections();
  log.length = 0;
});

async function listening(
  mode: ClientAuthMode,
  answer?: (socket: TLSSocket) => string,
  proxies?: readonly string[],
): Promise<number> {
  const est = proxies === undefined ? {} : { client_certificate_header: {} };
  const material = {
    ...(proxies === undefined ? {} : { proxies }),
    certificate: Buffer.from(pem(server)),
    privateKey: Buffer.from(pkcs8Pem(server.keys)),
    minVersion: 'TLSv1.2',
    groups: ['X25519', 'P-256'],
    clientCas: [pem(issuing), pem(root)],
  } as const;
  const config = { server: { handshake_timeout: 60 }, tls: { client_auth: { mode } }, admin: { tls: { mode } }, est };
  const end = new TlsEnd('est', config, TicketSecret.random());
  running = createServer(end.options, ({ socket }, response) => {
    response.end(socket instanceof TLSSocket ? (answer?.(socket) ?? '') : '');
  });
  end.present(running, material);
  const keptLog = { info: (fields: object) => log.push({ ...fields }), warn: () => undefined };
  const limits = { total: 10, perAddress: 10 };
  new Connections({ listener: 'est', server: running, limits, log: keptLog }).open();
  const lines = {
    info: (fields: object, message: string) => {
      if (message !== 'request') log.push({ ...fields });
    },
    warn: () => undefined,
    error: () => undefined,
  };
  answerBrokenRequests(
    running,
    new Exchanges(running, {
      listener: 'est',
      lines,
      metrics: { countRequest: () => undefined, countHandshakeFailure: () => undefined },
    }),
  );
  await new Promise<void>((resolve) => running?.listen(0, '127.0.0.1', resolve));
  const address = running.address();
  if (address === null || typeof address === 'string') throw new Error('not listening');
  return address.port;
}

const subjectOf = (socket: TLSSocket): string => `${socket.getPeerX509Certificate()?.subject ?? 'nobody'} `;

/** Two requests on one connection; what was answered. */
async function talk(port: number, chain: readonly Issuer[], version: 'TLSv1.2' | 'TLSv1.3'): Promise<string> {
  const [leaf] = chain;
  const tls = connect({
    socket: connectTcp(port, '127.0.0.1'),
    rejectUnauthorized: false,
    minVersion: version,
    maxVersion: version,
    ...(leaf === undefined ? {} : { cert: pem(...chain), key: pkcs8Pem(leaf.keys) }),
  });
  let text = '';
  tls.on('error', (error) => (text += error.message)).on('data', (data: Buffer) => (text += data.toString()));
  const closed = new Promise((resolve) => tls.once('close', resolve));
  tls.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  while (!/CN=/.test(text) && !tls.closed) await turn();
  if (!tls.closed) tls.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  await closed;
  return text;
}

describe.each(['TLSv1.2', 'TLSv1.3'] as const)('%s', (version) => {
  test.each([
    ['alone', [device]],
    ['with the CA of today', [device, issuing]],
    ['with the CA of today and its root', [device, issuing, root]],
    ['with its own CA', [device, formerly, root]],
  ])(
    'a certificate from before a CA key was replaced under the same name does not break its connection: %s',
    async (_name, chain) => {
      const port = await listening('optional', subjectOf);
      const text = await talk(port, chain, version);
      expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 200']);
      expect(text.match(/CN=\w+/g)).toEqual(['CN=device', 'CN=device']);
      expect(log).toEqual([]);
    },
  );

  test('what names the CAs is never handed over as the issuer of a client certificate', async () => {
    const port = await listening('optional', (socket) => {
      const issuer = socket.getPeerX509Certificate()?.issuerCertificate;
      return `CN=x sent ${issuer?.fingerprint256 ?? 'no issuer'} `;
    });
    expect(await talk(port, [current], version)).toContain('sent no issuer');
  });

  test.each(['required', 'optional', 'none'] as const)(
    'mode %s: the certificate of a proxy passes the handshake, and its issuer is named, never trusted',
    async (mode) => {
      const stranger = await makeCa('CN=Proxies');
      const selfSigned = await makeCa('CN=self-signed proxy');
      const proxy = await makeClient('CN=proxy', stranger);
      const sibling = await makeClient('CN=sibling', stranger);
      const port = await listening(mode, subjectOf, [pem(proxy), pem(selfSigned)]);
      expect(await talk(port, [proxy], version)).toContain('HTTP/1.1 200');
      const { output: named } = await runAny(
        'openssl',
        ['s_client', '-connect', `127.0.0.1:${port}`, version === 'TLSv1.2' ? '-tls1_2' : '-tls1_3'],
        { input: '' },
      );
      for (const name of ['CN = Proxies', 'CN = self-signed proxy']) expect(named).toContain(name);
      if (mode === 'required') expect(await talk(port, [sibling, stranger], version)).not.toContain('HTTP/1.1 200');
    },
  );

  test.each([
    ['unknown issuer', device, /client certificate refused: /],
    ['none', undefined, /did not return a certificate/],
  ])('in mode required a refusal is logged with its reason and the address: %s', async (_name, leaf, reason) => {
    const port = await listening('required', subjectOf);
    await talk(port, leaf === undefined ? [] : [leaf], version);
    expect(log).toHaveLength(1);
    expect(log[0]?.['address']).toBe('127.0.0.1');
    expect(log[0]?.['detail']).toMatch(reason);
  });
});

test.each(['optional', 'required_for_reenroll', 'required'] as const)(
  'mode %s names the CAs of acceptable certificates (RFC 8446 §4.2.4)',
  async (mode) => {
    const port = await listening(mode);
    const { output } = await runAny('openssl', ['s_client', '-connect', `127.0.0.1:${port}`, '-tls1_3']);
    expect(/^Acceptable client certificate CA names\n([^]*?)\nRequested/m.exec(output)?.[1]?.split('\n')).toEqual([
      'CN = Issuing',
      'CN = Root',
    ]);
  },
);
