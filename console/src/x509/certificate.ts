/** Reads a certificate for display. */
import { characters, fromPem, hex, oid, readAll, within, type Element } from './der.ts';
import { readExtension, type Extension } from './extensions.ts';
import { distinguishedName } from './names.ts';

export interface ReadCertificate {
  readonly serial: string;
  readonly issuer: string;
  readonly subject: string;
  readonly notBefore: string;
  readonly notAfter: string;
  readonly key: string;
  /** DER SubjectPublicKeyInfo. */
  readonly spki: Uint8Array;
  readonly signature: string;
  readonly extensions: readonly Extension[];
  readonly der: Uint8Array;
}

const ALGORITHMS: Readonly<Record<string, string | undefined>> = {
  '1.2.840.10045.2.1': 'EC',
  '1.2.840.113549.1.1.1': 'RSA',
  '1.2.840.113549.1.1.10': 'RSASSA-PSS',
  '1.2.840.113549.1.1.11': 'SHA-256 with RSA',
  '1.2.840.113549.1.1.12': 'SHA-384 with RSA',
  '1.2.840.113549.1.1.13': 'SHA-512 with RSA',
  '1.2.840.10045.4.3.2': 'ECDSA with SHA-256',
  '1.2.840.10045.4.3.3': 'ECDSA with SHA-384',
  '1.2.840.10045.4.3.4': 'ECDSA with SHA-512',
  '1.3.101.112': 'Ed25519',
  '1.3.101.113': 'Ed448',
  '2.16.840.1.101.3.4.3.17': 'ML-DSA-44',
  '2.16.840.1.101.3.4.3.18': 'ML-DSA-65',
  '2.16.840.1.101.3.4.3.19': 'ML-DSA-87',
  '1.2.840.10045.3.1.7': 'P-256',
  '1.3.132.0.34': 'P-384',
  '1.3.132.0.35': 'P-521',
};

const word = (element: Element | undefined): string => {
  if (element === undefined) return 'unknown';
  const id = oid(element);
  return ALGORITHMS[id] ?? id;
};

/** @returns undefined if the certificate is unreadable */
export function readCertificate(pem: string): ReadCertificate | undefined {
  const [der] = fromPem(pem);
  if (der === undefined) return undefined;
  try {
    return read(der);
  } catch {
    return undefined;
  }
}

function read(der: Uint8Array): ReadCertificate | undefined {
  const [tbs, algorithm] = within(readAll(der)[0]);
  const fields = within(tbs).filter(({ tag }) => tag !== 0xa0);
  const [serial, , issuer, validity, subject, spki] = fields;
  if (serial === undefined) return undefined;
  const [notBefore = '', notAfter = ''] = within(validity).map(time);
  const extensions = within(fields.find(({ tag }) => tag === 0xa3)).flatMap((list) => within(list));
  return {
    serial: hex(serial.content),
    issuer: distinguishedName(issuer),
    subject: distinguishedName(subject),
    notBefore,
    notAfter,
    key: keyOf(spki),
    spki: spki?.raw ?? new Uint8Array(),
    signature: word(within(algorithm)[0]),
    extensions: extensions.map(readExtension),
    der,
  };
}

function keyOf(spki: Element | undefined): string {
  const [algorithm, bits] = within(spki);
  const [type, parameter] = within(algorithm);
  const name = word(type);
  if (name === 'EC' && parameter?.tag === 6) return `EC ${word(parameter)}`;
  if (!name.startsWith('RSA') || bits === undefined) return name;
  const [modulus] = within(readAll(bits.content.subarray(1))[0]);
  const length = modulus === undefined ? 0 : modulus.content.length - (modulus.content[0] === 0 ? 1 : 0);
  return `${name} ${length * 8}`;
}

/** UTCTime and GeneralizedTime (RFC 5280 §4.1.2.5) in ISO 8601. */
function time(element: Element): string {
  const text = characters(element);
  const digits = element.tag === 0x17 ? `${Number(text.slice(0, 2)) >= 50 ? '19' : '20'}${text}` : text;
  return digits.replace(/^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z');
}
