/**
 * Invalid requests, each under the code that refuses it.
 *
 * Longer than other files: the requests are one table.
 */
import {
  NULL,
  bitString,
  boolean,
  explicit,
  integer,
  octetString,
  oid,
  sequence,
  setOf,
  tlv,
  utf8String,
} from '../../../src/pki/der/der.ts';
import { OID } from '../../../src/pki/der/oids.ts';
import {
  ALGORITHM,
  attribute,
  buildCsr,
  challengePassword,
  country,
  csrAttribute,
  dns,
  ecSpki,
  email,
  extension,
  extensionRequest,
  ip,
  makeKey,
  name,
  patched,
  rsaSpki,
  san,
  simpleCsr,
  uri,
  type CsrParts,
} from '../../support/csr.ts';

const key = makeKey();
const rsa = makeKey('rsa2048');
const other = makeKey();
const good = simpleCsr(key, 'device-1', ['a.example']);
export const csr = (parts: CsrParts): Buffer => buildCsr(key, parts);
export const withSubject = (...attributes: Buffer[]): Buffer => csr({ subject: name(...attributes) });
export const withSan = (...names: Buffer[]): Buffer => csr({ attributes: [extensionRequest(san(...names))] });
export const withExtensions = (...extensions: Buffer[]): Buffer =>
  csr({ attributes: [extensionRequest(...extensions)] });
const cn = (value: Buffer): Buffer => withSubject(attribute(OID.commonName, value));

export const point = key.spki.subarray(-65);
export const p256 = oid(OID.secp256r1);
/** An odd modulus without small factors: the one of a real key, or a stretched one. */
const realModulus = Buffer.from(rsa.publicKey.export({ format: 'jwk' }).n ?? '', 'base64url');
export const rsaCsr = (parts: CsrParts): Buffer => buildCsr(rsa, parts);
const e = integer(65537);
const pssSha1 = sequence(oid(OID.rsassaPss), sequence());
const pssMixed = sequence(
  oid(OID.rsassaPss),
  sequence(
    explicit(0, sequence(oid(OID.sha256))),
    explicit(1, sequence(oid(OID.mgf1), sequence(oid(OID.sha512)))),
    explicit(2, integer(32)),
  ),
);

export type Table = Readonly<Record<string, Readonly<Record<string, Buffer>>>>;

