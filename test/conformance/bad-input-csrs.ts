/**
 * Bodies that simpleenroll must refuse with 400, each by a name that says what is wrong with it.
 *
 * Longer than other files: the bodies are one table.
 */
import {
  bitString,
  boolean,
  explicit,
  ia5String,
  implicitPrimitive,
  integer,
  NULL,
  octetString,
  oid,
  printableString,
  sequence,
  setOf,
  tlv,
  utf8String,
} from '../../src/pki/der/der.ts';
import {
  ALGORITHM,
  attribute,
  buildCsr,
  challengePassword,
  commonName,
  csrAttribute,
  dns,
  ecSpki,
  email,
  extension,
  extensionRequest,
  ip,
  makeKey,
  name,
  onTheWire,
  patched,
  rsaSpki,
  san,
  simpleCsr,
  uri,
  type CsrParts,
} from '../support/csr.ts';

const key = makeKey();
const other = makeKey();
const rsa = makeKey('rsa2048');
const good = simpleCsr(key);
const wire = onTheWire(good);

const csr = (parts: CsrParts): string => onTheWire(buildCsr(key, parts));
const withExtensions = (...extensions: Buffer[]): string => csr({ attributes: [extensionRequest(...extensions)] });
const withSubject = (...attributes: Buffer[]): string => csr({ subject: name(...attributes) });

const EC = '1.2.840.10045.2.1';
const P256 = '1.2.840.10045.3.1.7';
const CN = '2.5.4.3';
const point = key.spki.subarray(-65);
const modulus = (bits: number): Buffer => {
  const bytes = Buffer.alloc(bits / 8, 0xa5);
  return integer(bytes);
};

/** base64 and armor. */
const ENCODING: Readonly<Record<string, string | Buffer>> = {
  'an empty body': '',
  'white space only': ' \r\n\t\r\n',
  'not base64 at all': 'this is not a certificate request!',
  'base64 with a character outside the alphabet': `${wire.slice(0, 40)}*${wire.slice(41)}`,
  'base64 with the URL alphabet': wire.replace(/^./, '-'),
  'base64 cut by one character': wire.replace(/=*$/, '').slice(0, -1).replace(/.$/, '') + 'A=A',
  'base64 of odd length': `${wire.replace(/=+$/, '')}A`.slice(0, wire.length % 4 === 0 ? wire.length - 3 : wire.length),
  'padding in the middle': `${wire.slice(0, 20)}==${wire.slice(22)}`,
  'three padding characters': `${wire.replace(/=+$/, '')}===`,
  'padding alone': '====',
  'a NUL in the base64': `${wire.slice(0, 20)}\0${wire.slice(20)}`,
  'a UTF-8 byte order mark before the base64': Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from(wire)]),
  'UTF-16 text': Buffer.from(wire, 'utf16le'),
  'raw DER instead of base64': good,
  'hex instead of base64': `${good.toString('hex')}!`,
  'base64 of base64': Buffer.from(wire).toString('base64'),
  'percent-encoded base64': encodeURIComponent(`${wire}+`),
  'a JSON wrapper': JSON.stringify({ csr: wire }),
  'an XML wrapper': `<csr>${wire}</csr>`,
  'a data URL': `data:application/pkcs10;base64,${wire}`,
  'PEM without an end': `-----BEGIN CERTIFICATE REQUEST-----\n${wire}\n`,
  'PEM whose end has another label': `-----BEGIN CERTIFICATE REQUEST-----\n${wire}\n-----END CERTIFICATE-----\n`,
  'PEM with nothing inside': '-----BEGIN CERTIFICATE REQUEST-----\n-----END CERTIFICATE REQUEST-----\n',
  'two PEM blocks': `-----BEGIN CERTIFICATE REQUEST-----\n${wire}\n-----END CERTIFICATE REQUEST-----\n`.repeat(2),
  'PEM with a header inside': `-----BEGIN CERTIFICATE REQUEST-----\nProc-Type: 4,ENCRYPTED\n\n${wire}\n-----END CERTIFICATE REQUEST-----\n`,
  'an unterminated BEGIN line': `-----BEGIN CERTIFICATE REQUEST${wire}`,
  'two requests one after the other': onTheWire(Buffer.concat([good, good])),
};

