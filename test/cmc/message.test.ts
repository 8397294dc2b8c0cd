import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { checkUnsigned, readContent, readEnvelope, type Message } from '../../src/cmc/message.ts';
import { buildControl } from '../../src/pki/cmc/controls.ts';
import { buildPkiData } from '../../src/pki/cmc/pki-data.ts';
import { buildSignedData, contentInfo, keySigner } from '../../src/pki/cms/cms.ts';
import { DerError, integer, octetString, oid, sequence, setOf } from '../../src/pki/der/der.ts';
import { OID } from '../../src/pki/der/oids.ts';
import { parsePublicKey } from '../../src/pki/x509/public-key.ts';
import { CONTROL_VALUES } from '../pki/cmc/samples.ts';
import { buildAuthenticatedData } from '../support/cmc-secrets.ts';
import { keyPair } from '../support/keys.ts';
import { messageOf, outcome, part } from './support.ts';

describe("RFC 5272 §6.11: an unsigned revocation request in Dogtag's form, PKIData in id-data", () => {
  test('is read as unsigned', () => {
    const content = buildPkiData({ controlSequence: [buildControl(1, 'revokeRequest', CONTROL_VALUES.revokeRequest)] });
    const envelope = readEnvelope(contentInfo(OID.data, octetString(content)));
    expect(envelope.kind).toBe('unsigned');
    expect(readContent(envelope).controls).toMatchObject([{ name: 'revokeRequest', bodyPartID: 1 }]);
  });

  test('that holds no OCTET STRING is refused', () => {
    expect(() => readEnvelope(contentInfo(OID.data, integer(1)))).toThrow(DerError);
  });
});

describe('RFC 5272 §3.2: what a message is read from', () => {
  const key = keyPair('ec:P-256', 'signer');
  const publicKey = parsePublicKey(key.publicKey.export({ format: 'der', type: 'spki' }));
  const content = buildPkiData({});
  const signed = (contentType: string, signers = 1): Promise<Buffer> =>
    buildSignedData({
      contentType,
      content,
      certificates: [],
      signers: Array.from({ length: signers }, () =>
        keySigner(key.privateKey, publicKey, { kind: 'subjectKeyIdentifier', keyIdentifier: Buffer.alloc(20) }),
      ),
      signingTime: new Date(0),
    });
  const read = (der: Buffer): Promise<string> =>
    outcome(() => {
      readContent(readEnvelope(der));
    });

  test('PKIData with one signature whose digest matches, or with none', async () => {
    expect(await read(await signed(OID.pkiData))).toBe('ok');
    expect(await read(await signed(OID.pkiData, 0))).toBe('ok');
    expect(await read(await signed(OID.pkiData, 2))).toBe('400 badMessageCheck [0]');
    expect(await read(await signed(OID.data))).toBe('400 badRequest [0]');
    const changed = Buffer.from(await signed(OID.pkiData));
    const digest = createHash('sha256').update(content).digest();
    changed.fill(0, changed.indexOf(digest), changed.indexOf(digest) + 32);
    expect(await read(changed)).toBe('400 badMessageCheck [0]');
  });

  test('a detached content is not PKIData', () => {
    const encapsulated = sequence(oid(OID.pkiData));
    const detached = contentInfo(OID.signedData, sequence(integer(3), setOf(), encapsulated, setOf()));
    expect(() => readEnvelope(detached)).toThrow('The signed content is not PKIData.');
  });

  test('AuthenticatedData whose content is PKIData', async () => {
    const authenticated = (contentType: string) => buildAuthenticatedData(contentType, content, Buffer.from('p'), 1);
    expect(await read(await authenticated(OID.pkiData))).toBe('ok');
    expect(await read(await authenticated(OID.data))).toBe('400 badRequest [0]');
  });
});

describe('RFC 5272 §6.11: only a revocation may be unsigned', () => {
  const revoke = part(1, 'revokeRequest', CONTROL_VALUES.revokeRequest);
  const request = { kind: 'orm' as const, bodyPartID: 3, type: '1.2.3', der: Buffer.of(5, 0) };
  const check = (message: Message): Promise<string> =>
    outcome(() => {
      checkUnsigned(message);
    });

  test('with the controls that describe the message', async () => {
    const harmless = (['transactionId', 'senderNonce', 'recipientNonce', 'identification', 'dataReturn'] as const).map(
      (name, n) => buildControl(n + 2, name, CONTROL_VALUES[name]),
    );
    expect(await check(messageOf([revoke, ...harmless]))).toBe('ok');
    expect(await check(messageOf(harmless))).toBe('401 badIdentity [0]');
    expect(await check(messageOf([revoke, part(2, 'getCert', CONTROL_VALUES.getCert)]))).toBe('401 badIdentity [2]');
    expect(await check(messageOf([revoke], { reqSequence: [request] }))).toBe('401 badIdentity [0]');
  });
});
