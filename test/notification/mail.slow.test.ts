/**
 * Digests by mail to a real mail server, Debian's OpenSMTPD: in clear text, and over TLS. Its own TLS does not work with OpenSSL 3 ("missing
 * private key"), so a TLS server of the test stands in front.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, chownSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { createServer, type Server } from 'node:tls';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { CloudEvent } from '../../src/notification/event.ts';
import { createReceiver } from '../../src/notification/receivers.ts';
import { encodePem } from '../../src/pki/der/pem.ts';
import { parseCertificate } from '../../src/pki/x509/certificate.ts';
import { dns, makeCa, makeClient, subjectAltName } from '../support/certificates.ts';
import { runAny } from '../support/command.ts';
import { pkcs8Pem } from '../support/keys.ts';
import { temporaryFolder } from '../support/openssl.ts';
import { accepts, freePort } from '../support/ports.ts';
import { findCommand, requires } from '../support/requires.ts';
import { until } from '../support/until.ts';

const EVENT: CloudEvent = {
  ...{ specversion: '1.0', source: 'urn:x', datacontenttype: 'application/json', id: '1', type: 'crl.overdue' },
  ...{ time: '2026-11-24T04:00:00Z', data: { ca: 'devices', detail: 'CRL 7 is late\r\nBcc: c@example.com' } },
};

describe.skipIf(!requires('opensmtpd', 'root'))('OpenSMTPD', async () => {
  const folder = temporaryFolder();
  const fresh = folder.file('box/new');
  const root = await makeCa('CN=Mail root');
  let smtpd: ChildProcess;
  let log = '';
  let inFront: Server;
  let port = 0;
  let tlsPort = 0;

  beforeAll(async () => {
    chmodSync(folder.path, 0o755);
    // Two deliveries that make it at once can fail.
    const nobody = Number((await runAny('id', ['-u', 'nobody'])).stdout);
    for (const name of ['box', 'box/tmp', 'box/cur', 'box/new']) {
      mkdirSync(folder.file(name));
      chownSync(folder.file(name), nobody, 0);
    }
    port = await freePort();
    writeFileSync(
      folder.file('smtpd.conf'),
      `table anybody { "@" = "nobody" }\nlisten on 127.0.0.1 port ${port}\n` +
        `action "keep" maildir "${folder.file('box')}" virtual <anybody>\nmatch from any for any action "keep"\n`,
    );
    smtpd = spawn(findCommand('smtpd') ?? 'smtpd', ['-d', '-f', folder.file('smtpd.conf')], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    smtpd.stderr?.setEncoding('utf8').on('data', (text: string) => (log += text));
    await until('the mail server', () => accepts(port));
    const leaf = await makeClient('CN=localhost', root, { extensions: [subjectAltName(dns('localhost'))] });
    inFront = createServer({ cert: encodePem('CERTIFICATE', leaf.der), key: pkcs8Pem(leaf.keys) }, (socket) => {
      const mail = connect(port, '127.0.0.1');
      for (const side of [socket, mail]) side.on('error', () => undefined);
      socket.pipe(mail).pipe(socket);
    });
    await new Promise<void>((resolve) => inFront.listen(0, '127.0.0.1', resolve));
    const address = inFront.address();
    tlsPort = typeof address === 'object' && address !== null ? address.port : 0;
  });
  afterAll(() => {
    inFront.close();
    smtpd.kill();
    folder.remove();
  });

  const send = (security: 'none' | 'tls' | 'starttls', anchor = root): Promise<void> => {
    const to = ['a@example.com', 'b@example.com'];
    const common = { kind: 'smtp', name: 'x', host: 'localhost', from: 'e@example.com', to } as const;
    const config = { ...common, security, port: security === 'tls' ? tlsPort : port };
    const trusted = { trustAnchors: [parseCertificate(anchor.der)] as const, client: undefined };
    return createReceiver({ ...config, days: [30], retry_for: 10, digest_interval: 1 }, trusted).send([EVENT]);
  };

  /** Without reports of the mail server itself, which quote a mail. */
  const digests = (): string[] =>
    readdirSync(fresh)
      .map((name) => readFileSync(`${fresh}/${name}`, 'utf8'))
      .filter((text) => /^Subject: Estuary: 1 warning$/m.test(text.replaceAll('\r', '').split('\n\n')[0] ?? ''));

  test.each(['none', 'tls'] as const)(
    'accepts a digest with security = "%s", and each recipient gets it',
    async (security) => {
      const { length } = digests();
      await send(security);
      await until('two mails', () => digests().length === length + 2).catch((cause: unknown) => {
        throw new Error(`${digests().length - length} mails, after:\n${log}`, { cause });
      });
      for (const text of digests()) {
        expect(text).toContain('  2026-11-24T04:00:00Z  devices: CRL 7 is late  Bcc: c@example.com');
        expect(text).not.toMatch(/^Bcc:/m);
      }
    },
  );

  test('gets nothing if its certificate is not trusted, or it offers no STARTTLS', async () => {
    const { length } = digests();
    await expect(send('tls', await makeCa('CN=Other root'))).rejects.toThrow(/certificate/i);
    await expect(send('starttls')).rejects.toThrow(/STARTTLS|TLS/);
    expect(digests()).toHaveLength(length);
  });
});
