/**
 * `[ca.authorization]` with a real service on loopback, without our server.
 *
 * Longer than other files: its cases share the service.
 */
import { prepareAt } from '../../../src/ca/driver.ts';
import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { Compile } from 'typebox/compile';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import type { Identity } from '../../../src/auth/identity.ts';
import { Ca } from '../../../src/ca/router.ts';
import type { CaConfig } from '../../../src/config/schema.ts';
import { Secret } from '../../../src/config/secret.ts';
import {
  AuthorizationServices,
  ExternalAuthorization,
} from '../../../src/enrollment/authorization/external-authorization.ts';
import { AuthorizationRequest } from '../../../src/enrollment/authorization/messages.ts';
import type { EnrollmentOutcome, EstEnrollment } from '../../../src/enrollment/request.ts';
import { encodePem } from '../../../src/pki/der/pem.ts';
import { parseCertificate, type Certificate } from '../../../src/pki/x509/certificate.ts';
import { encodeGeneralName, formatGeneralName, parseGeneralNameText } from '../../../src/pki/x509/general-name.ts';
import { formatName } from '../../../src/pki/x509/name.ts';
import type { Store } from '../../../src/store/store.ts';
import { fileCa } from '../../support/file-ca.ts';
import { deviceRow, otpRow, T0 } from '../../store/rows.ts';
import { openedIn } from '../../store/support.ts';
import {
  dns,
  extKeyUsage,
  ip,
  keyUsage,
  makeCa,
  makeClient,
  subjectAltName,
  type Issuer,
  UNUSUAL_SANS,
} from '../../support/certificates.ts';
import { buildCsr, commonName, extensionRequest, makeKey, san as sanOf, simpleCsr } from '../../support/csr.ts';
import { pkcs8Pem } from '../../support/keys.ts';
import { temporaryFolder } from '../../support/openssl.ts';
import { runForRequest } from '../../../src/request-context.ts';
import { ADDRESS, mtlsIdentity, otpIdentity, pipeline, received, remoteQueue } from '../support.ts';
import { loadService } from '../../../src/config/material/ca.ts';
import { MaterialReader } from '../../../src/config/material/reader.ts';
import { pause } from '../../support/until.ts';

type Reply = (response: ServerResponse, request: IncomingMessage) => void;

const folder = temporaryFolder();
let store: Store;
let plain: Ca;
let server: Server;
let root: Issuer;
let own: Certificate;
/** What was asked, in order. */
let asked: {
  readonly body: unknown;
  readonly headers: IncomingMessage['headers'];
  readonly port: number | undefined;
}[] = [];
let reply: Reply;
let observed: string[] = [];
let logged: unknown[] = [];

const key = makeKey();
const csr = simpleCsr(key, 'device-1', ['device-1.example']);

const json =
  (value: unknown): Reply =>
  (response) =>
    void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value));

const file = (name: string, text: string): string => {
  writeFileSync(folder.file(name), text);
  return folder.file(name);
};
const certificatePem = ({ der }: Issuer): string => encodePem('CERTIFICATE', der);

beforeAll(async () => {
  store = await openedIn(folder);
  plain = await fileCa(folder, 'devices', true);
  root = await makeCa('CN=Service root');
  const leaf = await makeClient('CN=inventory', root, {
    extensions: [
      keyUsage('digitalSignature'),
      extKeyUsage('1.3.6.1.5.5.7.3.1'),
      subjectAltName(dns('localhost'), ip('127.0.0.1')),
    ],
  });
  file('root.pem', certificatePem(root));
  const client = await makeClient('CN=estuary', root);
  file('client.pem', certificatePem(client));
  file('client.key', pkcs8Pem(client.keys));
  server = createServer(
    {
      cert: certificatePem(leaf),
      key: pkcs8Pem(leaf.keys),
      ca: certificatePem(root),
      requestCert: true,
      rejectUnauthorized: false,
    },
    (request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const body: unknown = JSON.parse(Buffer.concat(chunks).toString('utf8'));
        asked.push({ body, headers: request.headers, port: request.socket.remotePort });
        reply(response, request);
      });
    },
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  own = issued(await sent({ ca: plain }));
});
afterAll(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  await store.close();
  folder.remove();
});
beforeEach(() => {
  asked = [];
  observed = [];
  logged = [];
  reply = json({ allow: true });
});

