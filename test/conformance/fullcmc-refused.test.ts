/**
 * RFC 5272 and RFC 6402 at the built server: rejections, with the exact HTTP status and failInfo.
 *
 * Longer than other files: the rejections are one table, at one server with all participants.
 */
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildControl } from '../../src/pki/cmc/controls.ts';
import {
  buildPkiData,
  encodeReqSequence,
  type PkiDataContent,
  type TaggedAttribute,
  type TaggedRequest,
} from '../../src/pki/cmc/pki-data.ts';
import { contentInfo, issuerAndSerialNumber } from '../../src/pki/cms/cms.ts';
import { integer, NULL, octetString, sequence } from '../../src/pki/der/der.ts';
import { OID } from '../../src/pki/der/oids.ts';
import { encodePem } from '../../src/pki/der/pem.ts';
import { parseCertificate } from '../../src/pki/x509/certificate.ts';
import { buildCrmf } from '../pki/cmc/samples.ts';
import { makeCa, makeClient } from '../support/certificates.ts';
import {
  certificateOf,
  certified,
  crm,
  exchange,
  fullRequest,
  IDENTIFICATION,
  inShort,
  issuedBy,
  issuedOutside,
  ownKeyIdentifier,
  postCmc,
  RA_EXTENSIONS,
  readResponse,
  requestBy,
  requestedKey,
  SECRET,
  tcr,
  withParticipants,
} from '../support/cmc.ts';
import { buildCsr, extensionRequest, extension, makeKey, simpleCsr, type TestKey } from '../support/csr.ts';
import { caSection, Estuary, section, type ClientIdentity } from '../support/estuary.ts';
import { buildAuthenticatedData, createIdentityProof } from '../support/cmc-secrets.ts';

const setting = withParticipants((config) => {
  // Each refusal counts on its own name, and none of these tests is about the lockout.
  section(config, 'otp')['max_failures'] = 1000;
  // What CMC itself says of other CAs' certificates: client_issuers would keep them out before their message is read.
  caSection(config)['client_issuers'] = ['any'];
});
let server: Estuary;
let device: ClientIdentity;
let other: ClientIdentity;

beforeAll(async () => {
  server = await Estuary.start({ configure: setting.configure });
  device = await server.enrolled(makeKey(), 'device-1');
  other = await server.enrolled(makeKey(), 'device-2');
});
afterAll(() => server.stop());

const own = (id = 1): TaggedRequest => tcr(id, simpleCsr(makeKey(), 'device-1'));
const nonce = (id = 102): TaggedAttribute => buildControl(id, 'senderNonce', randomBytes(16));
const unknownControl = (id: number): TaggedAttribute => ({
  bodyPartID: id,
  type: '1.3.6.1.4.1.99999.1',
  values: [NULL],
});

/** The status and the statuses; and that no certificate left. */
async function refusal(der: Buffer | Promise<Buffer>, client: ClientIdentity = device, path?: string) {
  const reply = await exchange(server, der, client, path);
  expect(issuedBy(reply)).toEqual([]);
  return [reply.status, ...inShort(reply)];
}

const bySigner = (data: Partial<PkiDataContent>): Promise<Buffer> => requestBy(device, data);

/** Changes one octet of the message. */
function tampered(der: Buffer, where: (bytes: Buffer) => number): Buffer {
  const bytes = Buffer.from(der);
  const at = where(bytes);
  bytes[at] = (bytes[at] ?? 0) ^ 1;
  return bytes;
}

