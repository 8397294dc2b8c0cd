/** A CA has the same requirements on every way in: EST operations and full CMC. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildControl } from '../../src/pki/cmc/controls.ts';
import { encodeReqSequence, type TaggedRequest } from '../../src/pki/cmc/pki-data.ts';
import { octetString, oid, sequence } from '../../src/pki/der/der.ts';
import { encodePem } from '../../src/pki/der/pem.ts';
import { parsePemCertificates } from '../../src/pki/x509/certificate.ts';
import { attributeValues, formatName, parseDistinguishedName } from '../../src/pki/x509/name.ts';
import { encodeExtKeyUsage, type Extension } from '../../src/pki/x509/extensions.ts';
import { OID } from '../../src/pki/der/oids.ts';
import { buildCrmf } from '../pki/cmc/samples.ts';
import {
  crm,
  exchange,
  fullRequest,
  IDENTIFICATION,
  inShort,
  issuedOutside,
  ownKeyIdentifier,
  readReply,
  requestBy,
  requestedKey,
  SECRET,
  tcr,
  withParticipants,
  type CmcReply,
} from '../support/cmc.ts';
import {
  ALGORITHM,
  buildCsr,
  challengePassword,
  commonName,
  extensionRequest,
  makeKey,
  onTheWire,
  type TestKey,
} from '../support/csr.ts';
import { caSection, Estuary, section, type ClientIdentity } from '../support/estuary.ts';
import { openTls } from '../support/https.ts';
import { createIdentityProof } from '../support/cmc-secrets.ts';

const setting = withParticipants((config) => {
  caSection(config)['csrattrs'] = {
    key_type: 'ec:P-384',
    signature: 'ecdsaWithSHA256',
    extensions: [{ name: 'extKeyUsage', value: ['clientAuth'] }],
  };
});
let server: Estuary;
let device: ClientIdentity;

beforeAll(async () => {
  server = await Estuary.start({ configure: setting.configure });
  device = issuedOutside(server, 'issuing', makeKey(), '/CN=device-1', ['extendedKeyUsage=clientAuth']);
});
afterAll(() => server.stop());

/** A request in the words of both formats. */
interface Asked {
  readonly key: TestKey;
  readonly purposes: readonly string[] | undefined;
  readonly hash?: 'sha384';
}

const wanted: Asked = { key: makeKey('P-384'), purposes: [OID.clientAuth] };

function pkcs10({ key, purposes, hash }: Asked): Buffer {
  const usage = sequence(oid(OID.extKeyUsage), octetString(encodeExtKeyUsage(purposes ?? [])));
  return buildCsr(key, {
    subject: commonName('device-1'),
    attributes: purposes === undefined ? [] : [extensionRequest(usage)],
    ...(hash === undefined ? {} : { hash, algorithm: ALGORITHM.ecdsaSha384 }),
  });
}

function crmf({ key, purposes, hash }: Asked): Buffer {
  const usage: Extension = { oid: OID.extKeyUsage, critical: false, value: encodeExtKeyUsage(purposes ?? []) };
  return buildCrmf(key, {
    subject: 'CN=device-1',
    ...(purposes === undefined ? {} : { extensions: [usage] }),
    ...(hash === undefined ? {} : { hash }),
  });
}

interface Outcome {
  readonly status: number;
  readonly text: string;
}

async function byCmc(sender: ClientIdentity, request: TaggedRequest): Promise<Outcome> {
  const reply = await exchange(server, requestBy(sender, { reqSequence: [request] }), sender);
  return { status: reply.status, text: reply.statuses.map(({ statusString }) => statusString ?? '').join() };
}

/** Signed with the requested key, with the shared secret of the participants. */
function bySecret(reqSequence: readonly TaggedRequest[], key: TestKey): Promise<Buffer> {
  const proof = createIdentityProof(encodeReqSequence(reqSequence), {
    secret: Buffer.from(SECRET),
    identification: IDENTIFICATION,
  });
  const controlSequence = [
    buildControl(111, 'identification', IDENTIFICATION),
    buildControl(112, 'identityProofV2', proof),
  ];
  return fullRequest({ controlSequence, reqSequence }, { signers: [requestedKey(key)] });
}

