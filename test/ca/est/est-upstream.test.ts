/** `driver = "est"` accepts what the client accepts (RFC 7030, RFC 8951): other servers' bodies, redirects and challenges. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { SecureVersion } from 'node:tls';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { EstUpstream } from '../../../src/ca/est/est-upstream.ts';
import { clientTls } from '../../../src/ca/remote/client-tls.ts';
import { HttpClient } from '../../../src/https-client.ts';
import type { Certificates } from '../../../src/config/material/material.ts';
import { certsOnly } from '../../../src/pki/cms/cms.ts';
import { OID } from '../../../src/pki/der/oids.ts';
import { encodePem } from '../../../src/pki/der/pem.ts';
import { encodeCsrAttrs } from '../../../src/pki/pkcs10/csrattrs.ts';
import { parseCertificate } from '../../../src/pki/x509/certificate.ts';
import { parseDistinguishedName } from '../../../src/pki/x509/name.ts';
import {
  dns,
  extKeyUsage,
  makeCa,
  makeCertificate,
  makeClient,
  subjectAltName,
  type Issuer,
} from '../../support/certificates.ts';
import { startStandIn, type StandIn, type StandInRequest } from '../../support/est-stand-in.ts';
import { pkcs8Pem } from '../../support/keys.ts';
import { temporaryFolder } from '../../support/openssl.ts';
import { accepts, freePorts } from '../../support/ports.ts';
import { requires } from '../../support/requires.ts';
import { until } from '../../support/until.ts';

const root = await makeCa('CN=Upstream Root');
const leaf = await makeClient('CN=device', root);
const attributes = encodeCsrAttrs([{ oid: OID.challengePassword }]);
/** As Bouncy Castle writes it: indefinite lengths. */
const CACERTS = Buffer.from(
  readFileSync(new URL('bouncycastle-cacerts.b64', import.meta.url), 'latin1').replace(/\s/g, ''),
  'base64',
);
let tls: Issuer;
const servers: StandIn[] = [];
const opened: EstUpstream[] = [];

beforeAll(async () => {
  const extensions = [subjectAltName(dns('localhost')), extKeyUsage(OID.serverAuth)];
  tls = await makeCertificate({ subject: 'CN=localhost', issuer: root, extensions });
});
afterEach(async () => {
  for (const one of opened.splice(0)) one.close();
  for (const one of servers.splice(0)) await one.stop();
});

type Answer = (request: StandInRequest, server: StandIn) => unknown;

interface At {
  readonly requestCert?: boolean;
  readonly hasCertificate?: boolean;
  readonly maxAnswer?: number;
  readonly maxVersion?: SecureVersion;
  readonly anchor?: Issuer;
}

function upstreamAt(url: string, { hasCertificate = false, maxAnswer, maxVersion, anchor = root }: At): EstUpstream {
  const certificates: Certificates = [parseCertificate(leaf.der)];
  const client = { certificates, privateKey: leaf.keys.privateKey };
  const settings = {
    ...clientTls({ trustAnchors: [parseCertificate(anchor.der)], ...(hasCertificate ? { client } : {}) }),
    ...(maxVersion === undefined ? {} : { maxVersion }),
  };
  const made = new EstUpstream({
    client: new HttpClient(url, settings, maxAnswer === undefined ? {} : { maxAnswer }),
    url: `${url}/.well-known/est/edge/`,
    password: { username: 'ra', reveal: () => 'secret' },
    hasCertificate,
    forwardsCsrAttributes: true,
    timeout: 60_000,
    retryAfter: 7,
  });
  opened.push(made);
  return made;
}

async function upstream(answer: Answer, { requestCert = true, ...at }: At = {}) {
  const server: StandIn = await startStandIn(tls, (request) => answer(request, server), { requestCert });
  servers.push(server);
  const made = upstreamAt(server.url, at);
  return { server, made, submit: () => made.submit(request) };
}

const request = {
  request_id: 'r1',
  csr: Buffer.from('a CSR'),
  subject: parseDistinguishedName('CN=device'),
  subjectAltNames: [],
  requester: '',
  operation: '',
  notAfter: new Date(),
};