/** Code → requests that are refused with it while they are read. */
export const PARSED: Table = {
  CSR_MALFORMED: {
    nothing: Buffer.alloc(0),
    'one octet': Buffer.from([0x30]),
    zeros: Buffer.alloc(64),
    'an empty SEQUENCE': sequence(),
    'a SET': patched(good, 0, 0x31),
    'a multi-byte tag': patched(good, 0, 0x3f),
    'without its last octet': good.subarray(0, -1),
    'half of it': good.subarray(0, good.length / 2),
    'an octet after it': Buffer.concat([good, Buffer.alloc(1)]),
    'two of them': Buffer.concat([good, good]),
    'an indefinite length': Buffer.concat([Buffer.from([0x30, 0x80]), good.subarray(3), Buffer.alloc(2)]),
    'a length that is not minimal': Buffer.concat([Buffer.from([0x30, 0x83, 0]), good.subarray(2)]),
    'a length of 4 GiB': Buffer.from([0x30, 0x84, 0xff, 0xff, 0xff, 0xff]),
    'a length of five octets': Buffer.from([0x30, 0x85, 0, 0, 0, 0, 0]),
    'a field after the signature': csr({ trailer: NULL }),
    'a field after the attributes': csr({ infoTrailer: NULL }),
    'attributes under [1]': csr({ attributes: null, infoTrailer: explicit(1) }),
    'a version that is padded': csr({ version: tlv(2, Buffer.from([0, 0])) }),
    'an empty version': csr({ version: tlv(2) }),
    'a huge version': csr({ version: integer(Buffer.alloc(100, 0x7f)) }),
    'a version that is a BOOLEAN': csr({ version: boolean(false) }),
    'a subject that is a SET': csr({ subject: setOf(setOf(attribute(OID.commonName, utf8String('a')))) }),
    'an empty RDN': csr({ subject: sequence(setOf()) }),
    'an attribute without value': withSubject(sequence(oid(OID.commonName))),
    'an attribute type that is no OID': withSubject(sequence(utf8String('CN'), utf8String('a'))),
    'an OID that is not minimal': withSubject(sequence(tlv(6, Buffer.from([0x55, 0x80, 3])), utf8String('a'))),
    'an unterminated OID': withSubject(sequence(tlv(6, Buffer.from([0x55, 0x84])), utf8String('a'))),
    'an OID of 65 octets': withSubject(sequence(tlv(6, Buffer.alloc(65, 1)), utf8String('a'))),
    'a key that is an OCTET STRING': csr({ spki: octetString(point) }),
    'an empty key': csr({ spki: sequence() }),
    'a key with unused bits': csr({ spki: sequence(sequence(oid(OID.ecPublicKey), p256), bitString(point, 3)) }),
    'a point of the wrong length': csr({ spki: ecSpki(p256, point.subarray(1)) }),
    'a point in hybrid form': csr({ spki: ecSpki(p256, patched(point, 0, 6)) }),
    'the point at infinity': csr({ spki: ecSpki(p256, Buffer.from([0])) }),
    'an EC key without curve': csr({ spki: sequence(sequence(oid(OID.ecPublicKey)), bitString(point)) }),
    'an Ed25519 key of 31 octets': csr({ spki: sequence(sequence(oid(OID.ed25519)), bitString(Buffer.alloc(31))) }),
    'an Ed25519 key with parameters': csr({
      spki: sequence(sequence(oid(OID.ed25519), NULL), bitString(Buffer.alloc(32))),
    }),
    'an RSA key without exponent': csr({
      spki: sequence(sequence(oid(OID.rsaEncryption), NULL), bitString(sequence(integer(realModulus)))),
    }),
    'a negative RSA modulus': csr({ spki: rsaSpki(tlv(2, realModulus), e) }),
    'a negative RSA exponent': csr({ spki: rsaSpki(integer(realModulus), integer(-3)) }),
    'an RSA modulus that is padded': csr({
      spki: rsaSpki(tlv(2, Buffer.concat([Buffer.alloc(2), realModulus])), e),
    }),
    'an RSA modulus of 16,392 bits': csr({ spki: rsaSpki(integer(Buffer.alloc(2049, 0x85)), e) }),
    'an algorithm that is no SEQUENCE': csr({ algorithm: oid(OID.ecdsaWithSHA256) }),
    'an empty algorithm': csr({ algorithm: sequence() }),
    'ECDSA with parameters': csr({ algorithm: sequence(oid(OID.ecdsaWithSHA256), sequence()) }),
    'ECDSA with a NULL of one octet': csr({ algorithm: sequence(oid(OID.ecdsaWithSHA256), tlv(5, Buffer.alloc(1))) }),
    'ECDSA with NULL and more': csr({ algorithm: sequence(oid(OID.ecdsaWithSHA256), NULL, NULL) }),
    'RSASSA-PSS without parameters': rsaCsr({ algorithm: sequence(oid(OID.rsassaPss)) }),
    'RSASSA-PSS with two hashes': rsaCsr({ algorithm: pssMixed }),
    'a signature with unused bits': sequence(
      csr({}).subarray(3, 3 + 2 + csr({}).readUInt8(4)),
      ALGORITHM.ecdsaSha256,
      bitString(Buffer.from([0x80]), 3),
    ),
    'an attribute that is an INTEGER': csr({ attributes: [integer(1)] }),
    'an attribute without values': csr({ attributes: [sequence(oid(OID.extensionRequest))] }),
    'an extensionRequest without value': csr({ attributes: [sequence(oid(OID.extensionRequest), setOf())] }),
    'an extensionRequest with two values': csr({
      attributes: [csrAttribute(OID.extensionRequest, sequence(san(dns('a'))), sequence(san(dns('b'))))],
    }),
    'an extension without value': withExtensions(sequence(oid(OID.subjectAltName))),
    'an extension whose value is no OCTET STRING': withExtensions(sequence(oid(OID.subjectAltName), NULL)),
    'an extension whose criticality has two octets': withExtensions(
      extension(OID.keyUsage, NULL, tlv(1, Buffer.alloc(2))),
    ),
    'an empty subjectAltName': withSan(),
    'a subjectAltName of garbage': withExtensions(extension(OID.subjectAltName, Buffer.from('x'))),
    'octets after subjectAltName': withExtensions(
      extension(OID.subjectAltName, Buffer.concat([sequence(dns('a')), NULL])),
    ),
    'a SAN with an unknown tag': withSan(tlv(0x8f, Buffer.from('x'))),
  },
  CSR_VERSION: {
    'version 4': csr({ version: integer(3) }),
    'a negative version': csr({ version: integer(-1) }),
  },
  CSR_KEY_UNSUPPORTED: {
    'an unknown curve': csr({ spki: ecSpki(oid('1.3.132.0.99'), point) }),
    secp256k1: simpleCsr(makeKey('secp256k1')),
    'explicit curve parameters': csr({ spki: ecSpki(sequence(integer(1)), point) }),
    'implicit curve parameters': csr({ spki: ecSpki(NULL, point) }),
    'a DSA key': buildCsr(makeKey('dsa'), { algorithm: sequence(oid('2.16.840.1.101.3.4.3.2')) }),
    'an X25519 key': csr({ spki: sequence(sequence(oid(OID.x25519)), bitString(Buffer.alloc(32))) }),
    'an unknown algorithm': csr({ spki: sequence(sequence(oid('1.2.3.4')), bitString(point)) }),
  },
  CSR_KEY_WEAK: {
    'RSA of 1024 bits': simpleCsr(makeKey('rsa1024')),
    'RSA of 2047 bits': csr({ spki: rsaSpki(integer(patched(realModulus, 0, 0x7f)), e) }),
    'an RSA modulus of zero': csr({ spki: rsaSpki(integer(0), e) }),
    'an even RSA modulus': csr({ spki: rsaSpki(integer(patched(realModulus, -1, 0x10)), e) }),
    'an RSA modulus with a small factor': csr({
      spki: rsaSpki(integer(BigInt(`0x${realModulus.subarray(1).toString('hex')}`) * 751n * 3n + 0n), e),
    }),
    'an RSA exponent of 1': csr({ spki: rsaSpki(integer(realModulus), integer(1)) }),
    'an RSA exponent of 0': csr({ spki: rsaSpki(integer(realModulus), integer(0)) }),
    'an RSA exponent of 3': csr({ spki: rsaSpki(integer(realModulus), integer(3)) }),
    'an RSA exponent of 65,535': csr({ spki: rsaSpki(integer(realModulus), integer(65535)) }),
    'an even RSA exponent': csr({ spki: rsaSpki(integer(realModulus), integer(65538)) }),
    'an RSA exponent of 72 bits': csr({ spki: rsaSpki(integer(realModulus), integer(Buffer.alloc(9, 0x11))) }),
    'an RSA exponent of 2048 bits': csr({ spki: rsaSpki(integer(realModulus), integer(realModulus)) }),
  },
  CSR_SIGNATURE_ALGORITHM: {
    'an unknown one': csr({ algorithm: sequence(oid('1.2.3.4.5')) }),
    'ECDSA with SHA-1': csr({ algorithm: ALGORITHM.ecdsaSha1, hash: 'sha1' }),
    'RSA with SHA-1': rsaCsr({ algorithm: ALGORITHM.rsaSha1, hash: 'sha1' }),
    'RSA with MD5': rsaCsr({ algorithm: ALGORITHM.rsaMd5, hash: 'md5' }),
    "RSASSA-PSS with its defaults' SHA-1": rsaCsr({ algorithm: pssSha1 }),
    'one of RSA with an EC key': csr({ algorithm: ALGORITHM.rsaSha256 }),
    'Ed25519 with an EC key': csr({ algorithm: ALGORITHM.ed25519 }),
    'Ed448 with an Ed25519 key': buildCsr(makeKey('ed25519'), { algorithm: ALGORITHM.ed448 }),
  },
  CSR_SUBJECT_INVALID: {
    'a NUL': cn(utf8String('a\0b')),
    'a line feed': cn(utf8String('a\nb')),
    'an escape': cn(utf8String('a\u001b[2J')),
    'a C1 control in a BMPString': cn(tlv(0x1e, Buffer.from([0, 0x61, 0, 0x85]))),
    'broken UTF-8': cn(tlv(0x0c, Buffer.from([0xc0, 0xaf]))),
    'an odd BMPString': cn(tlv(0x1e, Buffer.from([0, 0x61, 0]))),
    'a UniversalString beyond Unicode': cn(tlv(0x1c, Buffer.from([0x7f, 0, 0, 0]))),
    'half a surrogate pair': cn(tlv(0x1e, Buffer.from([0xd8, 0x00]))),
    'a CN of 65 characters': cn(utf8String('x'.repeat(65))),
    'a CN of 20,000 characters': cn(utf8String('x'.repeat(20_000))),
    'a CN that is an INTEGER': cn(integer(5)),
    'an INTEGER, which OpenSSL cannot read in a name': withSubject(attribute('1.2.3.4', integer(5))),
    'an OCTET STRING in a name': withSubject(attribute('1.2.3.4', tlv(4, Buffer.of(5)))),
    'a country of three letters': withSubject(country('USA')),
    'a country with a digit': withSubject(attribute(OID.countryName, utf8String('D1'))),
    'a serialNumber that a PrintableString cannot hold': withSubject(attribute(OID.serialNumber, utf8String('a_b'))),
    'an emailAddress that an IA5String cannot hold': withSubject(
      attribute(OID.emailAddress, utf8String('é@a.example')),
    ),
    'an override of the direction': cn(utf8String('a\u202egpj.exe')),
    'an isolate': cn(utf8String('a\u2066b')),
    'a space of no width': cn(utf8String('a\u200bb')),
    'a byte order mark': cn(utf8String('\ufeffa')),
    'a soft hyphen': cn(utf8String('a\u00adb')),
    'a line separator': cn(utf8String('a\u2028b')),
    'the separators of folded names': cn(utf8String('a\u00012.5.4.3=b\u0002c')),
    'an attribute type twice in one RDN': csr({
      subject: sequence(setOf(attribute(OID.commonName, utf8String('a')), attribute(OID.commonName, utf8String('b')))),
    }),
    '65 attributes': withSubject(
      ...Array.from({ length: 65 }, (_, i) => attribute(OID.organizationalUnitName, utf8String(`${i}`))),
    ),
    'more than 4 KiB': withSubject(
      ...Array.from({ length: 5 }, (_, i) => attribute(OID.description, utf8String(`${i}${'x'.repeat(900)}`))),
    ),
  },
  CSR_SAN_INVALID: {
    'a DNS name with eight bits': withSan(dns('b\xfccher.example')),
    'a mailbox with eight bits': withSan(email('b\xfccher@a.example')),
    'a DNS name that is an IP address': withSan(dns('192.0.2.1')),
    'a DNS name that is an IP address with leading zeros': withSan(dns('010.0.0.1')),
    'a NUL in a DNS name': withSan(dns('good.example\0.evil.example')),
    'a space in a DNS name': withSan(dns('a b.example')),
    'an empty label': withSan(dns('a..example')),
    'an empty DNS name': withSan(dns('')),
    'a label of 64 characters': withSan(dns(`${'a'.repeat(64)}.example`)),
    'a DNS name of 300 characters': withSan(dns(`${'abcdefghi.'.repeat(30)}x`)),
    'a URL as DNS name': withSan(dns('https://a.example/')),
    'an email without @': withSan(email('nobody')),
    'an email with a NUL': withSan(email('a\0@b.example')),
    'a URI without scheme': withSan(uri('//a.example/x')),
    'a URI with a space': withSan(uri('https://a.example/ x')),
    'an empty URI': withSan(uri('')),
    'an address of three octets': withSan(ip(1, 2, 3)),
    'an address with a mask': withSan(ip(10, 0, 0, 0, 255, 0, 0, 0)),
    'one bad name among good ones': withSan(dns('a.example'), dns('-'), dns('b.example')),
  },
  CSR_DUPLICATE_ATTRIBUTE: {
    'two challengePasswords': csr({ attributes: [challengePassword('a'), challengePassword('b')] }),
    'two unknown ones': csr({ attributes: [csrAttribute('1.2.3.4', NULL), csrAttribute('1.2.3.4', NULL)] }),
  },
  CSR_DUPLICATE_EXTENSION: {
    'two subjectAltNames': withExtensions(san(dns('a')), san(dns('b'))),
    'two unknown ones': withExtensions(extension('1.2.3', NULL), extension('1.2.3', integer(1))),
    'one that differs in critical only': withExtensions(
      extension('1.2.3', NULL),
      extension('1.2.3', NULL, boolean(true)),
    ),
    'two extensionRequests': csr({ attributes: [extensionRequest(san(dns('a'))), extensionRequest(san(dns('b')))] }),
    'one in each form of extensionRequest': csr({
      attributes: [
        extensionRequest(san(dns('a'))),
        csrAttribute(OID.microsoftExtensionRequest, sequence(san(dns('b')))),
      ],
    }),
  },
};