const WAYS: readonly (readonly [way: string, send: (asked: Asked) => Promise<Outcome>])[] = [
  ['simpleenroll', async (asked) => server.enroll(onTheWire(pkcs10(asked)), { password: (await server.otp()).token })],
  ['simplereenroll', (asked) => server.enroll(onTheWire(pkcs10(asked)), { path: 'simplereenroll', client: device })],
  ['fullcmc, PKCS #10', (asked) => byCmc(device, tcr(1, pkcs10(asked)))],
  ['fullcmc, CRMF', (asked) => byCmc(device, crm(1, crmf(asked)))],
  ['fullcmc by a registration authority', (asked) => byCmc(setting.participants.ra, tcr(1, pkcs10(asked)))],
];

describe.each(WAYS)('by %s', (_, send) => {
  test('what csrattrs asks for is certified', async () => {
    expect(await send(wanted)).toMatchObject({ status: 200 });
  });

  test.each<[string, Asked, RegExp]>([
    ['no extKeyUsage', { ...wanted, purposes: undefined }, /needs the extension extKeyUsage/],
    ['another extKeyUsage', { ...wanted, purposes: [OID.cmcRA] }, /extKeyUsage must have the value/],
    ['another key type', { ...wanted, key: makeKey() }, /key is ec:P-256; this CA asks for ec:P-384/],
    ['another signature algorithm', { ...wanted, hash: 'sha384' }, /asks for ecdsaWithSHA256/],
  ])('%s is refused with 400', async (_what, asked, text) => {
    const { status, text: answer } = await send(asked);
    expect([status, answer]).toEqual([400, expect.stringMatching(text)]);
  });
});

test('a request without its own signature lacks the one that csrattrs requires', async () => {
  const request = buildCrmf(wanted.key, {
    subject: 'CN=device-1',
    extensions: [{ oid: OID.extKeyUsage, critical: false, value: encodeExtKeyUsage([OID.clientAuth]) }],
    popo: Buffer.of(0x80, 0),
  });
  const { status, text } = await byCmc(setting.participants.configuredRa, crm(1, request));
  expect([status, text]).toEqual([400, expect.stringMatching(/ecdsaWithSHA256/)]);
});

