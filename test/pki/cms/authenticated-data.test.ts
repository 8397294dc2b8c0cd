import { createHash, createHmac, pbkdf2Sync } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import {
  MAX_ITERATIONS,
  parseAuthenticatedData,
  verifyAuthenticatedData,
} from '../../../src/pki/cms/authenticated-data.ts';
import {
  DerError,
  NULL,
  explicit,
  integer,
  octetString,
  oid,
  parseDer,
  sequence,
  setOf,
  tlv,
} from '../../../src/pki/der/der.ts';
import { unwrapKey, unwrapPasswordKey, wrapKey } from '../../../src/pki/cms/key-wrap.ts';
import { OID } from '../../../src/pki/der/oids.ts';
import { buildAuthenticatedData, wrapPasswordKey } from '../../support/cmc-secrets.ts';

const content = Buffer.from('the PKIData');
const password = Buffer.from('device 7the shared secret');

/** AuthenticatedData of which parts can be replaced; the MAC stands, so only reading succeeds. */
function crafted(parts: {
  readonly version?: Buffer;
  readonly iterations?: Buffer;
  readonly salt?: Buffer;
  readonly keyLength?: Buffer;
  readonly prf?: Buffer;
  readonly derivation?: string;
  readonly wrap?: Buffer;
  readonly recipients?: readonly Buffer[];
  readonly mac?: Buffer;
  readonly digest?: Buffer;
  readonly attributes?: readonly Buffer[];
  readonly encryptedKey?: Buffer;
  readonly macValue?: Buffer;
}): Buffer {
  const recipient = tlv(
    0xa3,
    integer(0),
    tlv(
      0xa0,
      oid(parts.derivation ?? OID.pbkdf2),
      sequence(
        octetString(parts.salt ?? Buffer.alloc(8)),
        parts.iterations ?? integer(1000),
        ...(parts.keyLength === undefined ? [] : [parts.keyLength]),
        ...(parts.prf === undefined ? [] : [parts.prf]),
      ),
    ),
    parts.wrap ?? sequence(oid(OID.aes128Wrap)),
    octetString(parts.encryptedKey ?? Buffer.alloc(24)),
  );
  return sequence(
    oid(OID.authenticatedData),
    explicit(
      0,
      sequence(
        parts.version ?? integer(0),
        setOf(...(parts.recipients ?? [recipient])),
        parts.mac ?? sequence(oid(OID.hmacWithSHA256)),
        ...(parts.digest === undefined ? [tlv(0xa1, oid(OID.sha256))] : [parts.digest]),
        sequence(oid(OID.pkiData), explicit(0, octetString(content))),
        tlv(0xa2, ...(parts.attributes ?? [])),
        octetString(parts.macValue ?? Buffer.alloc(32)),
      ),
    ),
  );
}