describe('the message', () => {
  test('content that is not what was signed: badMessageCheck', async () => {
    const der = await bySigner({ controlSequence: [nonce()], reqSequence: [own()] });
    const content = tampered(der, (bytes) => bytes.indexOf(Buffer.from('device-1')));
    expect(await refusal(content)).toEqual([400, 'failed badMessageCheck [0]']);
  });

  test('a signature that is another: badMessageCheck', async () => {
    const der = await bySigner({ reqSequence: [own()] });
    expect(await refusal(tampered(der, (bytes) => bytes.length - 1))).toEqual([400, 'failed badMessageCheck [0]']);
  });

  test.each([
    ['no DER', 'badRequest', Buffer.from('not DER at all')],
    ['id-data without a PKIData', 'badRequest', contentInfo(OID.data, octetString(Buffer.of(1)))],
    ['RFC 5272 §3.2.1.3.3: EnvelopedData', 'badMessageCheck', contentInfo(OID.envelopedData, sequence(integer(0)))],
  ])('%s: %s', async (_what, failInfo, der) => {
    expect(await refusal(der)).toEqual([400, `failed ${failInfo} [0]`]);
  });

  test('a body that is no base64 is told in plain text', async () => {
    const answer = await server.est('fullcmc', {
      headers: { 'Content-Type': 'application/pkcs7-mime' },
      body: '***',
      client: device,
    });
    expect([answer.status, answer.headers['content-type']]).toEqual([400, 'text/plain; charset=utf-8']);
  });

  test('RFC 5272 §3.2.2: a bodyPartID twice: badRequest that names it', async () => {
    expect(await refusal(bySigner({ controlSequence: [nonce(7)], reqSequence: [own(7)] }))).toEqual([
      400,
      'failed badRequest [7]',
    ]);
  });

  test('RFC 5272 §3.2.2: a bodyPartID of 0: badRequest', async () => {
    expect(await refusal(bySigner({ reqSequence: [own(0)] }))).toEqual([400, 'failed badRequest [0]']);
  });

  test('RFC 5272 §3.2.1.1: unknown controls: badRequest that names them, and nothing is processed', async () => {
    const controls = [unknownControl(51), nonce(), unknownControl(52)];
    expect(await refusal(bySigner({ controlSequence: controls, reqSequence: [own()] }))).toEqual([
      400,
      'failed badRequest [51,52]',
    ]);
  });

  test('a control twice: badRequest that names the second', async () => {
    expect(await refusal(bySigner({ controlSequence: [nonce(61), nonce(62)], reqSequence: [own()] }))).toEqual([
      400,
      'failed badRequest [62]',
    ]);
  });

  test('RFC 5272 §6.6: a recipientNonce that was never sent: badRequest that names it', async () => {
    const echoed = buildControl(70, 'recipientNonce', randomBytes(16));
    const transaction = buildControl(71, 'transactionId', '21');
    expect(await refusal(bySigner({ controlSequence: [transaction, nonce(), echoed], reqSequence: [own()] }))).toEqual([
      400,
      'failed badRequest [70]',
    ]);
  });

  test('a rejection contains transactionId and nonces too', async () => {
    const sent = randomBytes(16);
    const controls = [buildControl(1, 'transactionId', '23'), buildControl(2, 'senderNonce', sent), unknownControl(3)];
    const reply = await exchange(server, bySigner({ controlSequence: controls }), device);
    expect([reply.status, ...inShort(reply)]).toEqual([400, 'failed badRequest [3]']);
    expect(reply.controls).toContainEqual(expect.objectContaining({ name: 'transactionId', value: '23' }));
    expect(reply.controls).toContainEqual(expect.objectContaining({ name: 'recipientNonce', value: sent }));
  });
});

