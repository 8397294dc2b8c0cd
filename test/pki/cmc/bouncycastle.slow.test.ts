/**
 * CMC structures against Bouncy Castle: it reads and rewrites ours, we read and verify its.
 *
 * Longer than other files: its structures are written and read in one run of a JVM.
 */
import { createPrivateKey } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  buildControl,
  controlsNamed,
  encodeControlValue,
  isControlName,
  parseControl,
  type ControlName,
} from '../../../src/pki/cmc/controls.ts';
import { verifyIdentityProof, verifyPopLinkWitness } from '../../../src/pki/cmc/identity-proof.ts';
import { buildPkiData, parsePkiData, type PkiData, buildPkiResponse } from '../../../src/pki/cmc/pki-data.ts';
import {
  requestOfSigner,
  parseCertificateRequest,
  verifyProofOfPossession,
  type CmcCertificateRequest,
} from '../../../src/pki/cmc/tagged-request.ts';
import { parseAuthenticatedData, verifyAuthenticatedData } from '../../../src/pki/cms/authenticated-data.ts';
import { berToDer } from '../../../src/pki/der/ber.ts';
import { parsePemCertificates, type Certificate } from '../../../src/pki/x509/certificate.ts';
import {
  parseSignedData,
  verifySignerInfo,
  type SignedData,
  buildSignedData,
  issuerAndSerialNumber,
  keySigner,
} from '../../../src/pki/cms/cms.ts';
import { explicit, integer, octetString, oid, sequence, tlv } from '../../../src/pki/der/der.ts';
import { formatName, parseDistinguishedName } from '../../../src/pki/x509/name.ts';
import { OID } from '../../../src/pki/der/oids.ts';
import { makeCa, type TestCa } from '../../support/ca.ts';
import { compileCmcClient, type CmcClient } from '../../support/cmc-client.ts';
import { makeKey } from '../../support/csr.ts';
import { openssl, temporaryFolder } from '../../support/openssl.ts';
import { requires } from '../../support/requires.ts';
import { buildCrmf, CONTROL_VALUES, sampleRequests } from './samples.ts';
import { buildAuthenticatedData } from '../../support/cmc-secrets.ts';

const SECRET = 'a shared sécret of 20';
const IDENTIFICATION = 'gerät 7';

/** Bouncy Castle's class for each control's value. Its CMCStatusInfoV2 knows no paths; it has none for the rest. */
const CLASSES: Readonly<Partial<Record<ControlName, string>>> = {
  statusInfo: 'CMCStatusInfo',
  lraPOPWitness: 'LraPopWitness',
  getCert: 'GetCert',
  getCRL: 'GetCRL',
  revokeRequest: 'RevokeRequest',
  batchRequests: 'BodyPartList',
  batchResponses: 'BodyPartList',
  controlProcessed: 'ControlsProcessed',
  identityProofV2: 'IdentityProofV2',
  raIdentityWitness: 'BodyPartPath',
};