describe('the policy on names, and the subjects of CAs', () => {
  const participants = withParticipants((config) => {
    const san = { dns: ['.*\\.good\\.example'], email: ['.*@good\\.example'], ip: ['192.0.2.0/24'] };
    section(caSection(config), 'profile')['san'] = san;
    const templates = section(caSection(config, 1), 'profile');
    templates['san'] = san;
    templates['subject'] = { template: 'CN={id}' };
    section(config, 'otp')['bind_client_id'] = 'cn';
  });
  let strict: Estuary;
  let ca: string;
  beforeAll(async () => {
    strict = await Estuary.start({ configure: participants.configure });
    ca =
      parsePemCertificates(readFileSync(join(strict.dir, 'ca/issuing.pem'), 'latin1')).map(({ subject }) =>
        formatName(subject),
      )[0] ?? '';
  });
  afterAll(() => strict.stop());

  const key = makeKey();
  const pkcs10 = (subject: string, proof: readonly Buffer[] = []): Buffer =>
    buildCsr(key, { subject: parseDistinguishedName(subject).der, attributes: proof });
  const holder = (subject: string): ClientIdentity =>
    issuedOutside(strict, 'issuing', makeKey(), subjectArgument(subject), ['extendedKeyUsage=clientAuth']);
  /** For openssl. */
  const subjectArgument = (subject: string): string =>
    parseDistinguishedName(subject)
      .rdns.flat()
      .map(({ type, text }) => `/${type}=${text}`)
      .join('');
  const token = async (subject: string): Promise<string> => {
    const [cn = ''] = attributeValues(parseDistinguishedName(subject), OID.commonName);
    return (await strict.otp({ client_id: cn })).token;
  };
  const send = async (sender: ClientIdentity, request: TaggedRequest): Promise<Outcome> => {
    const reply = await exchange(strict, requestBy(sender, { reqSequence: [request] }), sender);
    return { status: reply.status, text: reply.statuses.map(({ statusString }) => statusString ?? '').join() };
  };

  const ways: readonly (readonly [way: string, ask: (subject: string) => Promise<Outcome>])[] = [
    ...(['simpleenroll', 'serverkeygen'] as const).map(
      (path) =>
        [
          path,
          async (subject: string) =>
            strict.enroll(onTheWire(pkcs10(subject)), { path, password: await token(subject) }),
        ] as const,
    ),
    [
      'simpleenroll with a certificate',
      (subject) => strict.enroll(onTheWire(pkcs10(subject)), { client: holder(subject) }),
    ],
    [
      'simplereenroll',
      (subject) => strict.enroll(onTheWire(pkcs10(subject)), { path: 'simplereenroll', client: holder(subject) }),
    ],
    ['fullcmc, PKCS #10', (subject) => send(holder(subject), tcr(1, pkcs10(subject)))],
    ['fullcmc, CRMF', (subject) => send(holder(subject), crm(1, buildCrmf(key, { subject })))],
    ['fullcmc by a registration authority', (subject) => send(participants.participants.ra, tcr(1, pkcs10(subject)))],
    [
      '/admin/check',
      async (subject) => {
        const [client_id = ''] = attributeValues(parseDistinguishedName(subject), OID.commonName);
        const csr = encodePem('CERTIFICATE REQUEST', pkcs10(subject));
        const { json } = await strict.admin('POST', '/admin/check', { ca: 'devices', csr, as: { client_id } });
        return { status: json['verdict'] === 'issue' ? 200 : 400, text: String(json['message']) };
      },
    ],
    [
      'a template',
      async (subject) => {
        const password = await token(subject);
        return strict.enroll(onTheWire(pkcs10('CN=x')), { path: 'lab/simpleenroll', password });
      },
    ],
  ];

  describe.each(ways)('%s', (_, ask) => {
    test.each(['CN=*w.bad.example', 'CN=10.0.0.1\\ '])('a CN that the SAN policy refuses: %s', async (subject) => {
      const { status, text } = await ask(subject);
      expect([status, text]).toEqual([400, expect.stringMatching(/as a subjectAltName/)]);
    });

    test('a CN that it allows', async () => {
      expect(await ask('CN=www.good.example')).toMatchObject({ status: 200 });
    });
  });

  // A template of one CN makes no other subject.
  describe.each(ways.slice(0, -1))('%s', (_, ask) => {
    test('the subject of a CA of this server', async () => {
      for (const subject of [ca, ca.toUpperCase().replace(/ /g, '  ')]) {
        const { status, text } = await ask(subject);
        expect([status, text]).toEqual([400, expect.stringMatching(/subject is that of a certificate authority/)]);
      }
    });
  });

  test('fullcmc with a shared secret', async () => {
    const ask = async (subject: string): Promise<Outcome> => {
      const own = makeKey();
      const csr = buildCsr(own, {
        subject: parseDistinguishedName(subject).der,
        attributes: [extensionRequest(ownKeyIdentifier(own))],
      });
      const reply = await exchange(strict, bySecret([tcr(1, csr)], own), holder('CN=device-1'));
      return { status: reply.status, text: reply.statuses.map(({ statusString }) => statusString ?? '').join() };
    };
    // Names are decided first: the secret is for one CN.
    expect((await ask('CN=*w.bad.example')).text).toMatch(/does not name the client/);
    expect(await ask(`CN=${IDENTIFICATION}`)).toMatchObject({ status: 200 });
  });
});

