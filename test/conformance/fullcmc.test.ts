/**
 * RFC 5272, RFC 6402 and RFC 7030 §4.3 at the built server: successful requests.
 *
 * Longer than other files: its cases share a server with all participants.
 */
import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildControl, KEYED_WITNESS } from '../../src/pki/cmc/controls.ts';
import { buildPkiData, encodeReqSequence, type TaggedAttribute } from '../../src/pki/cmc/pki-data.ts';
import { parseCertificate, parsePemCertificates, type Certificate } from '../../src/pki/x509/certificate.ts';
import { parseCertificateList } from '../../src/pki/x509/crl.ts';
import { contextConstructed, explicit } from '../../src/pki/der/der.ts';
import { formatName } from '../../src/pki/x509/name.ts';
import { OID } from '../../src/pki/der/oids.ts';
import { buildCrmf } from '../pki/cmc/samples.ts';
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
  readReply,
  readResponse,
  requestBy,
  requestedKey,
  SECRET,
  tcr,
  twinOf,
  withParticipants,
  type CmcReply,
} from '../support/cmc.ts';
import {
  buildCsr,
  commonName,
  csrAttribute,
  extensionRequest,
  makeKey,
  simpleCsr,
  type TestKey,
} from '../support/csr.ts';
import { caSection, Estuary, itemsOf, type ClientIdentity } from '../support/estuary.ts';
import { encodePem } from '../../src/pki/der/pem.ts';
import { openssl } from '../support/openssl.ts';
import { buildAuthenticatedData, createIdentityProof, createPopLinkWitness } from '../support/cmc-secrets.ts';

const setting = withParticipants((config) => {
  caSection(config, 1)['devices'] = 'required';
});
let server: Estuary;
let device: ClientIdentity;
let issuer: Certificate;

beforeAll(async () => {
  server = await Estuary.start({ configure: setting.configure });
  device = await server.enrolled(makeKey(), 'device-1');
  const [ca] = parsePemCertificates(readFileSync(join(server.dir, 'ca/issuing.pem'), 'latin1'));
  if (ca === undefined) throw new Error('no CA');
  issuer = ca;
});
afterAll(() => server.stop());

const secret = { secret: Buffer.from(SECRET), identification: IDENTIFICATION };
const nonce = (id = 102): TaggedAttribute => buildControl(id, 'senderNonce', randomBytes(16));
const identification = buildControl(111, 'identification', IDENTIFICATION);

function only(reply: Pick<CmcReply, 'certificates'>): Certificate {
  const [certificate, ...more] = issuedBy(reply);
  if (certificate === undefined || more.length > 0) throw new Error('not exactly one certificate');
  return certificate;
}

/** The client that a certificate makes of a key. */
const clientOf = (certificate: Certificate, key: TestKey): ClientIdentity => ({
  cert: encodePem('CERTIFICATE', certificate.der),
  key: key.pem,
});

const revoke = (certificate: Certificate, more: { sharedSecret?: Buffer } = {}): TaggedAttribute =>
  buildControl(120, 'revokeRequest', {
    issuer: certificate.issuer,
    serialNumber: certificate.serialNumber,
    reason: 'keyCompromise',
    ...more,
  });

async function recordOf({ serialNumber }: Certificate): Promise<Record<string, unknown>> {
  return (await server.admin('GET', `/admin/certificates/${serialNumber}?ca=devices`)).json;
}

