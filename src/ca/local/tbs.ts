/** TBSCertificate v3 of an end entity (RFC 5280 §4.1). */
import { randomBytes } from 'node:crypto';

import { explicit, integer, oid, octetString, sequence, time } from '../../pki/der/der.ts';
import {
  encodeAuthorityInfoAccess,
  encodeAuthorityKeyIdentifier,
  encodeBasicConstraints,
  encodeCrlDistributionPoints,
  encodeExtKeyUsage,
  encodeExtension,
  encodeKeyUsage,
  encodeSubjectAltName,
  encodeSubjectKeyIdentifier,
  type AuthorityInfoAccess,
  type KeyUsage,
} from '../../pki/x509/extensions.ts';
import type { GeneralName } from '../../pki/x509/general-name.ts';
import type { Name } from '../../pki/x509/name.ts';
import { OID } from '../../pki/der/oids.ts';

/** What is the same in every certificate of one CA, encoded once. */
export interface TbsConstants {
  /** DER AlgorithmIdentifier. */
  readonly signatureAlgorithm: Buffer;
  /** DER Name: the CA's subject, byte for byte. */
  readonly issuer: Buffer;
  /** DER Extensions that no request changes. */
  readonly extensions: readonly Buffer[];
}

export interface TbsInput {
  /** 16 octets of {@link randomSerial}. */
  readonly serialNumber: Buffer;
  readonly notBefore: Date;
  readonly notAfter: Date;
  readonly subject: Name;
  /** DER SubjectPublicKeyInfo. */
  readonly spki: Buffer;
  readonly subjectKeyIdentifier: Buffer;
  /** Empty: no keyUsage extension. */
  readonly keyUsage: readonly KeyUsage[];
  /** Empty: no subjectAltName extension. */
  readonly subjectAltNames: readonly GeneralName[];
  /** DER Extensions beside these. */
  readonly further?: readonly Buffer[];
}

const VERSION_3 = explicit(0, integer(2));

const SERIAL_OCTETS = 16;
/** Random octets are fetched for so many at a time: each fetch costs more than a thousand octets do. */
const SERIALS_AHEAD = 64;
let ahead = Buffer.alloc(0);
let at = 0;

/**
 * 16 octets from a CSPRNG whose two leading bits are 01: positive, never zero, always of the same length, and 126
 * random bits (RFC 5280 §4.1.2.2 allows 20 octets; 64 random bits are the usual minimum).
 */
export function randomSerial(): Buffer {
  if (at === ahead.length) {
    ahead = randomBytes(SERIALS_AHEAD * SERIAL_OCTETS);
    at = 0;
  }
  const serial = Buffer.from(ahead.subarray(at, (at += SERIAL_OCTETS)));
  serial.writeUInt8((serial.readUInt8(0) & 0x3f) | 0x40, 0);
  return serial;
}

/** Where relying parties find revocation data and the CA certificate; empty lists leave the extension out. */
export interface PublicationUrls extends AuthorityInfoAccess {
  readonly crl: readonly string[];
}

/** @param purposes dotted OIDs; empty: no extKeyUsage extension. */
export function constantExtensions(
  authorityKeyIdentifier: Buffer,
  purposes: readonly string[],
  urls: PublicationUrls,
): Buffer[] {
  const plain = (id: string, value: Buffer): Buffer => sequence(oid(id), octetString(value));
  const extensions = [
    encodeExtension({
      oid: OID.basicConstraints,
      critical: true,
      value: encodeBasicConstraints({ ca: false, pathLength: undefined }),
    }),
    plain(OID.authorityKeyIdentifier, encodeAuthorityKeyIdentifier(authorityKeyIdentifier)),
  ];
  if (purposes.length > 0) extensions.push(plain(OID.extKeyUsage, encodeExtKeyUsage(purposes)));
  if (urls.crl.length > 0) extensions.push(plain(OID.cRLDistributionPoints, encodeCrlDistributionPoints(urls.crl)));
  if (urls.ocsp.length + urls.caIssuers.length > 0)
    extensions.push(plain(OID.authorityInfoAccess, encodeAuthorityInfoAccess(urls)));
  return extensions;
}

/** DER TBSCertificate. */
export function buildTbs(constants: TbsConstants, input: TbsInput): Buffer {
  return sequence(
    VERSION_3,
    integer(input.serialNumber),
    constants.signatureAlgorithm,
    constants.issuer,
    sequence(time(input.notBefore), time(input.notAfter)),
    input.subject.der,
    input.spki,
    explicit(3, sequence(...constants.extensions, ...ownExtensions(input))),
  );
}

function ownExtensions(input: TbsInput): Buffer[] {
  const extensions = [
    ...(input.further ?? []),
    sequence(oid(OID.subjectKeyIdentifier), octetString(encodeSubjectKeyIdentifier(input.subjectKeyIdentifier))),
  ];
  if (input.keyUsage.length > 0)
    extensions.push(encodeExtension({ oid: OID.keyUsage, critical: true, value: encodeKeyUsage(input.keyUsage) }));
  if (input.subjectAltNames.length > 0)
    extensions.push(
      encodeExtension({
        oid: OID.subjectAltName,
        // RFC 5280 §4.2.1.6: critical when it is the only name
        critical: input.subject.rdns.length === 0,
        value: encodeSubjectAltName(input.subjectAltNames),
      }),
    );
  return extensions;
}