describe('RFC 7030 §3.5: the channel binding in a full CMC message', () => {
  let linked: Estuary;
  let client: ClientIdentity;

  beforeAll(async () => {
    linked = await Estuary.start({ configure: withParticipants().configure });
    client = await linked.enrolled(makeKey(), 'device-1');
  });
  afterAll(() => linked.stop());

  const csr = (binding?: string, key = makeKey(), more: readonly Buffer[] = []): Buffer =>
    buildCsr(key, {
      subject: commonName('device-1'),
      attributes: [...more, ...(binding === undefined ? [] : [challengePassword(binding)])],
    });

  const connect = (who: ClientIdentity | undefined): Promise<TLSSocket> =>
    openTls(linked.server.port('est'), { ca: linked.root, ...who });
  const bindingOf = (socket: TLSSocket): string =>
    socket.exportKeyingMaterial(32, 'EXPORTER-Channel-Binding', Buffer.alloc(0)).toString('base64');

  async function send(socket: TLSSocket, message: Buffer): Promise<CmcReply> {
    const body = message.toString('base64');
    const text = await new Promise<string>((resolve) => {
      let answer = '';
      socket.on('data', (chunk: Buffer) => (answer += chunk.toString('latin1')));
      socket.on('close', () => resolve(answer));
      socket.write(
        'POST /.well-known/est/fullcmc HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/pkcs7-mime\r\n' +
          `Connection: close\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
      );
    });
    const [head = '', content = ''] = text.split('\r\n\r\n');
    const headers = Object.fromEntries(
      head.split('\r\n').map((line) => [line.split(': ')[0]?.toLowerCase() ?? '', line.split(': ')[1] ?? '']),
    );
    const status = Number(head.split(' ')[1]);
    return readReply(linked, { status, headers, rawHeaders: [], text: content, body: Buffer.from(content) });
  }

  /** Signed by the holder of a certificate, over its connection or over another's. */
  async function signed(
    binding: (own: string) => string | undefined,
    { signer = client, carrier = signer }: { signer?: ClientIdentity; carrier?: ClientIdentity } = {},
  ): Promise<readonly unknown[]> {
    const socket = await connect(carrier);
    const reply = await send(
      socket,
      await requestBy(signer, { reqSequence: [tcr(1, csr(binding(bindingOf(socket))))] }),
    );
    return [reply.status, ...inShort(reply)];
  }

  test.each(['binding', 'require_pop_linking'] as const)('%s: the rule holds', async (rule) => {
    if (rule === 'require_pop_linking') {
      await linked.server.stop();
      linked.reconfigure((config) => {
        section(config, 'est')['require_pop_linking'] = true;
        section(config, 'est')['fullcmc_require_mtls'] = false;
      });
      await linked.restart();
    }
    expect(await signed((own) => own)).toEqual([200, 'success [1]']);
    expect(await signed(() => 'stolen')).toEqual([400, 'failed popFailed [1]']);
    // RFC 5272 §6.3.3: the current certificate's signature over its own names links them to the key.
    expect(await signed(() => undefined)).toEqual([200, 'success [1]']);
  });

  test('a sender that only the connection authenticates must link its key to it', async () => {
    const unlinked = async (binding: (own: string) => string | undefined): Promise<readonly unknown[]> => {
      const key = makeKey();
      const extended = [extensionRequest(ownKeyIdentifier(key))];
      const socket = await connect(client);
      const reqSequence = [tcr(1, csr(binding(bindingOf(socket)), key, extended))];
      const reply = await send(socket, await fullRequest({ reqSequence }, { signers: [requestedKey(key)] }));
      return [reply.status, ...inShort(reply)];
    };
    expect(await unlinked(() => undefined)).toEqual([400, 'failed popFailed [1]']);
    expect(await unlinked((own) => own)).toEqual([200, 'success [1]']);
  });

  test('a shared secret whose holder signed with the requested key is linked by CMC', async () => {
    const key = makeKey();
    const reqSequence = [tcr(1, csr(undefined, key, [extensionRequest(ownKeyIdentifier(key))]))];
    const message = await bySecret(reqSequence, key);
    const reply = await send(await connect(undefined), message);
    expect([reply.status, ...inShort(reply)]).toEqual([200, 'success [1]']);
  });

  test('what a registration authority carries was linked to its own connection with the device', async () => {
    const ra = issuedOutside(linked, 'issuing', makeKey(), '/CN=RA', [
      'extendedKeyUsage=clientAuth,1.3.6.1.5.5.7.3.28',
    ]);
    expect(await signed(() => 'of another connection', { carrier: ra })).toEqual([200, 'success [1]']);
    expect(await signed(() => 'of another connection', { signer: ra })).toEqual([200, 'success [1]']);
    expect(await signed(() => undefined, { signer: ra })).toEqual([200, 'success [1]']);
  });
});