describe('RFC 7030 §4.3: a full PKI request', () => {
  test('a signed PKCS#10 over mTLS is answered with its certificate in a signed PKIResponse', async () => {
    const key = makeKey();
    const sent = randomBytes(16);
    const controls = [
      buildControl(101, 'transactionId', '7f01'),
      buildControl(102, 'senderNonce', sent),
      buildControl(103, 'dataReturn', Buffer.from('state')),
      buildControl(104, 'regInfo', Buffer.from('registration')),
    ];
    const reply = await exchange(
      server,
      requestBy(device, { controlSequence: controls, reqSequence: [tcr(1, simpleCsr(key, 'device-1'))] }),
      device,
    );
    expect(reply.status).toBe(200);
    expect(inShort(reply)).toEqual(['success [1]']);
    expect(only(reply).spki.equals(key.spki)).toBe(true);
    expect(formatName(only(reply).subject)).toBe('CN=device-1');
    const values = new Map(reply.controls.map((control) => [control.name, control]));
    expect(values.get('transactionId')).toMatchObject({ value: '7f01' });
    expect(values.get('recipientNonce')).toMatchObject({ value: sent });
    expect(values.get('dataReturn')).toMatchObject({ value: Buffer.from('state') });
    expect(values.get('senderNonce')).not.toMatchObject({ value: sent });
    expect(await recordOf(only(reply))).toMatchObject({ requester: 'CN=device-1', method: 'cmc', status: 'valid' });
  });

  test('RFC 5272 §6.3.3: a key update proves the old key by the signature and the new one by the request', async () => {
    const key = makeKey('P-384');
    const first = await exchange(
      server,
      requestBy(device, { reqSequence: [tcr(1, simpleCsr(key, 'device-1'))] }),
      device,
    );
    const next = clientOf(only(first), key);
    const again = makeKey();
    const reply = await exchange(
      server,
      requestBy(next, { reqSequence: [tcr(1, simpleCsr(again, 'device-1'))] }),
      next,
    );
    expect([reply.status, inShort(reply)]).toEqual([200, ['success [1]']]);
    expect(only(reply).spki.equals(again.spki)).toBe(true);
  });

  test('RFC 5272 §3.2.1.2.2: CRMF with a signature', async () => {
    const key = makeKey();
    const request = crm(7, buildCrmf(key, { certReqId: 7, subject: 'CN=device-1' }));
    const reply = await exchange(server, requestBy(device, { reqSequence: [request] }), device);
    expect([reply.status, inShort(reply)]).toEqual([200, ['success [7]']]);
    expect(only(reply).spki.equals(key.spki)).toBe(true);
  });

  test('the signer is found in the store by serial number, and by key identifier', async () => {
    for (const sid of [undefined, 'subjectKeyIdentifier'] as const) {
      const der = fullRequest(
        { controlSequence: [nonce()], reqSequence: [tcr(1, simpleCsr(makeKey(), 'device-1'))] },
        { signers: [certified(device, sid)] },
      );
      // an RA carries it, so that the certificate is not that of the connection
      const reply = await exchange(server, der, setting.participants.ra);
      expect([reply.status, inShort(reply)]).toEqual([200, ['success [1]']]);
    }
  });

  test('BER with indefinite lengths, as OpenSSL streams it', async () => {
    const content = buildPkiData({ reqSequence: [tcr(1, simpleCsr(makeKey(), 'device-1'))] });
    const files = { cert: join(server.dir, 'ber.pem'), key: join(server.dir, 'ber.key') };
    writeFileSync(files.cert, device.cert);
    writeFileSync(files.key, device.key);
    const ber = openssl(
      [
        ...['cms', '-sign', '-stream', '-nodetach', '-binary', '-outform', 'DER', '-econtent_type', OID.pkiData],
        ...['-signer', files.cert, '-inkey', files.key, '-md', 'sha256'],
      ],
      content,
    );
    expect(ber.subarray(0, 2)).toEqual(Buffer.of(0x30, 0x80));
    const reply = await exchange(server, ber, device);
    expect([reply.status, inShort(reply)]).toEqual([200, ['success [1]']]);
  });

  test('a batch of three with one bad: each part has its own status', async () => {
    const [one, two, three] = [makeKey(), makeKey(), makeKey()];
    const reply = await exchange(
      server,
      requestBy(device, {
        reqSequence: [
          tcr(1, simpleCsr(one, 'device-1')),
          tcr(2, buildCsr(two, { subject: commonName('device-1'), signature: randomBytes(70) })),
          crm(3, buildCrmf(three, { certReqId: 3, subject: 'CN=device-1' })),
        ],
      }),
      device,
    );
    expect([reply.status, inShort(reply)]).toEqual([200, ['success [1,3]', 'failed popFailed [2]']]);
    expect(issuedBy(reply).map(({ spki }) => spki)).toEqual([one.spki, three.spki]);
  });
});