/** Code → requests that are well-formed and refused when their signature is checked. */
export const VERIFIED: Table = {
  CSR_SIGNATURE_INVALID: {
    'one bit flipped': patched(good, -1, good.readUInt8(good.length - 1) ^ 1),
    'by another key': buildCsr(other, { spki: key.spki }),
    'over another subject': Buffer.from(good.toString('latin1').replace('device-1', 'device-2'), 'latin1'),
    empty: csr({ signature: Buffer.alloc(0) }),
    zeros: csr({ signature: Buffer.alloc(70) }),
    'of 10,000 octets': csr({ signature: Buffer.alloc(10_000, 1) }),
    'with r = s = 0': csr({ signature: sequence(integer(0), integer(0)) }),
    'raw r and s': csr({ signature: Buffer.alloc(64, 0x11) }),
    'of RSA, too short': rsaCsr({ signature: Buffer.alloc(255, 1) }),
    'of RSA, zeros': rsaCsr({ signature: Buffer.alloc(256) }),
    'of P-384, zeros': buildCsr(makeKey('P-384'), { algorithm: ALGORITHM.ecdsaSha384, signature: Buffer.alloc(96) }),
    'of Ed25519, zeros': buildCsr(makeKey('ed25519'), { signature: Buffer.alloc(64) }),
    'of Ed25519, too short': buildCsr(makeKey('ed25519'), { signature: Buffer.alloc(63) }),
  },
  CSR_KEY_INVALID: {
    'a point that is not on its curve': csr({ spki: ecSpki(p256, patched(point, -1, point.readUInt8(64) ^ 1)) }),
    'a coordinate beyond the field': csr({
      spki: ecSpki(p256, Buffer.concat([Buffer.from([4]), Buffer.alloc(64, 0xff)])),
    }),
    'a compressed point that does not exist': csr({
      spki: ecSpki(p256, Buffer.concat([Buffer.from([2]), Buffer.alloc(32, 0xff)])),
    }),
  },
};