/** DER framing. */
const DER: Readonly<Record<string, string>> = {
  'one octet': onTheWire(Buffer.from([0x30])),
  'an empty SEQUENCE': onTheWire(sequence()),
  'random octets': onTheWire(Buffer.alloc(200, 0x5a)),
  'all zeros': onTheWire(Buffer.alloc(64)),
  'the request without its last octet': onTheWire(good.subarray(0, -1)),
  'the request cut in half': onTheWire(good.subarray(0, good.length / 2)),
  'one octet after the request': onTheWire(Buffer.concat([good, Buffer.from([0])])),
  'an outer length one too long': onTheWire(patched(good, 2, good.readUInt8(2) + 1)),
  'an outer length one too short': onTheWire(patched(good, 2, good.readUInt8(2) - 1)),
  'an indefinite outer length': onTheWire(
    Buffer.concat([Buffer.from([0x30, 0x80]), good.subarray(3), Buffer.alloc(2)]),
  ),
  'a length of five octets': onTheWire(Buffer.from([0x30, 0x85, 1, 0, 0, 0, 0, 0])),
  'a length of four gigabytes': onTheWire(Buffer.from([0x30, 0x84, 0xff, 0xff, 0xff, 0xff, 0])),
  'a length that is not minimal': onTheWire(Buffer.concat([Buffer.from([0x30, 0x82, 0]), good.subarray(2)])),
  'a SET instead of the outer SEQUENCE': onTheWire(patched(good, 0, 0x31)),
  'a multi-byte tag': onTheWire(patched(good, 0, 0x3f)),
  'a certificate instead of a request': onTheWire(
    sequence(sequence(explicit(0, integer(2)), integer(1)), ALGORITHM.ecdsaSha256, bitString(Buffer.alloc(64))),
  ),
  'a field after the signature': csr({ trailer: NULL }),
  'a field after the attributes': csr({ infoTrailer: integer(1) }),
  'SEQUENCEs nested 1,000 deep': onTheWire(
    Array.from({ length: 1000 }).reduce<Buffer>((inner) => sequence(inner), NULL),
  ),
  'attributes nested 200 deep': csr({
    attributes: [
      csrAttribute(
        '1.2.3.4',
        Array.from({ length: 200 }).reduce<Buffer>((inner) => sequence(inner), NULL),
      ),
      NULL,
    ],
  }),
};