type Settings = NonNullable<CaConfig['authorization']>;

async function service(more: Partial<Settings> = {}): Promise<ExternalAuthorization> {
  const address = server.address() as AddressInfo;
  const authorization = {
    url: `https://localhost:${address.port}/authorize`,
    trust_anchors: folder.file('root.pem'),
    timeout: 60,
    max_calls: 4,
    ...more,
  };
  const material = await loadService(new MaterialReader(Date.now()), authorization, 'ca[0].authorization');
  const made = new ExternalAuthorization({
    log: { warn: (fields: unknown) => void logged.push(fields) },
    observe: (ca, outcome, seconds) => {
      expect(seconds).toBeGreaterThan(0);
      observed.push(`${ca} ${outcome}`);
    },
    retryAfter: 30,
  });
  const cas = [{ table: { ...plain.config, authorization }, authorization: material }];
  made.take(AuthorizationServices.of({ cas, labels: new Map() }));
  onTestFinished(() => made.close());
  return made;
}

interface Sending {
  readonly identity?: Identity;
  readonly ca?: Ca;
  readonly operation?: EstEnrollment;
  readonly body?: Buffer;
  readonly authorization?: ExternalAuthorization;
  readonly requestId?: string;
}

async function token(uses = 1) {
  const row = otpRow({ max_uses: uses });
  await store.insertOtp(row, []);
  const identity = otpIdentity({ otp_id: row.id, requester: `otp:${row.id}` });
  return { identity, uses: async () => (await store.getOtp(row.id))?.uses };
}

async function sent({
  identity,
  ca = plain,
  operation = 'simpleenroll',
  body = csr,
  authorization,
  requestId = randomUUID(),
}: Sending) {
  const options = { store, identity: identity ?? (await token()).identity, ...(authorization && { authorization }) };
  return (await pipeline(options).enroll(received(ca, body, { requestId, operation }))).outcome;
}

function changed(more: Partial<Pick<CaConfig, 'approval' | 'devices'>>): Ca {
  return new Ca({ ...plain.config, ...more }, plain.driver);
}

function issued(outcome: EnrollmentOutcome): Certificate {
  if (outcome.status !== 'issued') throw new Error(outcome.status);
  return parseCertificate(outcome.certificate);
}

const names = (certificate: Certificate) => [
  formatName(certificate.subject),
  ...certificate.subjectAltNames.map(formatGeneralName),
];

const FAILED = { status: 503, code: 'AUTHORIZATION_FAILED', retryAfter: 30 };