describe('the sender', () => {
  test('without a client certificate 401 in plain text, before the message is looked at', async () => {
    const answer = await postCmc(server, await bySigner({ reqSequence: [own()] }));
    expect([answer.status, answer.text]).toEqual([401, 'client certificate required']);
  });

  test('signed by somebody else than the client of the connection: 403 badIdentity', async () => {
    expect(await refusal(bySigner({ reqSequence: [own()] }), other)).toEqual([403, 'failed badIdentity [0]']);
  });

  test('a signer whose issuer nobody knows: 401 badIdentity, and WWW-Authenticate', async () => {
    const ca = await makeCa('CN=Foreign CA');
    const foreign = await makeClient('CN=device-1', ca);
    const identity = {
      cert: encodePem('CERTIFICATE', foreign.der),
      key: foreign.keys.privateKey.export({ type: 'pkcs8', format: 'pem' }),
    };
    const der = requestBy(identity, { reqSequence: [own()] });
    const reply = await exchange(server, der, device);
    expect([reply.status, ...inShort(reply)]).toEqual([401, 'failed badIdentity [0]']);
    expect(reply.answer.headers['www-authenticate']).toBe('Basic realm="est"');
  });

  test('a signer of another CA, whose certificates count here: 403 badIdentity for names that are not its own', async () => {
    const lab = await server.enrolled(makeKey(), 'device-1', [], 'lab/simpleenroll');
    const asks = (cn: string, dnsNames: readonly string[] = []) =>
      requestBy(lab, { reqSequence: [tcr(1, simpleCsr(makeKey(), cn, dnsNames))] });
    expect(await refusal(asks('device-2'), lab)).toEqual([403, 'failed badIdentity [1]']);
    expect(await refusal(asks('device-1', ['device-1.example']), lab)).toEqual([403, 'failed badIdentity [1]']);
    const own = await exchange(server, asks('device-1'), lab);
    expect([own.status, ...inShort(own)]).toEqual([200, 'success [1]']);
  });

  test('a signer with an SM2 key, of which OpenSSL verifies no ECDSA: badMessageCheck', async () => {
    const { der: sm2 } = await makeClient('CN=device-1', await makeCa('CN=Nobody'), {
      keys: generateKeyPairSync('ec', { namedCurve: 'SM2' }),
    });
    const signer = { ...certified(device), sid: issuerAndSerialNumber(parseCertificate(sm2)) };
    const der = fullRequest({ reqSequence: [own()] }, { signers: [signer], certificates: [sm2] });
    expect(await refusal(der)).toEqual([400, 'failed badMessageCheck [0]']);
  });

  test('signed with the requested key, but without its subjectKeyIdentifier: the text says what is missing', async () => {
    const key = makeKey();
    const der = fullRequest({ reqSequence: [tcr(1, simpleCsr(key, 'device-1'))] }, { signers: [requestedKey(key)] });
    const reply = await exchange(server, der, device);
    expect([reply.status, ...inShort(reply)]).toEqual([401, 'failed badIdentity [0]']);
    expect(reply.statuses[0]?.statusString).toContain('must have (RFC 5272 §3.2)');
    expect(reply.statuses[0]?.statusString).toContain('subjectKeyIdentifier');
  });

  test('RFC 5272 §3.2: signed with the requested key, but named by issuer and serial number: 401', async () => {
    const key = makeKey();
    const csr = buildCsr(key, { attributes: [extensionRequest(ownKeyIdentifier(key))] });
    const signer = { ...requestedKey(key), sid: { ...certified(device).sid, serialNumber: '77' } };
    expect(await refusal(fullRequest({ reqSequence: [tcr(1, csr)] }, { signers: [signer] }))).toEqual([
      401,
      'failed badIdentity [0]',
    ]);
  });
});