const send = (
  { response }: StandInRequest,
  der: Buffer,
  { status = 200, end = '\n', type = 'application/pkcs7-mime' } = {},
) => response.writeHead(status, { 'Content-Type': type }).end(`${der.toString('base64')}${end}`);
const sendLeaf = (to: StandInRequest, how = {}): unknown => send(to, certsOnly([leaf.der]), how);
const ISSUED = { status: 'issued', certificates: [leaf.der] };

describe('bodies of other servers', () => {
  test('indefinite lengths are read, as cacerts and as the answer to an enrollment', async () => {
    const { made, submit } = await upstream((to) => send(to, CACERTS));
    expect((await made.chain()).length).toBeGreaterThan(0);
    expect(await submit()).toMatchObject({ status: 'issued' });
  });

  test('a trailing NUL is ignored', async () => {
    const { made, submit } = await upstream((to) =>
      to.path.endsWith('csrattrs') ? send(to, attributes, { end: '\0' }) : sendLeaf(to, { end: '\n\0' }),
    );
    expect(await made.csrAttributes?.()).toEqual(attributes);
    expect(await submit()).toEqual(ISSUED);
  });

  test('201 with a certificate is issued', async () => {
    const { submit } = await upstream((to) => sendLeaf(to, { status: 201 }));
    expect(await submit()).toEqual(ISSUED);
  });

  test('more than the limit is 500, because the server answered', async () => {
    const { made, submit } = await upstream((to) => send(to, Buffer.alloc(3000)), { maxAnswer: 1000 });
    await expect(submit()).rejects.toMatchObject({
      status: 500,
      detail: expect.stringMatching(/^possibly issued/) as unknown,
    });
    await expect(made.chain()).rejects.toMatchObject({ status: 500 });
  });
});

describe('redirects', () => {
  const to = ({ response }: StandInRequest, location: string) => response.writeHead(307, { Location: location }).end();

  test('within the origin are followed with the same request', async () => {
    const { server, made, submit } = await upstream((asked) => {
      const [, moved] = /^\/moved\/(\w+)$/.exec(asked.path) ?? [];
      if (moved === undefined) return to(asked, `/moved/${asked.operation.replace('edge/', '')}`);
      return moved === 'cacerts' ? send(asked, certsOnly([root.der])) : sendLeaf(asked);
    });
    expect(await submit()).toEqual(ISSUED);
    expect((await made.chain()).map(({ der }) => der)).toEqual([root.der]);
    const posts = server.requests.filter(({ method }) => method === 'POST').map(({ path, body }) => [path, body]);
    expect(posts.map(([path]) => path)).toEqual(['/.well-known/est/edge/simpleenroll', '/moved/simpleenroll']);
    expect(posts[0]?.[1]).toBe(posts[1]?.[1]);
  });

  test('to another origin are 500, and nothing is sent there', async () => {
    const { server: other } = await upstream(sendLeaf);
    const { submit } = await upstream((asked) => to(asked, `${other.url}/simpleenroll`));
    await expect(submit()).rejects.toMatchObject({ status: 500, code: 'UPSTREAM_FAILED' });
    expect(other.requests).toEqual([]);
  });

  test('in a circle are 500', async () => {
    const { submit } = await upstream((asked) => to(asked, asked.path));
    await expect(submit()).rejects.toMatchObject({ status: 500 });
  });
});

describe('challenges', () => {
  const asking =
    (scheme: string): Answer =>
    (asked) => {
      if (asked.headers.authorization?.startsWith(scheme) === true)
        return asked.path.endsWith('csrattrs') ? send(asked, attributes) : sendLeaf(asked);
      const challenge = `${scheme} realm="est", nonce="n", qop="auth", algorithm=SHA-256`;
      return asked.response.writeHead(401, { 'WWW-Authenticate': challenge }).end();
    };

  test.each(['Basic', 'Digest'])('%s is answered, also for csrattrs', async (scheme) => {
    const { made, submit } = await upstream(asking(scheme));
    expect(await submit()).toEqual(ISSUED);
    expect(await made.csrAttributes?.()).toEqual(attributes);
  });

  test('that the password does not satisfy are 500, after one try', async () => {
    const { server, submit } = await upstream(({ response }) =>
      response.writeHead(401, { 'WWW-Authenticate': 'Basic realm="est"' }).end(),
    );
    await expect(submit()).rejects.toMatchObject({ status: 500 });
    expect(server.requests).toHaveLength(1);
  });
});

