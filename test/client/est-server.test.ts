/** RFC 7030 §3 and §4: what a client MUST and MUST NOT do, against a server that misbehaves as each test requires. */
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { OID } from '../../src/pki/der/oids.ts';
import { encodePem } from '../../src/pki/der/pem.ts';
import { encodeCsrAttrs } from '../../src/pki/pkcs10/csrattrs.ts';
import { parseGeneralNames } from '../../src/pki/x509/general-name.ts';
import {
  dns,
  extKeyUsage,
  keyUsage,
  makeCa,
  makeCertificate,
  makeClient,
  subjectAltName,
  type Issuer,
} from '../support/certificates.ts';
import {
  csrOf,
  sendCertificates,
  sendStatus,
  startStandIn,
  type StandIn,
  type StandInRequest,
} from '../support/est-stand-in.ts';
import { liveCertificate } from '../support/estuary-client.ts';
import { pkcs8Pem } from '../support/keys.ts';
import { localClient, type LocalClient } from '../support/local-client.ts';
import { temporaryFolder } from '../support/openssl.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());

let ca: Issuer, other: Issuer, server: Issuer;
let fingerprint: string;
let standIn: StandIn | undefined;
let clients = 0;

beforeAll(async () => {
  ca = await makeCa('CN=EST CA');
  other = await makeCa('CN=Other CA');
  server = await serverCertificate('localhost', ca);
  fingerprint = createHash('sha256').update(ca.der).digest('hex');
  writeFileSync(folder.file('ca.pem'), encodePem('CERTIFICATE', ca.der));
  writeFileSync(folder.file('otp'), 'secret\n');
});
afterEach(async () => {
  await standIn?.stop();
  standIn = undefined;
});

const serverCertificate = (
  name: string,
  issuer: Issuer,
  purposes: readonly string[] = [OID.serverAuth],
): Promise<Issuer> =>
  makeCertificate({
    subject: 'CN=server',
    issuer,
    extensions: [keyUsage('digitalSignature'), extKeyUsage(...purposes), subjectAltName(dns(name))],
  });

const issue = async (request: StandInRequest, days = 10): Promise<Buffer> => {
  const csr = csrOf(request);
  const now = Date.now();
  const { der } = await makeCertificate({
    subject: 'CN=web',
    issuer: ca,
    keys: { publicKey: csr.publicKey.keyObject, privateKey: ca.keys.privateKey },
    notBefore: now - 60_000,
    notAfter: now + days * 86_400_000,
    extensions: [keyUsage('digitalSignature'), extKeyUsage(OID.clientAuth), subjectAltName(dns('web.example'))],
  });
  return der;
};

/** A correct server, except for the test's changes. */
async function start(
  answers: Readonly<Record<string, (request: StandInRequest) => unknown>> = {},
  certificate = server,
  options: Parameters<typeof startStandIn>[2] = {},
): Promise<StandIn> {
  standIn = await startStandIn(
    certificate,
    async (request) => {
      const own = answers[request.operation];
      if (own !== undefined) return own(request);
      if (request.operation === 'cacerts') return sendCertificates(request, [ca.der]);
      if (request.operation === 'csrattrs') return sendStatus(request, 204);
      if (request.headers.authorization === undefined && request.clientCertificate === undefined)
        return sendStatus(request, 401, { 'WWW-Authenticate': 'Basic realm="est"' });
      return sendCertificates(request, [await issue(request)]);
    },
    options,
  );
  return standIn;
}

function client(
  trust: Record<string, unknown> = { ca_fingerprint: fingerprint },
  more: Record<string, unknown> = {},
): LocalClient {
  return localClient(folder.file(`client-${++clients}`), {
    server: { url: standIn?.url ?? '', timeout: 60n, ...trust },
    certificate: { subject: 'CN=web', dns_names: ['web.example'], otp_file: folder.file('otp'), ...more },
  });
}