describe('shared secrets', () => {
  const identification = (name = IDENTIFICATION): TaggedAttribute => buildControl(111, 'identification', name);
  const initial = (key: TestKey, ...attributes: Buffer[]): TaggedRequest =>
    tcr(1, buildCsr(key, { attributes: [extensionRequest(ownKeyIdentifier(key)), ...attributes] }));
  const withProof = (key: TestKey, secret: string, controls: TaggedAttribute[], request = initial(key)) => {
    const reqSequence = [request];
    const shared = { secret: Buffer.from(secret), identification: IDENTIFICATION };
    const proof = buildControl(112, 'identityProofV2', createIdentityProof(encodeReqSequence(reqSequence), shared));
    return fullRequest({ controlSequence: [...controls, proof], reqSequence }, { signers: [requestedKey(key)] });
  };

  test('RFC 5272 §6.2.1: a proof by another secret: 401 badIdentity', async () => {
    expect(await refusal(withProof(makeKey(), 'wrong', [identification()]))).toEqual([401, 'failed badIdentity [112]']);
  });

  test('AuthenticatedData with another secret: 401 badIdentity', async () => {
    const content = buildPkiData({ controlSequence: [identification()], reqSequence: [initial(makeKey())] });
    const der = await buildAuthenticatedData(OID.pkiData, content, Buffer.from(`${IDENTIFICATION}wrong`));
    expect(await refusal(der)).toEqual([401, 'failed badIdentity [0]']);
  });
});

describe('requests', () => {
  test('no RA, and another subject than its own: 403 badIdentity', async () => {
    expect(await refusal(bySigner({ reqSequence: [tcr(1, simpleCsr(makeKey(), 'device-2'))] }))).toEqual([
      403,
      'failed badIdentity [1]',
    ]);
  });

  test('an RA whose certificate lacks id-kp-cmcRA: 403 badIdentity', async () => {
    const [usage] = RA_EXTENSIONS;
    const ra = issuedOutside(server, 'issuing', makeKey(), '/CN=RA 3', [usage, 'extendedKeyUsage=clientAuth']);
    expect(await refusal(requestBy(ra, { reqSequence: [tcr(1, simpleCsr(makeKey(), 'anybody'))] }), ra)).toEqual([
      403,
      'failed badIdentity [1]',
    ]);
  });

  test('an RA of another CA: 403 badIdentity', async () => {
    const ra = issuedOutside(server, 'lab', makeKey(), '/CN=RA 4', RA_EXTENSIONS);
    expect(await refusal(requestBy(ra, { reqSequence: [own()] }), ra)).toEqual([403, 'failed badIdentity [1]']);
  });

  test('possession proven for another request: popFailed', async () => {
    const csr = buildCsr(makeKey(), { signature: randomBytes(70) });
    const crmf = buildCrmf(makeKey(), { certReqId: 2, subject: 'CN=device-1', signed: Buffer.from('another') });
    expect(await refusal(bySigner({ reqSequence: [tcr(1, csr), crm(2, crmf)] }))).toEqual([
      400,
      'failed popFailed [1]',
      'failed popFailed [2]',
    ]);
  });

  test('a weak key: badAlg', async () => {
    expect(await refusal(bySigner({ reqSequence: [tcr(1, simpleCsr(makeKey('rsa1024'), 'device-1'))] }))).toEqual([
      400,
      'failed badAlg [1]',
    ]);
  });

  test('RFC 5272 §3.2.1.2: an extension that is not issued: unsupportedExt', async () => {
    const csr = buildCsr(makeKey(), {
      attributes: [extensionRequest(extension('1.2.3.4.5', NULL, Buffer.of(1, 1, 0xff)))],
    });
    expect(await refusal(bySigner({ reqSequence: [tcr(1, csr)] }))).toEqual([400, 'failed unsupportedExt [1]']);
  });
});