/** Version, signature, key. */
const KEYS: Readonly<Record<string, string>> = {
  'version 3': csr({ version: integer(3) }),
  'version -1': csr({ version: integer(-1) }),
  'a version that is no INTEGER': csr({ version: boolean(true) }),
  'a version of 100 octets': csr({ version: integer(Buffer.alloc(100, 0x7f)) }),
  'a version padded with a zero': csr({ version: tlv(0x02, Buffer.from([0, 0])) }),
  'an empty INTEGER as version': csr({ version: tlv(0x02) }),
  'a signature by another key': onTheWire(buildCsr(other, { spki: key.spki })),
  'a signature with one bit flipped': onTheWire(patched(good, -1, good.readUInt8(good.length - 1) ^ 1)),
  'a subject changed after signing': onTheWire(
    Buffer.from(good.toString('latin1').replace('device-1', 'device-2'), 'latin1'),
  ),
  'an empty signature': csr({ signature: Buffer.alloc(0) }),
  'a signature of zeros': csr({ signature: Buffer.alloc(70) }),
  'a signature of 10,000 octets': csr({ signature: Buffer.alloc(10_000, 1) }),
  'an ECDSA signature with r = s = 0': csr({ signature: sequence(integer(0), integer(0)) }),
  'a raw r||s signature': csr({ signature: Buffer.alloc(64, 0x11) }),
  'a signature algorithm that is unknown': csr({ algorithm: sequence(oid('1.2.3.4.5')) }),
  'a signature algorithm of another key type': csr({ algorithm: ALGORITHM.rsaSha256 }),
  'an ECDSA signature over SHA-1': csr({ algorithm: ALGORITHM.ecdsaSha1, hash: 'sha1' }),
  'an RSA signature over SHA-1': onTheWire(buildCsr(rsa, { algorithm: ALGORITHM.rsaSha1, hash: 'sha1' })),
  'an RSA signature over MD5': onTheWire(buildCsr(rsa, { algorithm: ALGORITHM.rsaMd5, hash: 'md5' })),
  'an algorithm that is no SEQUENCE': csr({ algorithm: oid('1.2.840.10045.4.3.2') }),
  'an algorithm with no OID': csr({ algorithm: sequence() }),
  'an RSA key of 1024 bits': onTheWire(simpleCsr(makeKey('rsa1024'))),
  'an RSA key of 512 bits': csr({ spki: rsaSpki(modulus(512), integer(65537)) }),
  'an RSA key of 32,768 bits': csr({ spki: rsaSpki(modulus(32_768), integer(65537)) }),
  'an RSA exponent of 3': csr({ spki: rsaSpki(modulus(2048), integer(3)) }),
  'an RSA exponent of 1': csr({ spki: rsaSpki(modulus(2048), integer(1)) }),
  'an even RSA exponent': csr({ spki: rsaSpki(modulus(2048), integer(65536)) }),
  'an RSA exponent of 2,048 bits': csr({ spki: rsaSpki(modulus(2048), modulus(2048)) }),
  'a negative RSA modulus': csr({ spki: rsaSpki(tlv(0x02, Buffer.alloc(256, 0x85)), integer(65537)) }),
  'an RSA modulus of zero': csr({ spki: rsaSpki(integer(0), integer(65537)) }),
  'an RSA key without exponent': csr({
    spki: sequence(sequence(oid('1.2.840.113549.1.1.1'), NULL), bitString(sequence(modulus(2048)))),
  }),
  'a DSA key': onTheWire(buildCsr(makeKey('dsa'), { algorithm: sequence(oid('2.16.840.1.101.3.4.3.2')) })),
  'a key on secp256k1, which the profile does not allow': onTheWire(simpleCsr(makeKey('secp256k1'))),
  'a key on P-521, which the profile does not allow': onTheWire(simpleCsr(makeKey('P-521'))),
  'an Ed448 key, which the profile does not allow': onTheWire(simpleCsr(makeKey('ed448'))),
  'an unknown curve': csr({ spki: ecSpki(oid('1.3.132.0.99'), point) }),
  'explicit curve parameters': csr({
    spki: ecSpki(sequence(integer(1), sequence(oid('1.2.840.10045.1.1'), integer(23))), point),
  }),
  'implicit curve parameters': csr({ spki: ecSpki(NULL, point) }),
  'a point that is not on the curve': csr({ spki: ecSpki(oid(P256), patched(point, -1, point.readUInt8(64) ^ 1)) }),
  'the point at infinity': csr({ spki: ecSpki(oid(P256), Buffer.from([0])) }),
  'a point of the wrong length': csr({ spki: ecSpki(oid(P256), point.subarray(0, 60)) }),
  'an empty point': csr({ spki: ecSpki(oid(P256), Buffer.alloc(0)) }),
  'a key BIT STRING with unused bits': csr({ spki: sequence(sequence(oid(EC), oid(P256)), bitString(point, 3)) }),
  'a key algorithm that is unknown': csr({ spki: sequence(sequence(oid('1.2.3.4')), bitString(point)) }),
  'an Ed25519 key of 31 octets': csr({ spki: sequence(sequence(oid('1.3.101.112')), bitString(Buffer.alloc(31, 1))) }),
  'a key that is no SEQUENCE': csr({ spki: octetString(point) }),
  'an empty key': csr({ spki: sequence() }),
};