describe('RFC 5272 §4.2, §6.2: an initial request with a shared secret', () => {
  test('signed with the requested key, with identityProofV2', async () => {
    const key = makeKey();
    const csr = buildCsr(key, {
      subject: commonName('device-7'),
      attributes: [extensionRequest(ownKeyIdentifier(key))],
    });
    const reqSequence = [tcr(1, csr)];
    const proof = createIdentityProof(encodeReqSequence(reqSequence), secret);
    const der = fullRequest(
      { controlSequence: [identification, buildControl(112, 'identityProofV2', proof)], reqSequence },
      { signers: [requestedKey(key)] },
    );
    const reply = await exchange(server, der, device);
    expect([reply.status, inShort(reply)]).toEqual([200, ['success [1]']]);
    expect(formatName(only(reply).subject)).toBe('CN=device-7');
    expect(await recordOf(only(reply))).toMatchObject({ requester: `identification:${IDENTIFICATION}` });
  });

  test('AuthenticatedData, each request linked by popLinkWitnessV2', async () => {
    const random = randomBytes(64);
    const witness = KEYED_WITNESS.encode(createPopLinkWitness(random, secret.secret));
    const key = makeKey();
    const csr = buildCsr(key, {
      subject: commonName('device-7'),
      attributes: [csrAttribute(OID.popLinkWitnessV2, witness)],
    });
    const content = buildPkiData({
      controlSequence: [identification, buildControl(113, 'popLinkRandom', random)],
      reqSequence: [tcr(1, csr)],
    });
    const password = Buffer.concat([Buffer.from(IDENTIFICATION), secret.secret]);
    const reply = await exchange(server, buildAuthenticatedData(OID.pkiData, content, password), device);
    expect([reply.status, inShort(reply)]).toEqual([200, ['success [1]']]);
    expect(only(reply).spki.equals(key.spki)).toBe(true);
  });

  test('without a secret the client of the TLS connection is who asks, for its own names', async () => {
    const key = makeKey();
    const csr = buildCsr(key, {
      subject: commonName('device-1'),
      attributes: [extensionRequest(ownKeyIdentifier(key))],
    });
    const der = fullRequest({ reqSequence: [tcr(1, csr)] }, { signers: [requestedKey(key)] });
    const reply = await exchange(server, der, device);
    expect([reply.status, inShort(reply)]).toEqual([200, ['success [1]']]);
  });
});

describe('RFC 5272 §6.11: revocation', () => {
  const enrolled = async (cn: string): Promise<{ client: ClientIdentity; certificate: Certificate }> => {
    const client = await server.enrolled(makeKey(), cn);
    return { client, certificate: certificateOf(client) };
  };

  test('by the holder; from then on the certificate authenticates nobody', async () => {
    const { client, certificate } = await enrolled('device-2');
    const reply = await exchange(server, requestBy(client, { controlSequence: [revoke(certificate)] }), client);
    expect([reply.status, inShort(reply)]).toEqual([200, ['success [120]']]);
    expect(await recordOf(certificate)).toMatchObject({ status: 'revoked', reason: 'keyCompromise' });
    const audited = itemsOf((await server.admin('GET', '/admin/audit?type=certificate.revoked&order=desc')).json);
    expect(audited[0]).toMatchObject({
      ...{ subject: 'CN=device-2', method: 'cmc', ca: 'devices', serial: certificate.serialNumber },
      ...{ certificate_subject: 'CN=device-2', revocation_reason: 'keyCompromise' },
    });
    const after = await postCmc(server, await requestBy(client, { controlSequence: [nonce()] }), client);
    expect([after.status, after.text]).toEqual([401, 'client certificate revoked']);
    const carried = await exchange(server, requestBy(client, { controlSequence: [nonce()] }), setting.participants.ra);
    expect([carried.status, inShort(carried)]).toEqual([401, ['failed badIdentity [0]']]);
  });

  test('by a registration authority of the same CA', async () => {
    const { certificate } = await enrolled('device-3');
    const { ra } = setting.participants;
    const reply = await exchange(server, requestBy(ra, { controlSequence: [revoke(certificate)] }), ra);
    expect([reply.status, inShort(reply)]).toEqual([200, ['success [120]']]);
    expect(await recordOf(certificate)).toMatchObject({ status: 'revoked' });
    const again = await exchange(server, requestBy(ra, { controlSequence: [nonce(), revoke(certificate)] }), ra);
    expect([again.status, inShort(again)]).toEqual([400, ['failed badRequest [120]']]);
  });

  test('by the shared secret alone, in a message without a signature', async () => {
    const key = makeKey();
    const reqSequence = [
      tcr(1, buildCsr(key, { subject: commonName('lost'), attributes: [extensionRequest(ownKeyIdentifier(key))] })),
    ];
    const proof = createIdentityProof(encodeReqSequence(reqSequence), secret);
    const controlSequence = [identification, buildControl(112, 'identityProofV2', proof)];
    const enrollment = fullRequest({ controlSequence, reqSequence }, { signers: [requestedKey(key)] });
    const certificate = only(await exchange(server, enrollment, device));
    const sharedSecret = secret.secret;
    const der = await fullRequest({ controlSequence: [revoke(certificate, { sharedSecret })] }, {});
    const reply = await exchange(server, der, device);
    expect([reply.status, inShort(reply)]).toEqual([200, ['success [120]']]);
    expect(await recordOf(certificate)).toMatchObject({ status: 'revoked' });
  });
});