describe('[ca.authorization]', () => {
  test('the request as JSON, once, after which it is issued', async () => {
    const requestId = randomUUID();
    const certificate = issued(await sent({ authorization: await service(), requestId }));
    expect(names(certificate)).toEqual(['CN=device-1', 'DNS:device-1.example']);
    expect(asked.map(({ body }) => body)).toEqual([
      {
        request_id: requestId,
        ca: 'devices',
        operation: 'simpleenroll',
        requester: { method: 'otp', id: 'device-1', issuer: null, subject: null, sans: [], address: ADDRESS },
        subject: 'CN=device-1',
        sans: ['DNS:device-1.example'],
        key_type: 'ec:P-256',
        csr: encodePem('CERTIFICATE REQUEST', csr),
      },
    ]);
    expect(Compile(AuthorizationRequest).Check(asked[0]?.body)).toBe(true);
    expect(observed).toEqual(['devices allowed']);
    expect(asked[0]?.headers).toMatchObject({ 'content-type': 'application/json' });
    expect(asked[0]?.headers).not.toHaveProperty('authorization');
  });

  test('who asks with a certificate, and which device it is', async () => {
    const row = deviceRow({
      id: 'unit-7',
      match: { fingerprint_sha256: own.fingerprint },
    });
    await store.putDevices([{ row, events: [] }], 'create');
    await sent({
      identity: mtlsIdentity(own),
      ca: changed({ devices: 'required' }),
      authorization: await service(),
      operation: 'simplereenroll',
    });
    expect(asked[0]?.body).toMatchObject({
      operation: 'simplereenroll',
      requester: {
        method: 'mtls',
        issuer: formatName(own.issuer),
        subject: 'CN=device-1',
        sans: ['DNS:device-1.example'],
      },
      device: 'unit-7',
    });
  });

  test('a bearer token and a client certificate are shown', async () => {
    let shown: unknown;
    reply = (response, request) => {
      shown = (request.socket as unknown as { getPeerCertificate(): { subject: { CN: string } } }).getPeerCertificate()
        .subject.CN;
      json({ allow: true })(response, request);
    };
    const authorization = await service({
      bearer_token: new Secret(Buffer.from('s3cret')),
      client_certificate: folder.file('client.pem'),
      client_key: folder.file('client.key'),
    });
    await sent({ authorization });
    expect([asked[0]?.headers.authorization, shown]).toEqual(['Bearer s3cret', 'estuary']);
  });

  test('names and validity that the service decides, within the profile', async () => {
    reply = json({
      allow: true,
      subject: 'CN=press-7,O=Example',
      sans: ['DNS:press-7.example', 'IP:192.0.2.7'],
      validity_days: 10,
    });
    const certificate = issued(await sent({ authorization: await service() }));
    expect(names(certificate)).toEqual(['CN=press-7,O=Example', 'DNS:press-7.example', 'IP:192.0.2.7']);
    const days = (certificate.notAfter.getTime() - certificate.notBefore.getTime() + 1000) / 86_400_000;
    expect(days).toBe(10);
    reply = json({ allow: true, sans: [] });
    expect(names(issued(await sent({ authorization: await service() })))).toEqual(['CN=device-1']);
    reply = json({ allow: true, validity_days: plain.profile.max_validity_days });
    expect((await sent({ authorization: await service() })).status).toBe('issued');
  });

  test('names of every kind that the profile allows, with their policies; 503: others', async () => {
    const sans = UNUSUAL_SANS;
    const kinds = sans.map((san) => (san.startsWith('other:') ? 'other:1.2.3' : (san.split(':')[0] ?? '')));
    const san = { ...plain.config.profile.san, allowed: kinds, max: 6, upn: ['[a-z]+@a\\.example'] };
    const ca = new Ca({ ...plain.config, profile: { ...plain.config.profile, san } }, plain.driver);
    const plainCsr = simpleCsr(key, 'device-1');
    reply = json({ allow: true, sans });
    const certificate = issued(await sent({ ca, body: plainCsr, authorization: await service() }));
    expect(names(certificate)).toEqual(['CN=device-1', ...sans]);
    reply = json({ allow: true });
    const renewal = { identity: mtlsIdentity(certificate), operation: 'simplereenroll' } as const;
    const body = buildCsr(key, {
      subject: commonName('device-1'),
      attributes: [extensionRequest(sanOf(...sans.map(parseGeneralNameText).map(encodeGeneralName)))],
    });
    issued(await sent({ ca, body, ...renewal, authorization: await service() }));
    expect(asked.at(-1)?.body).toMatchObject({ requester: { sans }, sans });
    for (const other of ['upn:alice@b.example', 'other:1.2.4:0500', 'DNS:a.example', 'upn:', 'srv:est', 'upn']) {
      reply = json({ allow: true, sans: [other] });
      await expect(sent({ ca, body: plainCsr, authorization: await service() }), other).rejects.toMatchObject(FAILED);
    }
  });

  test('refused: 403 with the reason, no use of the password is taken, and the audit log has it', async () => {
    reply = json({ allow: false, reason: 'not in the inventory' });
    const { identity, uses } = await token();
    await expect(sent({ identity, authorization: await service() })).rejects.toMatchObject({
      status: 403,
      code: 'AUTHORIZATION_DENIED',
      message: 'not in the inventory',
    });
    expect([await uses(), observed]).toEqual([0, ['devices denied']]);
    const { items } = await store.listAudit({ limit: 1000, type: 'certificate.denied' });
    expect(items.at(-1)?.detail).toMatch(/^simpleenroll: AUTHORIZATION_DENIED: /);
  });

  test.each<[string, Reply]>([
    ['no JSON', (response) => void response.writeHead(200).end('yes')],
    ['nothing', (response) => void response.writeHead(200).end()],
    ['not UTF-8', (response) => void response.writeHead(200).end(Buffer.from('7b22616c6c6f77223a747275657d80', 'hex'))],
    ['true', json(true)],
    ['an empty object', json({})],
    ['a list', json([{ allow: true }])],
    ['allow a text', json({ allow: 'true' })],
    ['a field that there is not', json({ allow: true, subjet: 'CN=a' })],
    ['a refusal without a reason', json({ allow: false })],
    ['a reason of spaces', json({ allow: false, reason: '  ' })],
    ['a reason with a line break', json({ allow: false, reason: 'a\nb' })],
    ['a reason that is not Unicode', json({ allow: false, reason: 'a\ud800' })],
    ['a subject that is not Unicode', json({ allow: true, subject: 'CN=a\ud800' })],
    ['a refusal with names', json({ allow: false, reason: 'no', subject: 'CN=a' })],
    ['a subject that is no name', json({ allow: true, subject: 'device-1' })],
    ['a name without its kind', json({ allow: true, sans: ['device-1.example'] })],
    ['an invalid address', json({ allow: true, sans: ['IP:300.0.0.1'] })],
    ['a DNS name with a space', json({ allow: true, sans: ['DNS:a b'] })],
    ['a validity of no day', json({ allow: true, validity_days: 0 })],
    ['a validity of half a day', json({ allow: true, validity_days: 0.5 })],
    ['a validity above max_validity_days', json({ allow: true, validity_days: 91 })],
    ['a wildcard, which the profile does not allow', json({ allow: true, sans: ['DNS:*.example'] })],
    ['a CN that is a partial wildcard', json({ allow: true, subject: 'CN=*w.bad.example' })],
    ['a CN with full-width dots that is a wildcard', json({ allow: true, subject: 'CN=*．example' })],
    [
      'the subject of the CA',
      (response, request) =>
        json({ allow: true, subject: formatName(plain.certificate.subject).toUpperCase() })(response, request),
    ],
    ['a dNSName that is an IP address', json({ allow: true, sans: ['DNS:192.0.2.7'] })],
    ['an attribute type twice in one RDN', json({ allow: true, subject: 'CN=a+CN=b' })],
    ['a zero-width character', json({ allow: true, subject: 'CN=a\u200bb' })],
    ['a bidirectional character', json({ allow: true, subject: 'CN=a\u202eb' })],
    ['65 attributes', json({ allow: true, subject: Array.from({ length: 65 }, (_, i) => `OU=${i}`).join() })],
    [
      'more than 4 KiB',
      json({ allow: true, subject: Array.from({ length: 63 }, () => `OU=${'x'.repeat(64)}`).join() }),
    ],
    ['neither a subject nor names', json({ allow: true, subject: '', sans: [] })],
    ['more than 64 KiB', (response) => void response.writeHead(200).end(`{"allow":true}${' '.repeat(64 << 10)}`)],
    ['status 201', (response) => void response.writeHead(201).end('{"allow":true}')],
    ['status 403', (response) => void response.writeHead(403).end('{"allow":false,"reason":"x"}')],
    ['status 500', (response) => void response.writeHead(500).end('{"allow":true}')],
    ['a redirect', (response) => void response.writeHead(307, { location: '/elsewhere' }).end('{"allow":true}')],
    ['the end of the connection', (response) => void response.destroy()],
    [
      'half an answer',
      (response) => void response.writeHead(200, { 'content-length': 20 }).write('{"allow"', () => response.destroy()),
    ],
    ['no end', (response) => void response.writeHead(200).write('{"allow":true}')],
    ['no answer', () => undefined],
  ])('503, and nothing is issued: %s', async (what, answer) => {
    reply = answer;
    const timeout = ['no end', 'no answer'].includes(what) ? 3 : 60;
    const { identity, uses } = await token();
    await expect(sent({ identity, authorization: await service({ timeout }) })).rejects.toMatchObject(FAILED);
    expect([asked.length, await uses(), await store.openReservations()]).toEqual([1, 0, []]);
    expect(logged).toMatchObject([{ ca: 'devices', detail: expect.any(String) as string }]);
  });

  test('503: a service whose certificate nobody vouches for, or that is of another name, is told nothing', async () => {
    const other = await makeCa('CN=Another root');
    for (const more of [
      { trust_anchors: file('other.pem', certificatePem(other)) },
      { url: `https://127.0.0.2:${(server.address() as AddressInfo).port}/` },
      { url: 'https://127.0.0.1:1/' },
    ])
      await expect(sent({ authorization: await service(more) })).rejects.toMatchObject(FAILED);
    expect(asked).toEqual([]);
  });

  test('503: names at a re-enrollment; a plain yes renews, and a validity counts', async () => {
    const renewal = { identity: mtlsIdentity(own), operation: 'simplereenroll' } as const;
    for (const override of [{ subject: 'CN=device-1' }, { sans: ['DNS:device-1.example'] }]) {
      reply = json({ allow: true, ...override });
      await expect(sent({ ...renewal, authorization: await service() })).rejects.toMatchObject(FAILED);
    }
    for (const days of [undefined, 5]) {
      reply = json({ allow: true, ...(days === undefined ? {} : { validity_days: days }) });
      const renewed = issued(await sent({ ...renewal, authorization: await service() }));
      expect(names(renewed)).toEqual(names(own));
      if (days !== undefined) expect(renewed.notAfter.getTime()).toBeLessThan(Date.now() + (days + 1) * 86_400_000);
    }
  });

  test('a CA elsewhere gets the CSR as it is: an answer may repeat its names; 503: others, or a validity', async () => {
    const { driver } = plain;
    const ca = new Ca(plain.config, {
      chain: () => driver.chain(),
      issue: () => Promise.reject(new Error('it was not prepared')),
      prepare: (request) => prepareAt(driver, request),
      revoke: () => Promise.resolve(),
      remoteQueue: remoteQueue({ verify: () => Promise.resolve() }),
    });
    const own = { subject: 'CN=device-1', sans: ['DNS:device-1.example'] };
    for (const override of [{}, own, { subject: own.subject }]) {
      reply = json({ allow: true, ...override });
      expect(names(issued(await sent({ ca, authorization: await service() })))).toEqual(
        names(issued(await sent({ ca: plain }))),
      );
    }
    for (const override of [
      { subject: 'CN=device-2' },
      { sans: [...own.sans, 'DNS:b.example'] },
      { validity_days: 5 },
    ]) {
      reply = json({ allow: true, ...override });
      await expect(sent({ ca, authorization: await service() })).rejects.toMatchObject(FAILED);
    }
  });

  test('a CA elsewhere gets the CSR as it is after an approval too, with its signature', async () => {
    const { driver } = plain;
    const nothing = () => Promise.reject(new Error('not in this test'));
    const proofs: unknown[] = [];
    const ca = new Ca(
      { ...plain.config, approval: 'manual' },
      {
        chain: () => driver.chain(),
        issue: nothing,
        prepare: (request) => (proofs.push(request.csr?.der), prepareAt(driver, request)),
        remoteQueue: remoteQueue({ verify: () => Promise.resolve() }),
      },
    );
    const [authorization, { identity }] = [await service(), await token()];
    const waiting = await sent({ identity, ca, authorization });
    if (waiting.status !== 'pending') throw new Error(waiting.status);
    await store.decideRequest({ id: waiting.requestId, status: 'approved', reason: null, decided_at: T0 }, []);
    issued(await sent({ identity, ca, authorization }));
    expect(proofs).toEqual([csr, csr]);
  });

  test('a bug of ours is not the service’s failure', async () => {
    const authorization = await service();
    const request = {
      ca: plain.label,
      toJSON: () => {
        throw new TypeError('a bug');
      },
    };
    await expect(authorization.decide('x', request as unknown as AuthorizationRequest)).rejects.toThrow(TypeError);
    expect(logged).toEqual([]);
  });

  test('only the labels of the configuration are asked about', async () => {
    const authorization = await service();
    expect(['devices', 'lab'].map((label) => authorization.concerns(label))).toEqual([true, false]);
  });

  test('the names that the service decides are held to placeholders and csrattrs', async () => {
    const { config, driver } = plain;
    const san = { ...config.profile.san, dns: ['{id}\\.example'] };
    const bound = new Ca({ ...config, profile: { ...config.profile, san } }, driver);
    reply = json({ allow: true, sans: ['DNS:device-1.example'], subject: 'CN=a' });
    expect((await sent({ ca: bound, authorization: await service() })).status).toBe('issued');
    reply = json({ allow: true, sans: ['DNS:device-2.example'] });
    await expect(sent({ ca: bound, authorization: await service() })).rejects.toMatchObject(FAILED);
    const csrattrs = {
      challenge_password: false,
      extensions: [{ name: 'subjectAltName' }],
      oids: [],
      template: false,
      subject: [],
    };
    const needing = new Ca({ ...config, csrattrs }, driver);
    reply = json({ allow: true, subject: 'CN=a' });
    expect((await sent({ ca: needing, authorization: await service() })).status).toBe('issued');
    reply = json({ allow: true, sans: [] });
    await expect(sent({ ca: needing, authorization: await service() })).rejects.toMatchObject(FAILED);
  });

  test('asked last: what our own checks refuse is told nobody', async () => {
    const authorization = await service();
    await expect(sent({ authorization, body: Buffer.from('no CSR') })).rejects.toMatchObject({ status: 400 });
    await expect(sent({ authorization, body: simpleCsr(key, 'x'.repeat(65), []) })).rejects.toMatchObject({
      status: 400,
    });
    expect(asked).toEqual([]);
  });

  test('a queued request is asked about when it is queued, and not by its polls; what was decided is issued', async () => {
    reply = json({ allow: true, subject: 'CN=press-9', validity_days: 7 });
    const [authorization, { identity }, ca] = [await service(), await token(), changed({ approval: 'manual' })];
    const poll = () => sent({ identity, ca, authorization });
    const waiting = await poll();
    if (waiting.status !== 'pending') throw new Error(waiting.status);
    expect(await store.getRequest(waiting.requestId)).toMatchObject({
      subject: 'CN=press-9',
      sans: ['DNS:device-1.example'],
    });
    expect(await poll()).toEqual(waiting);
    await store.decideRequest({ id: waiting.requestId, status: 'approved', reason: null, decided_at: T0 }, []);
    const certificate = issued(await poll());
    expect(names(certificate)).toEqual(['CN=press-9', 'DNS:device-1.example']);
    expect(certificate.notAfter.getTime() - certificate.notBefore.getTime()).toBe(7 * 86_400_000 - 1000);
    expect(issued(await poll()).serialNumber).toBe(certificate.serialNumber);
    expect(asked).toHaveLength(1);
  });

  test('what was queued before there was a service is asked about when it is issued', async () => {
    const [{ identity }, ca] = [await token(), changed({ approval: 'manual' })];
    const waiting = await sent({ identity, ca });
    if (waiting.status !== 'pending') throw new Error(waiting.status);
    await store.decideRequest({ id: waiting.requestId, status: 'approved', reason: null, decided_at: T0 }, []);
    issued(await sent({ identity, ca, authorization: await service() }));
    expect(asked).toHaveLength(1);
  });

  test('what was queued before there was a service: it decides the names, except of a renewal', async () => {
    for (const operation of ['simpleenroll', 'serverkeygen', 'simplereenroll'] as const) {
      const identity = operation === 'simplereenroll' ? mtlsIdentity(own) : (await token()).identity;
      const sending = { identity, operation, ca: changed({ approval: 'manual' }) };
      const waiting = await sent(sending);
      if (waiting.status !== 'pending') throw new Error(waiting.status);
      await store.decideRequest({ id: waiting.requestId, status: 'approved', reason: null, decided_at: T0 }, []);
      reply = json({ allow: true, subject: 'CN=decided' });
      const poll = sent({ ...sending, authorization: await service() });
      if (operation === 'simplereenroll') await expect(poll).rejects.toMatchObject(FAILED);
      else expect(names(issued(await poll))[0]).toBe('CN=decided');
    }
  });

  test('the same request many times at once is asked about once', async () => {
    reply = (response, request) => void pause(50).then(() => json({ allow: true })(response, request));
    const [authorization, { identity }] = [await service(), await token(1)];
    const enrollment = pipeline({ store, identity, authorization });
    const outcomes = await Promise.allSettled(
      Array.from({ length: 5 }, () => enrollment.enroll(received(plain, csr, { requestId: randomUUID() }))),
    );
    expect(outcomes.filter(({ status }) => status === 'fulfilled').length).toBeGreaterThan(0);
    expect(asked).toHaveLength(1);
  });

  test('connections are kept, calls at a time bounded, and who waits too long is told 503', async () => {
    let open = 0;
    let most = 0;
    reply = (response, request) => {
      most = Math.max(most, (open += 1));
      void pause(20).then(() => {
        open -= 1;
        json({ allow: true })(response, request);
      });
    };
    const authorization = await service({ max_calls: 2 });
    const each = Array.from({ length: 12 }, (_, n) => sent({ authorization, body: simpleCsr(key, `d${n}`, []) }));
    for (const outcome of await Promise.all(each)) expect(outcome.status).toBe('issued');
    expect([most, new Set(asked.map((call) => call.port)).size]).toEqual([2, 2]);

    const stuck = await service({ max_calls: 1, timeout: 1 });
    reply = () => undefined;
    const late = await Promise.allSettled(
      [1, 2].map((n) => sent({ authorization: stuck, body: simpleCsr(key, `e${n}`, []) })),
    );
    for (const outcome of late) expect(outcome).toMatchObject({ status: 'rejected', reason: FAILED });
  });

  test('120 requests of one device leave a call to the next device, whose request waits for none of them', async () => {
    await sent({ authorization: await service() });
    const [{ body: template } = {}] = asked.splice(0);
    const authorization = await service({ timeout: 60, max_calls: 4 });
    const request = (id: string): AuthorizationRequest => ({ ...(template as AuthorizationRequest), request_id: id });
    const ask = (party: string, id: string) =>
      runForRequest({ requestId: id, party }, () => authorization.decide(id, request(id)));
    const open: (() => void)[] = [];
    reply = (response, asking) => void open.push(() => json({ allow: true })(response, asking));
    const flood = Array.from({ length: 120 }, (_, i) => ask('flood', `flood-${i}`).catch(() => 'rejected'));
    const other = ask('other', 'other');
    const ids = () => asked.map(({ body }) => (body as AuthorizationRequest).request_id);
    // Three of the flood are at the service, and the request of the other device.
    await expect.poll(() => ids().toSorted()).toEqual(['flood-0', 'flood-1', 'flood-2', 'other']);
    open.splice(ids().indexOf('other'), 1)[0]?.();
    expect(await other).toEqual({});
    reply = json({ allow: true });
    for (const answer of open.splice(0)) answer();
    const answers = await Promise.all(flood);
    // 64 wait, the others got 503 at once.
    expect(answers.filter((answer) => answer === 'rejected')).toHaveLength(120 - 3 - 64);
  });

  test('serverkeygen: allowed or not, like every other', async () => {
    reply = json({ allow: true, subject: 'CN=made-here' });
    const outcome = await sent({ operation: 'serverkeygen', authorization: await service() });
    expect(names(issued(outcome))[0]).toBe('CN=made-here');
    expect(asked[0]?.body).toMatchObject({ operation: 'serverkeygen' });
    reply = json({ allow: false, reason: 'no' });
    await expect(sent({ operation: 'serverkeygen', authorization: await service() })).rejects.toMatchObject({
      status: 403,
    });
  });
});