const given = { trust_anchors: '' };
const operations = (): string[] => (standIn?.requests ?? []).map(({ operation }) => operation);
const authorizations = (): unknown[] => (standIn?.requests ?? []).flatMap(({ headers }) => headers.authorization ?? []);
const anchors = (): Record<string, unknown> => ({ ...given, trust_anchors: folder.file('ca.pem') });

describe('RFC 7030 §3.3, §3.6: the server', () => {
  test('§3.1: explicit trust anchors can be designated, and then no implicit one counts', async () => {
    await start();
    expect(await client(anchors()).step()).toMatchObject({ outcome: 'changed' });
    await standIn?.stop();
    await start({}, await serverCertificate('localhost', other));
    const refused = client(anchors());
    expect((await refused.step()).error).toMatchObject({ code: 'SERVER_UNTRUSTED' });
    expect(operations()).toEqual([]);
  });

  test('§3.3.1: the certificate is validated by RFC 5280: one that is over is refused', async () => {
    const old = await makeCertificate({
      subject: 'CN=server',
      issuer: ca,
      notAfter: Date.UTC(2026, 1, 1),
      extensions: [extKeyUsage(OID.serverAuth), subjectAltName(dns('localhost'))],
    });
    await start({}, old);
    expect((await client(anchors()).step()).error?.message).toMatch(/CERT_HAS_EXPIRED.*or the clock is wrong/);
  });

  test('§3.3.1: one that is for no server is refused', async () => {
    await start({}, await serverCertificate('localhost', ca, [OID.clientAuth]));
    expect((await client(anchors()).step()).error).toMatchObject({ code: 'SERVER_UNTRUSTED' });
  });

  test('§3.6.1: another host name is refused, also with id-kp-cmcRA', async () => {
    for (const purposes of [[OID.serverAuth], [OID.serverAuth, OID.cmcRA]]) {
      await start({}, await serverCertificate('elsewhere.example', ca, purposes));
      expect((await client(anchors()).step()).error).toMatchObject({
        code: 'SERVER_UNTRUSTED',
        message: expect.stringMatching(/certificate is for elsewhere\.example, not for localhost/) as unknown,
      });
      expect(operations()).toEqual([]);
      await standIn?.stop();
    }
  });

  test('§3.6.1: accept_cmc_ra accepts another host name with id-kp-cmcRA, and not without', async () => {
    await start({}, await serverCertificate('elsewhere.example', ca, [OID.serverAuth, OID.cmcRA]));
    const accepting = { ...anchors(), accept_cmc_ra: true };
    expect(await client(accepting).step()).toMatchObject({ outcome: 'changed' });
    await standIn?.stop();
    await start({}, await serverCertificate('elsewhere.example', ca));
    expect((await client(accepting).step()).error).toMatchObject({ code: 'SERVER_UNTRUSTED' });
    expect(operations()).toEqual([]);
  });

  test('§3.6.2: with an implicit trust anchor the host name must match, also with id-kp-cmcRA', async () => {
    await start({}, await serverCertificate('elsewhere.example', ca, [OID.serverAuth, OID.cmcRA]));
    const implicit = { ...anchors(), system_trust_anchors: true };
    expect((await client(implicit).step()).error).toMatchObject({ code: 'SERVER_UNTRUSTED' });
    expect(() => client({ ...implicit, accept_cmc_ra: true })).toThrow('server.accept_cmc_ra');
  });

  test('§3.3: TLS older than 1.2 is not spoken, nor cipher suites without encryption or authentication', async () => {
    await start({}, server, { minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1', ciphers: 'ALL:@SECLEVEL=0' });
    expect((await client(anchors()).step()).error).toMatchObject({ code: 'SERVER_UNREACHABLE' });
    await standIn?.stop();
    await start({}, server, { maxVersion: 'TLSv1.2', ciphers: 'aNULL:eNULL:@SECLEVEL=0' });
    expect((await client(anchors()).step()).error).toMatchObject({ code: 'SERVER_UNREACHABLE' });
  });
});

describe('RFC 7030 §4.1: CA certificates', () => {
  test('§4.1.1: the first contact fetches the CAs and nothing else, and goes on over a new TLS session', async () => {
    await start();
    expect(await client().step()).toMatchObject({ outcome: 'changed' });
    expect(operations()).toEqual(['cacerts', 'cacerts', 'csrattrs', 'simpleenroll', 'simpleenroll']);
    const [first, second, ...others] = (standIn?.requests ?? []).map(({ socket }) => socket);
    expect(first === second).toBe(false);
    expect(others.every((socket) => socket === second)).toBe(true);
    expect(second?.isSessionReused()).toBe(false);
  });

  test('§4.1.1, §3.2.3: no authentication is answered before the server is authenticated', async () => {
    await start({ cacerts: (request) => sendStatus(request, 401, { 'WWW-Authenticate': 'Basic realm="est"' }) });
    const { error } = await client().step();
    expect(error?.message).toContain('cacerts: 401');
    expect([operations(), authorizations()]).toEqual([['cacerts'], []]);
  });

  test('§4.1.1: a CA without the fingerprint is refused, and nothing is asked for', async () => {
    await start();
    expect((await client({ ca_fingerprint: 'ab'.repeat(32) }).step()).error).toMatchObject({ code: 'CA_UNTRUSTED' });
    expect(operations()).toEqual(['cacerts']);
  });

  test('§4.1.1: the user at the terminal types the fingerprint; a yes does not suffice', async () => {
    await start();
    for (const [typed, outcome] of [
      ['yes', 'failed'],
      [fingerprint, 'changed'],
    ]) {
      const asked: string[] = [];
      const attended = localClient(folder.file(`client-${++clients}`), {
        server: { url: standIn?.url ?? '' },
        certificate: { subject: 'CN=web', otp_file: folder.file('otp') },
        ask: (question) => Promise.resolve((asked.push(question), typed ?? '')),
      });
      expect(await attended.step()).toMatchObject({ outcome });
      expect(asked.join()).toContain(`SHA-256 ${fingerprint}`);
    }
  });

  test('§4.1.3: what is believed is kept, and used from then on', async () => {
    await start();
    const one = client();
    await one.step();
    const before = operations().length;
    await one.step('renew');
    expect(operations().slice(before)).toEqual(['cacerts', 'csrattrs', 'simplereenroll']);
  });

  test.each([201, 202, 204, 400, 403, 404, 500, 503])('§4.1.3: %i to cacerts ends the protocol', async (status) => {
    await start({ cacerts: (request) => sendStatus(request, status) });
    expect((await client(anchors()).step()).outcome).toBe('failed');
    expect(operations()).toEqual(['cacerts']);
  });

  test('§4.1.3: an answer that is no certs-only message is refused', async () => {
    for (const body of ['', 'AAAA', 'not base64!', 'MAA='])
      await (async () => {
        const broken = await start({
          cacerts: ({ response }) =>
            void response.writeHead(200, { 'Content-Type': 'application/pkcs7-mime' }).end(body),
        });
        expect((await client(anchors()).step()).error).toMatchObject({ code: 'ANSWER_INVALID' });
        await broken.stop();
        standIn = undefined;
      })();
  });
});

describe('RFC 7030 §4.2: enrollment', () => {
  test('§4.2.1: a PKCS #10 by POST, base64 with its media type, signed by its key', async () => {
    await start();
    await client(anchors()).step();
    const request = standIn?.requests.at(-1);
    expect([request?.method, request?.headers['content-type'], request?.headers['content-transfer-encoding']]).toEqual([
      'POST',
      'application/pkcs10',
      'base64',
    ]);
    if (request !== undefined) expect(csrOf(request).publicKey.keyType).toBe('ec:P-256');
    expect(authorizations()).toEqual([`Basic ${Buffer.from(':secret').toString('base64')}`]);
  });

  test('§3.3.2, §4.2.2: a renewal shows the certificate that it renews, with the same subject and subjectAltName', async () => {
    await start();
    const one = client(anchors());
    await one.step();
    const before = liveCertificate(one.folder);
    await one.step('renew');
    const request = standIn?.requests.at(-1);
    if (request === undefined) throw new Error('no request');
    expect(request.clientCertificate?.replaceAll(':', '').toLowerCase()).toBe(before.fingerprint);
    const csr = csrOf(request);
    expect(csr.subject.der).toEqual(before.subject.der);
    const names = csr.extensions.find(({ oid }) => oid === OID.subjectAltName);
    expect(names && parseGeneralNames(names.value)).toEqual(before.subjectAltNames);
    expect(request.headers.authorization).toBeUndefined();
  });

  test('§3.3.2: the first enrollment may show the certificate of a third party, with its chain', async () => {
    const idevid = await makeClient('CN=idevid', other);
    writeFileSync(
      folder.file('idevid.pem'),
      `${encodePem('CERTIFICATE', idevid.der)}${encodePem('CERTIFICATE', other.der)}`,
    );
    writeFileSync(folder.file('idevid.key'), pkcs8Pem(idevid.keys));
    await start();
    const more = {
      otp_file: undefined,
      certificate: folder.file('idevid.pem'),
      private_key: folder.file('idevid.key'),
    };
    expect(await client(anchors(), more).step()).toMatchObject({ outcome: 'changed' });
    const seen = standIn?.requests.at(-1)?.clientCertificate?.replaceAll(':', '').toLowerCase();
    expect(seen).toBe(createHash('sha256').update(idevid.der).digest('hex'));
  });

  test('§4.2.3: after 202 it waits for Retry-After, and sends the same request', async () => {
    let polls = 0;
    await start({
      simpleenroll: async (request) => {
        if (request.headers.authorization === undefined)
          return sendStatus(request, 401, { 'WWW-Authenticate': 'Basic realm="est"' });
        polls += 1;
        if (polls === 1) return sendStatus(request, 202, { 'Retry-After': '300' });
        return sendCertificates(request, [await issue(request)]);
      },
    });
    const one = client(anchors());
    const began = Date.now();
    const { outcome, next } = await one.step();
    expect(outcome).toBe('pending');
    expect(next).toBeGreaterThanOrEqual(began + 300_000);
    expect(next).toBeLessThanOrEqual(Date.now() + 300_000);
    await one.step();
    expect(polls).toBe(1);
    one.ahead = 301_000;
    expect(await one.step()).toMatchObject({ outcome: 'changed' });
    const bodies = (standIn?.requests ?? [])
      .filter(({ operation }) => operation === 'simpleenroll')
      .map(({ body }) => body);
    expect(new Set(bodies).size).toBe(1);
  });

  test('§4.2.3: a certificate of another key, or of a CA that is not trusted, is not taken', async () => {
    const strange = await makeClient('CN=web', ca);
    await start({ simpleenroll: (request) => sendCertificates(request, [strange.der]) });
    expect((await client(anchors()).step()).error?.message).toContain('for another key');
    await standIn?.stop();
    await start({
      simpleenroll: async (request) => {
        const { publicKey } = csrOf(request);
        const keys = { publicKey: publicKey.keyObject, privateKey: other.keys.privateKey };
        sendCertificates(request, [(await makeClient('CN=web', other, { keys })).der]);
      },
    });
    expect((await client(anchors()).step()).error).toMatchObject({ code: 'CA_UNTRUSTED' });
  });

  test.each([
    [400, 'refused'],
    [401, 'unauthenticated'],
    [403, 'refused'],
    [404, 'refused'],
    [429, 'later'],
    [500, 'later'],
    [503, 'later'],
  ])('§4.2.3: %i, with its text in the log (%s)', async (status, kind) => {
    await start({ simpleenroll: (request) => sendStatus(request, status, {}, 'for\u001b[31m a reason\n') });
    const one = client(anchors());
    expect((await one.step()).error).toMatchObject({
      kind,
      status,
      message: `simpleenroll: ${status} (for [31m a reason)`,
    });
    expect(one.log.join()).not.toContain('secret');
  });

  test('an answer that breaks off is a lost one: the same request goes again', async () => {
    let broken = true;
    await start({
      simpleenroll: async (request) => {
        if (request.headers.authorization === undefined)
          return sendStatus(request, 401, { 'WWW-Authenticate': 'Basic realm="est"' });
        if (!broken) return sendCertificates(request, [await issue(request)]);
        broken = false;
        request.response.writeHead(200, { 'Content-Type': 'application/pkcs7-mime', 'Content-Length': '5000' });
        request.response.write('MII');
        return setTimeout(() => request.socket.destroy(), 20);
      },
    });
    const one = client(anchors());
    expect((await one.step()).error).toMatchObject({ code: 'SERVER_UNREACHABLE', kind: 'later' });
    one.ahead = 60_000;
    expect(await one.step()).toMatchObject({ outcome: 'changed' });
    const sent = (standIn?.requests ?? [])
      .filter(({ operation }) => operation === 'simpleenroll')
      .map(({ body }) => body);
    expect([sent.length, new Set(sent).size]).toEqual([4, 1]);
  });
});

describe('RFC 7030 §3.2.1: redirections', () => {
  test('within the origin they are followed', async () => {
    await start({
      cacerts: (request) => sendStatus(request, 302, { Location: '/.well-known/est/moved/cacerts' }),
      'moved/cacerts': (request) => sendCertificates(request, [ca.der]),
      simpleenroll: (request) => sendStatus(request, 307, { Location: '/.well-known/est/moved/simpleenroll' }),
    });
    expect(await client(anchors()).step()).toMatchObject({ outcome: 'changed' });
    expect(operations()).toContain('moved/simpleenroll');
  });

  test('to another origin no request and no password goes: somebody has to want it', async () => {
    await start({ simpleenroll: (request) => sendStatus(request, 307, { Location: 'https://other.example/x' }) });
    expect((await client(anchors()).step()).error).toMatchObject({ code: 'REDIRECTED' });
    expect(authorizations()).toEqual([]);
  });

  test('for ever they are not', async () => {
    await start({ cacerts: (request) => sendStatus(request, 302, { Location: 'cacerts' }) });
    expect((await client(anchors()).step()).error).toMatchObject({ code: 'REDIRECTED' });
    expect(operations().length).toBeLessThan(10);
  });
});

describe.each(['TLSv1.2', 'TLSv1.3'] as const)('RFC 7030 §3.5: linking identity and possession over %s', (version) => {
  const bindingOf = ({ socket }: StandInRequest): string | undefined =>
    (version === 'TLSv1.3'
      ? socket.exportKeyingMaterial(32, 'EXPORTER-Channel-Binding', Buffer.alloc(0))
      : socket.isSessionReused()
        ? socket.getFinished()
        : socket.getPeerFinished()
    )?.toString('base64');

  test.each([
    ['challengePassword', 'challengePassword'],
    ['estIdentityLinking', 'identityLinking'],
  ] as const)('%s holds the binding of the connection, a resumed one too', async (asked, field) => {
    const bindings: (string | undefined)[][] = [];
    await start(
      {
        csrattrs: ({ response }) => {
          const body = encodeCsrAttrs([{ oid: OID[asked] }]).toString('base64');
          response.writeHead(200, { 'Content-Type': 'application/csrattrs' }).end(body);
        },
        simpleenroll: async (request) => {
          bindings.push([csrOf(request)[field], bindingOf(request)]);
          const challenge = { 'WWW-Authenticate': 'Basic realm="est"', Connection: 'close' };
          if (request.headers.authorization === undefined) return sendStatus(request, 401, challenge);
          return sendCertificates(request, [await issue(request)]);
        },
      },
      server,
      { minVersion: version, maxVersion: version },
    );
    expect(await client(anchors()).step()).toMatchObject({ outcome: 'changed' });
    expect(bindings).toHaveLength(2);
    for (const [sent, expected] of bindings) expect(sent).toBe(expected);
    expect(bindings[0]?.[0]).not.toBe(bindings[1]?.[0]);
    expect(standIn?.requests.at(-1)?.socket.isSessionReused()).toBe(true);
  });
});