describe('RFC 5652 §9: AuthenticatedData under a shared secret', () => {
  test('what is built is read and verified', async () => {
    const data = parseAuthenticatedData(await buildAuthenticatedData(OID.pkiData, content, password));
    expect(data).toMatchObject({ contentType: OID.pkiData, content, macAlgorithm: 'sha256', digest: 'sha256' });
    expect(await verifyAuthenticatedData(data, password)).toBe(true);
  });

  test('another secret, other content, another type or another MAC is not verified', async () => {
    const data = parseAuthenticatedData(await buildAuthenticatedData(OID.pkiData, content, password));
    const mac = Buffer.from(data.mac);
    mac.writeUInt8(mac.readUInt8(3) ^ 1, 3);
    const key = Buffer.from(data.recipient.encryptedKey);
    key.writeUInt8(key.readUInt8(0) ^ 1, 0);
    expect(await verifyAuthenticatedData(data, Buffer.from('device 7another secret'))).toBe(false);
    for (const changed of [
      { content: Buffer.from('the PKIDatb') },
      { contentType: OID.pkiResponse },
      { mac },
      { mac: mac.subarray(1) },
      { recipient: { ...data.recipient, encryptedKey: key } },
      { recipient: { ...data.recipient, encryptedKey: key.subarray(16) } },
      { recipient: { ...data.recipient, iterations: data.recipient.iterations - 1 } },
    ])
      expect(await verifyAuthenticatedData({ ...data, ...changed }, password)).toBe(false);
  });

  test("RFC 5274 §4.1: AES key wrap, and PBKDF2's default PRF", async () => {
    const [salt, key] = [Buffer.alloc(8, 3), Buffer.alloc(32, 4)];
    const kek = pbkdf2Sync(password, salt, 1000, 16, 'sha1');
    const attributes = [
      sequence(oid(OID.contentType), setOf(oid(OID.pkiData))),
      sequence(oid(OID.messageDigest), setOf(octetString(createHash('sha256').update(content).digest()))),
    ];
    const macValue = createHmac('sha256', key)
      .update(tlv(0x31, ...attributes))
      .digest();
    const data = parseAuthenticatedData(crafted({ salt, attributes, encryptedKey: wrapKey(128, kek, key), macValue }));
    expect(await verifyAuthenticatedData(data, password)).toBe(true);
    expect(await verifyAuthenticatedData(data, Buffer.from('x'))).toBe(false);
  });

  test('attributes without a digest or a content type are an error', async () => {
    const data = parseAuthenticatedData(crafted({}));
    await expect(verifyAuthenticatedData(data, password)).rejects.toThrow(DerError);
  });

  test.each([
    ['another version', { version: integer(1) }],
    ['no recipient', { recipients: [] }],
    ['a recipient by certificate', { recipients: [sequence(integer(0))] }],
    ['two recipients', { recipients: [tlv(0xa3, integer(0)), tlv(0xa3, integer(1))] }],
    ['no iterations', { iterations: integer(0) }],
    ['more iterations than we are willing to do', { iterations: integer(MAX_ITERATIONS + 1) }],
    ['negative iterations', { iterations: integer(-5) }],
    ['iterations of 20 octets', { iterations: integer(2n ** 150n) }],
    ['an empty salt', { salt: Buffer.alloc(0) }],
    ['a salt of 300 octets', { salt: Buffer.alloc(300) }],
    ["a key length that is not the key's", { keyLength: integer(5) }],
    ['a PRF of HMAC-MD5', { prf: sequence(oid('1.2.840.113549.2.6'), NULL) }],
    ['another key derivation', { derivation: '1.2.3' }],
    ['key encryption by 3DES', { wrap: sequence(oid('1.2.840.113549.1.9.16.3.6'), NULL) }],
    ['PWRI-KEK without a cipher', { wrap: sequence(oid(OID.pwriKek)) }],
    [
      'PWRI-KEK over 3DES',
      { wrap: sequence(oid(OID.pwriKek), sequence(oid('1.2.840.113549.3.7'), octetString(Buffer.alloc(8)))) },
    ],
    ['a short IV', { wrap: sequence(oid(OID.pwriKek), sequence(oid(OID.aes128CBC), octetString(Buffer.alloc(8)))) }],
    ['HMAC-SHA-1', { mac: sequence(oid(OID.hmacWithSHA1)) }],
    ['a SHA-1 digest', { digest: tlv(0xa1, oid(OID.sha1)) }],
  ])('%s is refused', (_, parts) => {
    expect(() => parseAuthenticatedData(crafted(parts))).toThrow(DerError);
  });

  test('another content type than AuthenticatedData is refused', () => {
    expect(() => parseAuthenticatedData(sequence(oid(OID.data), explicit(0, integer(0))))).toThrow(DerError);
  });
});

describe('RFC 3394, RFC 3211: wrapped keys', () => {
  test("RFC 3394 §4.1: the standard's own vector", () => {
    const kek = Buffer.from('000102030405060708090A0B0C0D0E0F', 'hex');
    const key = Buffer.from('00112233445566778899AABBCCDDEEFF', 'hex');
    const wrapped = Buffer.from('1FA68B0A8112B447AEF34BD8FB5A7B829D3E862371D2CFE5', 'hex');
    expect(wrapKey(128, kek, key)).toEqual(wrapped);
    expect(unwrapKey(128, kek, wrapped)).toEqual(key);
    expect(unwrapKey(128, key, wrapped)).toBeUndefined();
    expect(unwrapKey(128, kek, wrapped.subarray(1))).toBeUndefined();
  });

  test.each([16, 20, 28, 29, 32, 64])('RFC 3211 §2.3: a key of %i octets', (length) => {
    const kek = Buffer.alloc(32, 1);
    const iv = Buffer.alloc(16, 2);
    const key = createHmac('sha512', 'k').update('x').digest().subarray(0, length);
    const wrapped = wrapPasswordKey(kek, iv, key);
    expect(unwrapPasswordKey(256, kek, iv, wrapped)).toEqual(key);
    expect(unwrapPasswordKey(256, Buffer.alloc(32, 9), iv, wrapped)).toBeUndefined();
    expect(unwrapPasswordKey(256, kek, iv, wrapped.subarray(0, 16))).toBeUndefined();
    expect(parseDer(octetString(wrapped)).value.length % 16).toBe(0);
  });
});