/** Subject. */
const SUBJECTS: Readonly<Record<string, string>> = {
  'a NUL in the CN': withSubject(attribute(CN, utf8String('admin\0.example.com'))),
  'a line feed in the CN': withSubject(attribute(CN, utf8String('a\nb'))),
  'an escape character in the CN': withSubject(attribute(CN, utf8String('a\u001b[2Jb'))),
  'broken UTF-8 in the CN': withSubject(attribute(CN, tlv(0x0c, Buffer.from([0x61, 0xff, 0xfe])))),
  'overlong UTF-8 in the CN': withSubject(attribute(CN, tlv(0x0c, Buffer.from([0xc0, 0xaf])))),
  'a UTF-8 surrogate in the CN': withSubject(attribute(CN, tlv(0x0c, Buffer.from([0xed, 0xa0, 0x80])))),
  'an odd BMPString': withSubject(attribute(CN, tlv(0x1e, Buffer.from([0, 0x61, 0])))),
  'a UniversalString of five octets': withSubject(attribute(CN, tlv(0x1c, Buffer.from([0, 0, 0, 0x61, 0])))),
  'a UniversalString beyond Unicode': withSubject(attribute(CN, tlv(0x1c, Buffer.from([0x7f, 0, 0, 0])))),
  'a star in a PrintableString': withSubject(attribute(CN, tlv(0x13, Buffer.from('a*b')))),
  'an empty CN': withSubject(attribute(CN, utf8String(''))),
  'a CN of 65 characters': withSubject(attribute(CN, utf8String('x'.repeat(65)))),
  'a CN of 20,000 characters': withSubject(attribute(CN, utf8String('x'.repeat(20_000)))),
  'a country of three letters': withSubject(attribute('2.5.4.6', printableString('USA'))),
  'a CN that is an INTEGER': withSubject(attribute(CN, integer(5))),
  'a CN that is a SEQUENCE': withSubject(attribute(CN, sequence(utf8String('a')))),
  'an attribute without a value': withSubject(sequence(oid(CN))),
  'an attribute with two values': withSubject(sequence(oid(CN), utf8String('a'), utf8String('b'))),
  'an attribute whose type is no OID': withSubject(sequence(utf8String('CN'), utf8String('a'))),
  'an empty RDN': csr({ subject: sequence(tlv(0x31)) }),
  'an RDN that is a SEQUENCE': csr({ subject: sequence(sequence(attribute(CN, utf8String('a')))) }),
  'a subject that is a SET': csr({ subject: setOf(setOf(attribute(CN, utf8String('a')))) }),
  'no subject and no SAN': csr({ subject: name() }),
  'an OID that is not minimal': withSubject(sequence(tlv(0x06, Buffer.from([0x55, 0x80, 0x03])), utf8String('a'))),
  'an unterminated OID': withSubject(sequence(tlv(0x06, Buffer.from([0x55, 0x84])), utf8String('a'))),
  'an empty OID': withSubject(sequence(tlv(0x06), utf8String('a'))),
};

const BASIC_CONSTRAINTS = '2.5.29.19';
const KEY_USAGE = '2.5.29.15';
const EXT_KEY_USAGE = '2.5.29.37';