describe.skipIf(!requires('bouncycastle', 'openssl'))('CMC with Bouncy Castle', () => {
  const folder = temporaryFolder();
  let client: CmcClient;
  let ca: TestCa;
  let certificate: Certificate;

  beforeAll(async () => {
    client = await compileCmcClient(folder.path);
    ca = makeCa(folder.file, 'cmc', { kind: 'ec:P-256' });
    const [found] = parsePemCertificates(readFileSync(ca.certificate, 'utf8'));
    if (found === undefined) throw new Error('no certificate');
    certificate = found;
  });
  afterAll(async () => {
    await client.stop();
    folder.remove();
  });

  test('reads what we build, and writes the same octets', async () => {
    const target = folder.file('rewrite');
    mkdirSync(target);
    const write = (name: string, der: Buffer): void => writeFileSync(join(target, `${name}.der`), der);
    const [tcr, crm] = sampleRequests();
    const controlSequence = Object.keys(CONTROL_VALUES)
      .filter(isControlName)
      .map((name, i) => buildControl(i + 10, name, CONTROL_VALUES[name]));
    const contentInfo = sequence(oid(OID.data), explicit(0, octetString(Buffer.from('data'))));
    const cmsSequence = [{ bodyPartID: 100, contentInfo }];
    const otherMsgSequence = [{ bodyPartID: 101, type: '1.2.3', value: integer(5) }];
    write('PKIData-all', buildPkiData({ controlSequence, reqSequence: [tcr, crm], cmsSequence, otherMsgSequence }));
    write('PKIResponse-all', buildPkiResponse({ controlSequence, cmsSequence, otherMsgSequence }));
    const subject = parseDistinguishedName('CN=x');
    const validity = tlv(0xa4, explicit(0, tlv(0x17, Buffer.from('261121000000Z'))));
    write('CertReqMsg-1', buildCrmf(makeKey(), { before: [tlv(0x80, Buffer.of(2)), validity] }));
    write('CertTemplate-1', sequence(validity, explicit(5, subject.der)));
    for (const name of Object.keys(CLASSES).filter(isControlName)) {
      const type = CLASSES[name];
      if (type !== undefined) write(`${type}-${name}`, encodeControlValue(name, CONTROL_VALUES[name]));
    }
    const statuses = {
      fail: { failInfo: 'badIdentity' },
      pend: { pendInfo: { pendToken: Buffer.from('t'), pendTime: new Date('2026-11-21T05:00:00Z') } },
      extended: { extendedFailInfo: { oid: '1.2.3', value: integer(4) } },
    } as const;
    for (const [name, otherInfo] of Object.entries(statuses))
      write(
        `CMCStatusInfoV2-${name}`,
        encodeControlValue('statusInfoV2', { status: 'failed', bodyList: [1, 2], statusString: 'né', otherInfo }),
      );

    await client.rewrite(target);
    const names = readdirSync(target).filter((name) => name.endsWith('.der'));
    expect(names.length).toBeGreaterThan(14);
    for (const name of names) {
      const rewritten = readFileSync(join(target, name.replace('.der', '.out')), 'hex');
      expect({ name, der: rewritten }).toEqual({ name, der: readFileSync(join(target, name), 'hex') });
    }
  });

  interface Read {
    readonly signed: SignedData;
    readonly data: PkiData;
    readonly requests: readonly CmcCertificateRequest[];
  }
  const readRequests = (data: PkiData): CmcCertificateRequest[] =>
    data.reqSequence.map((tagged) => {
      if (tagged.kind === 'orm') throw new Error('an orm');
      return parseCertificateRequest(tagged);
    });
  const readSigned = (file: string): Read => {
    const signed = parseSignedData(berToDer(readFileSync(folder.file(file))));
    expect(signed.contentType).toBe(OID.pkiData);
    const data = parsePkiData(signed.content ?? Buffer.alloc(0));
    return { signed, data, requests: readRequests(data) };
  };
  const verifySignature = async ({ signed, requests }: Read): Promise<boolean> => {
    const request = requestOfSigner(signed, requests);
    const [signer] = signed.signerInfos;
    if (request === undefined || signer === undefined) return false;
    return verifySignerInfo(signed, signer, request.publicKey);
  };

  test.each([
    ['PKCS #10, P-256', {}],
    ['PKCS #10, RSA', { keytype: 'rsa' }],
    ['CRMF, P-256', { format: 'crmf' }],
    ['CRMF, RSA', { format: 'crmf', keytype: 'rsa' }],
  ])('its first enrollment is read and verified: %s', async (_, options) => {
    const out = folder.file('first.ber');
    const secrets = { secret: SECRET, identification: IDENTIFICATION };
    await client.run([
      'enroll',
      { subject: 'CN=a|CN=b', dns: 'a.example', newkey: folder.file('first'), out, ...secrets, ...options },
    ]);
    expect(readFileSync(out).subarray(0, 2).toString('hex')).toBe('3080'); // BER, indefinite length
    const read = readSigned('first.ber');
    const { data, requests } = read;
    expect(requests.map(({ subject }) => formatName(subject))).toEqual(['CN=a', 'CN=b']);
    expect(requests.map(({ subjectAltNames }) => subjectAltNames)).toEqual(
      Array.from({ length: 2 }, () => [{ kind: 'dns', value: 'a.example' }]),
    );
    for (const request of requests) expect((await verifyProofOfPossession(request)).method).toBe('signature');
    expect(await verifySignature(read)).toBe(true);

    const controls = data.controlSequence.map(parseControl);
    const [proof] = controlsNamed(controls, 'identityProofV2');
    const [random] = controlsNamed(controls, 'popLinkRandom');
    const [identification] = controlsNamed(controls, 'identification');
    if (proof === undefined || random === undefined) throw new Error('no proof');
    expect(identification?.value).toBe(IDENTIFICATION);
    const shared = { secret: Buffer.from(SECRET, 'utf8'), identification: IDENTIFICATION };
    const other = { ...shared, secret: Buffer.from('another') };
    expect(verifyIdentityProof(proof, data.reqSequenceBytes, shared)).toBe(true);
    expect(verifyIdentityProof(proof, data.reqSequenceBytes, other)).toBe(false);
    for (const request of requests) {
      expect(verifyPopLinkWitness(request, random.value, shared)).toBe(true);
      expect(verifyPopLinkWitness(request, random.value, other)).toBe(false);
    }
    expect(controlsNamed(controls, 'transactionId')).toHaveLength(1);
    expect(controlsNamed(controls, 'senderNonce')[0]?.value).toHaveLength(16);
  });

  test.each(['pkcs10', 'crmf'])('a request whose own signature is wrong is found among three: %s', async (format) => {
    const out = folder.file('bad.ber');
    await client.run(['enroll', { subject: 'CN=a|CN=b|CN=c', newkey: folder.file('bad'), out, bad: '2', format }]);
    const [good, bad, last] = readSigned('bad.ber').requests;
    if (good === undefined || bad === undefined || last === undefined) throw new Error('not three');
    await expect(verifyProofOfPossession(good)).resolves.toMatchObject({ method: 'signature' });
    await expect(verifyProofOfPossession(bad)).rejects.toMatchObject({ failInfo: 'popFailed', bodyPartIDs: [2] });
    await expect(verifyProofOfPossession(last)).resolves.toMatchObject({ method: 'signature' });
  });

  test('a message signed with a certificate names it by issuer and serial number', async () => {
    const out = folder.file('signed.ber');
    const signer = { cert: ca.certificate, key: ca.privateKey };
    await client.run(
      ['revoke', { target: ca.certificate, reason: '4', out, ...signer }],
      ['confirm', { target: ca.certificate, out: folder.file('confirm.ber'), ...signer }],
      ['query', { token: '0a0b', out: folder.file('query.ber'), ...signer }],
      ['batch', { in: `${out}|${out}`, out: folder.file('batch.ber'), ...signer }],
      ['revoke', { target: ca.certificate, 'revocation-secret': SECRET, out: folder.file('unsigned.ber') }],
    );
    const { signed, data, requests } = readSigned('signed.ber');
    const [info] = signed.signerInfos;
    if (info === undefined) throw new Error('no signer');
    const { serialNumber, issuer } = certificate;
    expect(info.sid).toMatchObject({ kind: 'issuerAndSerialNumber', serialNumber });
    expect(signed.certificates).toEqual([certificate.der]);
    expect(requestOfSigner(signed, requests)).toBeUndefined();
    expect(await verifySignerInfo(signed, info, certificate.publicKey)).toBe(true);
    const changed = { ...signed, content: Buffer.concat([signed.content ?? Buffer.alloc(0), Buffer.of(0)]) };
    expect(await verifySignerInfo(changed, info, certificate.publicKey)).toBe(false);

    const first = (file: string): unknown => {
      const [attribute] = readSigned(file).data.controlSequence;
      return attribute && parseControl(attribute);
    };
    const revocation = { serialNumber, reason: 'superseded', comment: 'by Bouncy Castle' };
    const [attribute] = data.controlSequence;
    expect(attribute && parseControl(attribute)).toMatchObject({ name: 'revokeRequest', value: revocation });
    expect(first('confirm.ber')).toMatchObject({ name: 'confirmCertAcceptance', value: { serialNumber } });
    expect(first('query.ber')).toMatchObject({ name: 'queryPending', value: Buffer.from('0a0b', 'hex') });
    expect(first('batch.ber')).toMatchObject({ name: 'batchRequests', value: [1, 2] });
    const nested = readSigned('batch.ber').data.cmsSequence.map(({ contentInfo }) => parseSignedData(contentInfo));
    expect(nested.map(({ contentType }) => contentType)).toEqual([OID.pkiData, OID.pkiData]);
    const [nestedSigned] = nested;
    const [nestedInfo] = nestedSigned?.signerInfos ?? [];
    expect(
      nestedSigned && nestedInfo && (await verifySignerInfo(nestedSigned, nestedInfo, certificate.publicKey)),
    ).toBe(true);
    expect(readSigned('unsigned.ber').signed.signerInfos).toEqual([]);
    expect(first('unsigned.ber')).toMatchObject({
      value: { issuer: { der: issuer.der }, reason: 'keyCompromise', sharedSecret: Buffer.from(SECRET, 'utf8') },
    });
  });

  test('its AuthenticatedData is verified with the shared secret, and with no other', async () => {
    const out = folder.file('mac.ber');
    const secrets = { mac: 'yes', secret: SECRET, identification: IDENTIFICATION };
    await client.run(['enroll', { subject: 'CN=a', newkey: folder.file('mac'), out, ...secrets }]);
    const message = parseAuthenticatedData(berToDer(readFileSync(out)));
    expect(message.contentType).toBe(OID.pkiData);
    const data = parsePkiData(message.content);
    expect(readRequests(data)).toHaveLength(1);
    const controls = data.controlSequence.map(parseControl);
    expect(controlsNamed(controls, 'identification')[0]?.value).toBe(IDENTIFICATION);
    expect(await verifyAuthenticatedData(message, Buffer.from(IDENTIFICATION + SECRET, 'utf8'))).toBe(true);
    expect(await verifyAuthenticatedData(message, Buffer.from(`${IDENTIFICATION}another`, 'utf8'))).toBe(false);
    expect(await verifyAuthenticatedData(message, Buffer.from(SECRET + IDENTIFICATION, 'utf8'))).toBe(false);
  });

  describe('our answers', () => {
    const pendTime = new Date('2026-11-21T06:00:00Z');
    const content = buildPkiResponse({
      controlSequence: [
        buildControl(1, 'statusInfoV2', {
          status: 'failed',
          bodyList: [7, 8],
          statusString: 'no such thing',
          otherInfo: { failInfo: 'badCertId' },
        }),
        buildControl(2, 'statusInfoV2', {
          status: 'pending',
          bodyList: [9],
          otherInfo: { pendInfo: { pendToken: Buffer.from('0a0b', 'hex'), pendTime } },
        }),
        buildControl(3, 'transactionId', '00deadbeef'),
        buildControl(4, 'recipientNonce', Buffer.from('0102', 'hex')),
      ],
    });
    const expected = {
      verified: true,
      statuses: [
        { status: 2, body: [7, 8], failInfo: 4, pendToken: undefined, text: 'no such thing' },
        { status: 3, body: [9], failInfo: undefined, pendToken: '0a0b', text: undefined },
      ],
      controls: new Map([
        ['transactionId', 'deadbeef'],
        ['recipientNonce', '0102'],
      ]),
      responses: [],
    };

    test('signed, are read by Bouncy Castle and verified by `openssl cms -verify`', async () => {
      const privateKey = createPrivateKey(readFileSync(ca.privateKey));
      const message = await buildSignedData({
        contentType: OID.pkiResponse,
        content,
        certificates: [certificate.der],
        signers: [keySigner(privateKey, certificate.publicKey, issuerAndSerialNumber(certificate))],
        signingTime: new Date(),
      });
      const file = folder.file('response.der');
      writeFileSync(file, message);
      expect(await client.read({ in: file, out: folder.file('certs.pem') })).toEqual(expected);
      expect(readFileSync(folder.file('certs.pem'), 'utf8')).toContain('BEGIN CERTIFICATE');
      const args = ['cms', '-verify', '-binary', '-inform', 'DER', '-in', file, '-purpose', 'any', '-CAfile', ca.root];
      expect(openssl(args)).toEqual(content);
    });

    test('under a shared secret, are read and verified by Bouncy Castle', async () => {
      const file = folder.file('response-mac.der');
      const password = Buffer.from(IDENTIFICATION + SECRET, 'utf8');
      writeFileSync(file, await buildAuthenticatedData(OID.pkiResponse, content, password));
      const secrets = { secret: SECRET, identification: IDENTIFICATION };
      expect(await client.read({ in: file, ...secrets })).toEqual(expected);
    });
  });
});