describe('RFC 5272 §6.9, §6.10, §6.14: certificates and lists', () => {
  test('getCert, getCRL and confirmCertAcceptance', async () => {
    const own = certificateOf(device);
    const directoryName = { kind: 'other' as const, tag: contextConstructed(4), der: explicit(4, own.issuer.der) };
    const reply = await exchange(
      server,
      requestBy(device, {
        controlSequence: [
          buildControl(1, 'getCert', { issuerName: directoryName, serialNumber: own.serialNumber }),
          buildControl(2, 'getCRL', { issuerName: issuer.subject }),
          buildControl(3, 'confirmCertAcceptance', { issuer: own.issuer, serialNumber: own.serialNumber }),
        ],
      }),
      device,
    );
    expect([reply.status, inShort(reply)]).toEqual([200, ['success [3,1,2]']]);
    expect(only(reply).der.equals(own.der)).toBe(true);
    expect(reply.crls.map((crl) => formatName(parseCertificateList(crl).issuer))).toEqual([formatName(issuer.subject)]);
    const { json } = await server.admin('GET', '/admin/audit?type=certificate.accepted');
    expect(json['items']).toMatchObject([{ serial: own.serialNumber, subject: 'CN=device-1' }]);
  });
});

describe('RFC 5272 §6.6: replays', () => {
  test('the same message gets the same answer, not another certificate', async () => {
    const der = await requestBy(device, {
      controlSequence: [buildControl(101, 'transactionId', '05'), nonce()],
      reqSequence: [tcr(1, simpleCsr(makeKey(), 'device-1'))],
    });
    const [first, second] = [await postCmc(server, der, device), await postCmc(server, der, device)];
    expect([first.status, second.status]).toEqual([200, 200]);
    expect(second.text).toBe(first.text);
  });

  test('eight times at once: one certificate', async () => {
    const der = await requestBy(device, {
      controlSequence: [nonce()],
      reqSequence: [tcr(1, simpleCsr(makeKey(), 'device-1'))],
    });
    const answers = await Promise.all(Array.from({ length: 8 }, () => postCmc(server, der, device)));
    const serials = new Set(
      answers.filter(({ status }) => status === 200).map((answer) => only(readReply(server, answer)).serialNumber),
    );
    expect(serials.size).toBe(1);
    for (const answer of answers.filter(({ status }) => status !== 200)) {
      expect(inShort(readReply(server, answer))).toEqual(['failed tryLater [0]']);
      expect([answer.status, Number(answer.headers['retry-after']) > 0]).toEqual([503, true]);
    }
  });
});

describe('RFC 5272 §6.17, §7: registration authorities', () => {
  test('any names, for requests in its own message', async () => {
    const { ra } = setting.participants;
    const reply = await exchange(server, requestBy(ra, { reqSequence: [tcr(1, simpleCsr(makeKey(), 'anybody'))] }), ra);
    expect([reply.status, inShort(reply)]).toEqual([200, ['success [1]']]);
    expect(formatName(only(reply).subject)).toBe('CN=anybody');
  });

  test('a batch: each message has its own sender and its own response', async () => {
    const { ra } = setting.participants;
    const good = await requestBy(device, {
      controlSequence: [buildControl(101, 'transactionId', '11')],
      reqSequence: [tcr(201, simpleCsr(makeKey(), 'device-1'))],
    });
    const bad = await requestBy(device, { reqSequence: [tcr(202, simpleCsr(makeKey(), 'somebody-else'))] });
    const reply = await exchange(
      server,
      requestBy(ra, {
        controlSequence: [nonce(), buildControl(101, 'batchRequests', [1, 2])],
        cmsSequence: [
          { bodyPartID: 1, contentInfo: good },
          { bodyPartID: 2, contentInfo: bad },
        ],
      }),
      ra,
    );
    expect([reply.status, inShort(reply)]).toEqual([200, ['success [101]']]);
    expect(reply.controls.some(({ name }) => name === 'batchResponses')).toBe(true);
    const [first, second] = reply.inner.map((der) => readResponse(server, der));
    if (first === undefined || second === undefined) throw new Error('not two answers');
    expect(inShort(first)).toEqual(['success [201]']);
    expect(formatName(only(first).subject)).toBe('CN=device-1');
    expect(first.controls).toContainEqual(expect.objectContaining({ name: 'transactionId', value: '11' }));
    expect(inShort(second)).toEqual(['failed badIdentity [202]']);
  });

  test('RFC 6402 §2.5: an identity that the RA proved', async () => {
    const { ra } = setting.participants;
    const key = makeKey();
    const csr = buildCsr(key, {
      subject: commonName('new-device'),
      attributes: [extensionRequest(ownKeyIdentifier(key))],
    });
    const inner = await fullRequest({ reqSequence: [tcr(5, csr)] }, { signers: [requestedKey(key)] });
    const send = async (...witness: TaggedAttribute[]): Promise<string[]> => {
      const reply = await exchange(
        server,
        requestBy(ra, {
          controlSequence: [nonce(), buildControl(101, 'batchRequests', [1]), ...witness],
          cmsSequence: [{ bodyPartID: 1, contentInfo: inner }],
        }),
        ra,
      );
      const [answer] = reply.inner;
      return answer === undefined ? [] : inShort(readResponse(server, answer));
    };
    expect(await send()).toEqual(['failed badIdentity [0]']);
    expect(await send(buildControl(103, 'raIdentityWitness', [1]))).toEqual(['success [5]']);
  });

  test('RFC 5272 §6.8: possession that an RA of the configuration has checked', async () => {
    const { ra, configuredRa } = setting.participants;
    const request = (popo: Buffer | null): ReturnType<typeof crm> =>
      crm(9, buildCrmf(makeKey(), { certReqId: 9, subject: 'CN=encrypts', popo }));
    const witness = buildControl(101, 'lraPOPWitness', { pkiDataBodyid: 0, bodyIds: [9] });
    const raVerified = Buffer.of(0x80, 0x00);
    const send = async (client: ClientIdentity, popo: Buffer | null, controls: TaggedAttribute[]) => {
      const reply = await exchange(
        server,
        requestBy(client, { controlSequence: [nonce(), ...controls], reqSequence: [request(popo)] }),
        client,
      );
      return [reply.status, ...inShort(reply)];
    };
    expect(await send(configuredRa, raVerified, [])).toEqual([200, 'success [9]']);
    expect(await send(configuredRa, null, [witness])).toEqual([200, 'success [9]']);
    expect(await send(configuredRa, null, [])).toEqual([400, 'failed popRequired [9]']);
    expect(await send(ra, raVerified, [])).toEqual([400, 'failed popFailed [9]']);
    expect(await send(ra, null, [witness])).toEqual([400, 'failed popFailed [9]']);
  });
});