/** Attributes and extensions. */
const EXTENSIONS: Readonly<Record<string, string>> = {
  'attributes under another tag': csr({ attributes: null, infoTrailer: explicit(1, challengePassword('x')) }),
  'an attribute that is no SEQUENCE': csr({ attributes: [integer(1)] }),
  'an attribute without values': csr({ attributes: [sequence(oid('1.2.840.113549.1.9.14'))] }),
  'an extension request with an empty SET': csr({ attributes: [sequence(oid('1.2.840.113549.1.9.14'), tlv(0x31))] }),
  'an extension request with two values': csr({
    attributes: [
      csrAttribute('1.2.840.113549.1.9.14', sequence(san(dns('a.example'))), sequence(san(dns('b.example')))),
    ],
  }),
  'two extension requests': csr({
    attributes: [extensionRequest(san(dns('a.example'))), extensionRequest(san(dns('b.example')))],
  }),
  'two subjectAltName extensions': withExtensions(san(dns('a.example')), san(dns('b.example'))),
  'two different keyUsage extensions': withExtensions(
    extension(KEY_USAGE, bitString(Buffer.from([0x80]), 7)),
    extension(KEY_USAGE, bitString(Buffer.from([0x20]), 5)),
  ),
  'an extension without a value': withExtensions(sequence(oid('2.5.29.17'))),
  'an extension whose value is no OCTET STRING': withExtensions(sequence(oid('2.5.29.17'), sequence(dns('a.example')))),
  'an extension whose criticality has two octets': withExtensions(
    extension('2.5.29.17', sequence(dns('a.example')), tlv(0x01, Buffer.from([1, 1]))),
  ),
  'an empty subjectAltName': withExtensions(san()),
  'a subjectAltName of garbage': withExtensions(extension('2.5.29.17', Buffer.from('garbage'))),
  'trailing octets in subjectAltName': withExtensions(
    extension('2.5.29.17', Buffer.concat([sequence(dns('a.example')), NULL])),
  ),
  'a DNS name with a NUL': withExtensions(san(dns('good.example\0.evil.example'))),
  'a DNS name with a space': withExtensions(san(dns('a b.example'))),
  'a DNS name with an empty label': withExtensions(san(dns('a..example'))),
  'a DNS name that begins with a dot': withExtensions(san(dns('.example'))),
  'an empty DNS name': withExtensions(san(dns(''))),
  'a DNS label of 64 characters': withExtensions(san(dns(`${'a'.repeat(64)}.example`))),
  'a DNS name of 300 characters': withExtensions(san(dns(`${'abcdefghi.'.repeat(30)}x`))),
  'a DNS name with eight bits': withExtensions(san(dns('b\u00fccher.example'))),
  'a DNS name with an underscore dash start': withExtensions(san(dns('-a.example'))),
  'a DNS name that is a URL': withExtensions(san(dns('https://a.example/'))),
  'an IP address of three octets': withExtensions(san(ip(10, 0, 0))),
  'an IP address of eight octets (a mask)': withExtensions(san(ip(10, 0, 0, 0, 255, 0, 0, 0))),
  'an IP address of no octets': withExtensions(san(ip())),
  'an e-mail address without @': withExtensions(san(email('nobody'))),
  'an e-mail address with a NUL': withExtensions(san(email('a\0@example.com'))),
  'an e-mail address with two @': withExtensions(san(email('a@b@example.com'))),
  'a URI without scheme': withExtensions(san(uri('//a.example/x'))),
  'a URI with a space': withExtensions(san(uri('https://a.example/ x'))),
  'an empty URI': withExtensions(san(uri(''))),
  'a SAN of a kind that is not offered (directoryName)': withExtensions(san(explicit(4, commonName('x')))),
  'a SAN of a kind that is not offered (otherName)': withExtensions(
    san(tlv(0xa0, oid('1.3.6.1.4.1.311.20.2.3'), explicit(0, utf8String('root@example.com')))),
  ),
  'a SAN of a kind that is not offered (registeredID)': withExtensions(san(tlv(0x88, Buffer.from([0x2a, 3])))),
  'a SAN with an unknown tag': withExtensions(san(tlv(0x8f, Buffer.from('x')))),
  '2,000 DNS names': withExtensions(san(...Array.from({ length: 2000 }, (_, i) => dns(`h${i}.example`)))),
  'a request to be a CA': withExtensions(extension(BASIC_CONSTRAINTS, sequence(boolean(true)), boolean(true))),
  'basicConstraints of garbage': withExtensions(extension(BASIC_CONSTRAINTS, Buffer.from([0x30, 0x05, 1]))),
  'keyUsage keyCertSign': withExtensions(extension(KEY_USAGE, bitString(Buffer.from([0x04]), 2), boolean(true))),
  'keyUsage of garbage': withExtensions(extension(KEY_USAGE, octetString(Buffer.from([1])))),
  'an extended key usage beyond the profile (codeSigning)': withExtensions(
    extension(EXT_KEY_USAGE, sequence(oid('1.3.6.1.5.5.7.3.3'))),
  ),
  'an extended key usage of the RA (cmcRA)': withExtensions(
    extension(EXT_KEY_USAGE, sequence(oid('1.3.6.1.5.5.7.3.28'))),
  ),
  'an empty extended key usage': withExtensions(extension(EXT_KEY_USAGE, sequence())),
  'a critical extension that nobody knows': withExtensions(extension('1.2.3.4.5.6', NULL, boolean(true))),
  'two challenge passwords': csr({ attributes: [challengePassword('a'), challengePassword('b')] }),
  'a challenge password that is an INTEGER': csr({ attributes: [csrAttribute('1.2.840.113549.1.9.7', integer(1))] }),
  'a challenge password with two values': csr({
    attributes: [csrAttribute('1.2.840.113549.1.9.7', ia5String('a'), ia5String('b'))],
  }),
  'an IP address under the DNS tag by length': withExtensions(san(implicitPrimitive(2, Buffer.from([10, 0, 0, 1])))),
};

/** All of them: name → body. */
export const BAD_BODIES: Readonly<Record<string, string | Buffer>> = {
  ...ENCODING,
  ...DER,
  ...KEYS,
  ...SUBJECTS,
  ...EXTENSIONS,
};