describe('403', () => {
  const forbid: Answer = ({ response }) => response.writeHead(403, { 'Content-Type': 'text/plain' }).end('no');

  test.each([
    ['of a server that saw the certificate is for the device', { requestCert: true, hasCertificate: true }, 403, 'no'],
    [
      'of a server that never requested it is our configuration',
      { requestCert: false, hasCertificate: true },
      500,
      'never requested',
    ],
    ['without a certificate is for the device', { requestCert: false, hasCertificate: false }, 403, 'no'],
  ])('%s', async (_what, at, status, text) => {
    const { submit } = await upstream(forbid, at);
    await expect(submit()).rejects.toMatchObject({ status, detail: expect.stringContaining(text) as unknown });
  });
});

describe.skipIf(!requires('apache'))(
  'Apache, which requests the certificate for a part of its URLs, after the handshake',
  () => {
    const folder = temporaryFolder();
    let url: string;
    let apache: ChildProcess;
    const behind = createServer((_, response) => response.end(certsOnly([leaf.der]).toString('base64')));

    beforeAll(async () => {
      const [port = 0, inner = 0] = await freePorts(2);
      behind.listen(inner, '127.0.0.1');
      url = `https://localhost:${port}`;
      const pem = (name: string, { der, keys }: Issuer): string => {
        writeFileSync(folder.file(name), encodePem('CERTIFICATE', der) + pkcs8Pem(keys));
        return folder.file(name);
      };
      const modules = ['mpm_event', 'authz_core', 'socache_shmcb', 'ssl', 'proxy', 'proxy_http'];
      writeFileSync(
        folder.file('httpd.conf'),
        `ServerRoot ${folder.path}
PidFile ${folder.file('pid')}
ErrorLog ${folder.file('log')}
${modules.map((name) => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so`).join('\n')}
Listen 127.0.0.1:${port}
ServerName localhost
SSLEngine on
SSLCertificateFile ${pem('server.pem', tls)}
SSLCACertificateFile ${pem('root.pem', root)}
ProxyPass / http://127.0.0.1:${inner}/
<Location /.well-known/est/edge/simpleenroll>
  SSLVerifyClient require
</Location>
`,
      );
      apache = spawn('apache2', ['-f', folder.file('httpd.conf'), '-D', 'FOREGROUND'], { stdio: 'ignore' });
      await until('Apache listens', () => accepts(port));
    });
    afterAll(async () => {
      // Its children end with it only where it ends them.
      apache.kill();
      await once(apache, 'exit');
      behind.close();
      folder.remove();
    });

    test.each<[SecureVersion, object]>([
      ['TLSv1.2', ISSUED],
      ['TLSv1.3', { status: 500, detail: expect.stringContaining('max_tls_version = "TLSv1.2"') as unknown }],
    ])('max_tls_version %s', async (maxVersion, expected) => {
      const made = upstreamAt(url, { hasCertificate: true, maxVersion });
      expect(await made.submit(request).catch((error: unknown) => error)).toMatchObject(expected);
    });
  },
);

test('the CA that issued the TLS certificate is anchor enough (RFC 5280 §6.1.1)', async () => {
  const below = await makeCa('CN=Below', { issuer: root });
  const extensions = [subjectAltName(dns('localhost')), extKeyUsage(OID.serverAuth)];
  const server = await makeCertificate({ subject: 'CN=localhost', slot: 'below', issuer: below, extensions });
  const standIn = await startStandIn(server, sendLeaf);
  servers.push(standIn);
  expect(await upstreamAt(standIn.url, { anchor: below }).submit(request)).toEqual(ISSUED);
});

test('a DER or PEM body of an old server is read', async () => {
  for (const body of [certsOnly([leaf.der]), encodePem('PKCS7', certsOnly([leaf.der]))]) {
    const { submit } = await upstream(({ response }) => response.writeHead(200).end(body));
    expect(await submit()).toEqual(ISSUED);
  }
});