test('RFC 5272 §4.2: the response contains the issuing certificate in addition to the issued one', async () => {
  const reply = await exchange(
    server,
    requestBy(device, { reqSequence: [tcr(1, simpleCsr(makeKey(), 'device-1'))] }),
    device,
  );
  expect(reply.certificates.some(({ fingerprint }) => fingerprint === issuer.fingerprint)).toBe(true);
  expect(parseCertificate(only(reply).der).issuer.der.equals(issuer.subject.der)).toBe(true);
});

describe('the ECDSA twin of a certificate is the same signer', () => {
  const csr = (cn: string): Buffer => simpleCsr(makeKey(), cn);
  const ask = async (signer: ClientIdentity, cn: string, path = 'fullcmc', carrier = signer): Promise<unknown[]> => {
    const message = requestBy(signer, { reqSequence: [tcr(1, csr(cn))] });
    const answer = await postCmc(server, await message, carrier, path);
    if (!String(answer.headers['content-type']).startsWith('application/pkcs7-mime'))
      return [answer.status, answer.text];
    return [answer.status, ...inShort(readReply(server, answer))];
  };
  const ISSUED = [200, 'success [1]'];

  test('a repeated message: the same answer, not another certificate', async () => {
    const data = { controlSequence: [nonce()], reqSequence: [tcr(1, csr('device-1'))] };
    const twin = twinOf(device);
    const [first, second] = [
      await postCmc(server, await requestBy(device, data), device),
      await postCmc(server, await requestBy(twin, data), twin),
    ];
    expect([first.status, second.status]).toEqual([200, 200]);
    expect(second.text).toBe(first.text);
  });

  test('a registration authority: the same rights, until it is revoked', async () => {
    const { configuredRa } = setting.participants;
    const ra = issuedOutside(server, 'issuing', makeKey(), '/CN=RA 3', RA_EXTENSIONS);
    expect((await server.admin('POST', '/admin/certificates', { ca: 'devices', pem: ra.cert })).status).toBe(201);
    for (const one of [configuredRa, ra, twinOf(configuredRa), twinOf(ra)])
      expect(await ask(one, 'anybody')).toEqual(ISSUED);
    const { serialNumber } = certificateOf(ra);
    expect((await server.admin('POST', `/admin/certificates/${serialNumber}/revoke`, {})).status).toBe(200);
    for (const one of [ra, twinOf(ra)])
      expect(await ask(one, 'anybody', 'fullcmc', configuredRa)).toEqual([401, 'failed badIdentity [0]']);
  });
});
