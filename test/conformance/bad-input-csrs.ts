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
  sequence,
  tlv,
  utf8String,
} from '../../src/pki/der/der.ts';
import {
  ALGORITHM,
  attribute,
  buildCsr,
  commonName,
  csrAttribute,
  dns,
  email,
  extension,
  extensionRequest,
  ip,
  makeKey,
  name,
  onTheWire,
  rsaSpki,
  san,
  simpleCsr,
  type CsrParts,
} from '../support/csr.ts';
import { PARSED, VERIFIED } from '../pki/pkcs10/refused-csrs.ts';

const key = makeKey();
const good = simpleCsr(key);
const wire = onTheWire(good);

const csr = (parts: CsrParts): string => onTheWire(buildCsr(key, parts));
const withExtensions = (...extensions: Buffer[]): string => csr({ attributes: [extensionRequest(...extensions)] });
const withSubject = (...attributes: Buffer[]): string => csr({ subject: name(...attributes) });

const CN = '2.5.4.3';
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
  'random octets': onTheWire(Buffer.alloc(200, 0x5a)),
  'a certificate instead of a request': onTheWire(
    sequence(sequence(explicit(0, integer(2)), integer(1)), ALGORITHM.ecdsaSha256, bitString(Buffer.alloc(64))),
  ),
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
  'an RSA key of 512 bits': csr({ spki: rsaSpki(modulus(512), integer(65537)) }),
  'an RSA key of 32,768 bits': csr({ spki: rsaSpki(modulus(32_768), integer(65537)) }),
  'a key on P-521, which the profile does not allow': onTheWire(simpleCsr(makeKey('P-521'))),
  'an Ed448 key, which the profile does not allow': onTheWire(simpleCsr(makeKey('ed448'))),
};

/** Subject. */
const SUBJECTS: Readonly<Record<string, string>> = {
  'overlong UTF-8 in the CN': withSubject(attribute(CN, tlv(0x0c, Buffer.from([0xc0, 0xaf])))),
  'a UTF-8 surrogate in the CN': withSubject(attribute(CN, tlv(0x0c, Buffer.from([0xed, 0xa0, 0x80])))),
  'a UniversalString of five octets': withSubject(attribute(CN, tlv(0x1c, Buffer.from([0, 0, 0, 0x61, 0])))),
  'a star in a PrintableString': withSubject(attribute(CN, tlv(0x13, Buffer.from('a*b')))),
  'an empty CN': withSubject(attribute(CN, utf8String(''))),
  'a CN that is a SEQUENCE': withSubject(attribute(CN, sequence(utf8String('a')))),
  'an attribute with two values': withSubject(sequence(oid(CN), utf8String('a'), utf8String('b'))),
  'an RDN that is a SEQUENCE': csr({ subject: sequence(sequence(attribute(CN, utf8String('a')))) }),
  'no subject and no SAN': csr({ subject: name() }),
  'an empty OID': withSubject(sequence(tlv(0x06), utf8String('a'))),
};

const BASIC_CONSTRAINTS = '2.5.29.19';
const KEY_USAGE = '2.5.29.15';
const EXT_KEY_USAGE = '2.5.29.37';

/** Attributes and extensions. */
const EXTENSIONS: Readonly<Record<string, string>> = {
  'two different keyUsage extensions': withExtensions(
    extension(KEY_USAGE, bitString(Buffer.from([0x80]), 7)),
    extension(KEY_USAGE, bitString(Buffer.from([0x20]), 5)),
  ),
  'a DNS name that begins with a dot': withExtensions(san(dns('.example'))),
  'a DNS name with an underscore dash start': withExtensions(san(dns('-a.example'))),
  'an IP address of no octets': withExtensions(san(ip())),
  'an e-mail address with two @': withExtensions(san(email('a@b@example.com'))),
  'a SAN of a kind that is not offered (directoryName)': withExtensions(san(explicit(4, commonName('x')))),
  'a SAN of a kind that is not offered (otherName)': withExtensions(
    san(tlv(0xa0, oid('1.3.6.1.4.1.311.20.2.3'), explicit(0, utf8String('root@example.com')))),
  ),
  'a SAN of a kind that is not offered (registeredID)': withExtensions(san(tlv(0x88, Buffer.from([0x2a, 3])))),
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
  'a challenge password that is an INTEGER': csr({ attributes: [csrAttribute('1.2.840.113549.1.9.7', integer(1))] }),
  'a challenge password with two values': csr({
    attributes: [csrAttribute('1.2.840.113549.1.9.7', ia5String('a'), ia5String('b'))],
  }),
  'an IP address under the DNS tag by length': withExtensions(san(implicitPrimitive(2, Buffer.from([10, 0, 0, 1])))),
};

/** All of them: name → body. Those of other tests are here too. */
export const BAD_BODIES: Readonly<Record<string, string | Buffer>> = {
  ...Object.fromEntries(
    [PARSED, VERIFIED].flatMap((table) =>
      Object.entries(table).flatMap(([code, cases]) =>
        Object.entries(cases).map(([what, der]) => [`${code}: ${what}`, onTheWire(der)]),
      ),
    ),
  ),
  ...ENCODING,
  ...DER,
  ...KEYS,
  ...SUBJECTS,
  ...EXTENSIONS,
};