describe('other controls', () => {
  const revoke = (client: ClientIdentity, more: object = {}): TaggedAttribute =>
    buildControl(120, 'revokeRequest', {
      issuer: certificateOf(client).issuer,
      serialNumber: certificateOf(client).serialNumber,
      reason: 'superseded',
      ...more,
    });

  test("somebody else's certificate is not revoked: 403 badIdentity", async () => {
    expect(await refusal(bySigner({ controlSequence: [revoke(other)] }))).toEqual([403, 'failed badIdentity [120]']);
    const { serialNumber } = certificateOf(other);
    const { json } = await server.admin('GET', `/admin/certificates/${serialNumber}?ca=devices`);
    expect(json['status']).toBe('valid');
  });

  test.each([
    ['a wrong secret', 'wrong', [401, 'failed badIdentity [120]']],
    ['the secret of others', SECRET, [403, 'failed badIdentity [120]']],
  ])('unsigned, with %s', async (_what, secret, expected) => {
    const controlSequence = [
      buildControl(119, 'identification', IDENTIFICATION),
      revoke(other, { sharedSecret: Buffer.from(secret) }),
    ];
    expect(await refusal(fullRequest({ controlSequence }, {}))).toEqual(expected);
  });

  test.each([
    ['a serial number that was never issued', { serialNumber: '0123' }, 'badCertId'],
    ['removeFromCRL', { reason: 'removeFromCRL' }, 'badRequest'],
    ['an invalidityDate to come', { invalidityDate: new Date(Date.now() + 86_400_000) }, 'badRequest'],
  ])('revokeRequest with %s', async (_what, more, failInfo) => {
    expect(await refusal(bySigner({ controlSequence: [revoke(device, more)] }))).toEqual([
      400,
      `failed ${failInfo} [120]`,
    ]);
  });

  test('getCert of another issuer, getCRL of another issuer, queryPending of nothing', async () => {
    const { subject } = certificateOf(device);
    const controlSequence = [
      buildControl(1, 'getCert', { issuerName: { kind: 'dns', value: 'a.example' }, serialNumber: '01' }),
      buildControl(2, 'getCRL', { issuerName: subject }),
      buildControl(3, 'queryPending', Buffer.from('00000000-0000-0000-0000-000000000000')),
      buildControl(4, 'queryPending', randomBytes(300)),
    ];
    expect(await refusal(bySigner({ controlSequence }))).toEqual([
      400,
      'failed badRequest [3]',
      'failed badRequest [4]',
      'failed badCertId [1]',
      'failed badRequest [2]',
    ]);
  });

  test('an RA that proved an identity lends its rights to the names only: 403 badIdentity', async () => {
    const { ra } = setting.participants;
    const key = makeKey();
    const csr = buildCsr(key, { attributes: [extensionRequest(ownKeyIdentifier(key))] });
    const inner = (control: TaggedAttribute): Promise<Buffer> =>
      fullRequest({ controlSequence: [control], reqSequence: [tcr(1, csr)] }, { signers: [requestedKey(key)] });
    const send = async (control: TaggedAttribute): Promise<string[]> => {
      const reply = await exchange(
        server,
        requestBy(ra, {
          controlSequence: [
            nonce(),
            buildControl(80, 'batchRequests', [1]),
            buildControl(81, 'raIdentityWitness', [1]),
          ],
          cmsSequence: [{ bodyPartID: 1, contentInfo: await inner(control) }],
        }),
        ra,
      );
      const [answer] = reply.inner;
      return answer === undefined ? [] : inShort(readResponse(server, answer));
    };
    expect(await send(revoke(other))).toEqual(['success [1]', 'failed badIdentity [120]']);
    expect(await send(buildControl(5, 'lraPOPWitness', { pkiDataBodyid: 0, bodyIds: [1] }))).toEqual([
      'failed badIdentity [5]',
    ]);
    expect(await send(buildControl(5, 'batchRequests', [9]))).toEqual(['failed badRequest [5]']);
  });
});

test('what was refused is in the audit log', async () => {
  const { json } = await server.admin('GET', '/admin/audit?type=certificate.denied&limit=1000');
  const details = JSON.stringify(json);
  expect(details).toContain('fullcmc: body part 1: badIdentity');
  // Of a message inside of a batch, too.
  expect(details).toContain('fullcmc: body part 5: badIdentity');
  const failures = await server.admin('GET', '/admin/audit?type=auth.cmc&limit=1000');
  expect(JSON.stringify(failures.json)).toContain('wrong secret');
  expect(JSON.stringify([json, failures.json])).not.toContain(SECRET);
});
