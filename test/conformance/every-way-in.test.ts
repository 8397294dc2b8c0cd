/** Issue 11.6: what a CA demands of a request it demands on every way in, EST's own and full CMC alike. */
import type { TLSSocket } from 'node:tls';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildControl } from '../../src/pki/cmc/controls.ts';
import { createIdentityProof } from '../../src/pki/cmc/identity-proof.ts';
import { encodeReqSequence, type TaggedRequest } from '../../src/pki/cmc/pki-data.ts';
import { octetString, oid, sequence } from '../../src/pki/der/der.ts';
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
}, 120_000);
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

const WAYS: readonly (readonly [way: string, send: (asked: Asked) => Promise<Outcome>])[] = [
  ['simpleenroll', async (asked) => server.enroll(onTheWire(pkcs10(asked)), { password: (await server.otp()).token })],
  ['simplereenroll', (asked) => server.enroll(onTheWire(pkcs10(asked)), { path: 'simplereenroll', client: device })],
  ['fullcmc, PKCS #10', (asked) => byCmc(device, tcr(1, pkcs10(asked)))],
  ['fullcmc, CRMF', (asked) => byCmc(device, crm(1, crmf(asked)))],
  ['fullcmc by a registration authority', (asked) => byCmc(setting.participants.ra, tcr(1, pkcs10(asked)))],
];

describe.each(WAYS)('issue 11.6: by %s', (_, send) => {
  test('what csrattrs asks for is certified', async () => {
    expect(await send(wanted)).toMatchObject({ status: 200 });
  });

  test.each<[string, Asked, RegExp]>([
    ['no extKeyUsage', { ...wanted, purposes: undefined }, /needs the extension extKeyUsage/],
    ['another extKeyUsage', { ...wanted, purposes: [OID.cmcRA] }, /extKeyUsage has another value/],
    ['another key type', { ...wanted, key: makeKey() }, /key is ec:P-256; this CA asks for ec:P-384/],
    ['another signature algorithm', { ...wanted, hash: 'sha384' }, /asks for ecdsaWithSHA256/],
  ])('%s is refused with 400', async (_what, asked, text) => {
    const { status, text: answer } = await send(asked);
    expect([status, answer]).toEqual([400, expect.stringMatching(text)]);
  });
});

test('issue 11.6: a request without a signature of its own lacks the one that csrattrs asks for', async () => {
  const request = buildCrmf(wanted.key, {
    subject: 'CN=device-1',
    extensions: [{ oid: OID.extKeyUsage, critical: false, value: encodeExtKeyUsage([OID.clientAuth]) }],
    popo: Buffer.of(0x80, 0),
  });
  const { status, text } = await byCmc(setting.participants.configuredRa, crm(1, request));
  expect([status, text]).toEqual([400, expect.stringMatching(/ecdsaWithSHA256/)]);
});

describe('issue 11.6, RFC 7030 §3.5: the channel binding in a full CMC message', () => {
  let linked: Estuary;
  let client: ClientIdentity;

  beforeAll(async () => {
    linked = await Estuary.start({ configure: withParticipants().configure });
    client = await linked.enrolled(makeKey(), 'device-1');
  }, 120_000);
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

  test('whoever only the connection vouches for has to link its key to it', async () => {
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
    const proof = createIdentityProof(encodeReqSequence(reqSequence), {
      secret: Buffer.from(SECRET),
      identification: IDENTIFICATION,
    });
    const controlSequence = [
      buildControl(111, 'identification', IDENTIFICATION),
      buildControl(112, 'identityProofV2', proof),
    ];
    const message = await fullRequest({ controlSequence, reqSequence }, { signers: [requestedKey(key)] });
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
