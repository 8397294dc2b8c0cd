/** TBSCertificate v3 of an end entity or a device CA (RFC 5280 §4.1). */
import { randomBytes, randomInt } from 'node:crypto';
import type { ProfileConfig } from '../../config/schema/profile.ts';
import { type EstuaryError, unavailable } from '../../errors.ts';
import { explicit, integer, octetString, oid, sequence, time } from '../../pki/der/der.ts';
import { OID } from '../../pki/der/oids.ts';
import {
  encodeCertificatePolicies,
  type AuthorityInfoAccess,
  encodeAuthorityInfoAccess,
  encodeAuthorityKeyIdentifier,
  encodeBasicConstraints,
  encodeCrlDistributionPoints,
  encodeExtension,
  encodeExtKeyUsage,
  encodeKeyUsage,
  encodeSubjectAltName,
  encodeSubjectKeyIdentifier,
  type Extension,
  findExtension,
  type KeyUsage,
} from '../../pki/x509/extensions.ts';
import type { GeneralName } from '../../pki/x509/general-name.ts';
import type { Name } from '../../pki/x509/name.ts';

export type ValidityProfile = Pick<ProfileConfig, 'validity_days' | 'validity_seconds' | 'validity_spread_seconds'> &
  Partial<Pick<ProfileConfig, 'backdate_seconds'>>;

interface Period {
  readonly notBefore: Date;
  readonly notAfter: Date;
}

/** Seconds. Clients' clocks lag, so a fresh certificate must not be "not yet valid". */
const BACKDATING = 60;
const DAY = 86_400_000;

export const notValid = (detail: string): EstuaryError =>
  unavailable('CA_NOT_VALID', 'The CA certificate has expired or is not yet valid.', { detail });

/**
 * The validity period per profile, backdated a little, within the CA certificate's validity.
 * @param time milliseconds since the epoch @param days overrides the profile
 * @throws EstuaryError 503 `CA_NOT_VALID`
 */
export function validityPeriod(profile: ValidityProfile, ca: Period, time: number, days: number | undefined): Period {
  const now = Math.floor(time / 1000) * 1000;
  if (now < ca.notBefore.getTime() || now >= ca.notAfter.getTime()) throw notValid(expiry(ca));
  const backdating = profile.backdate_seconds ?? BACKDATING;
  const notBefore = Math.max(now - backdating * 1000, ca.notBefore.getTime());
  // notBefore and notAfter are inclusive (RFC 5280 §4.1.2.5).
  const length = days === undefined ? usualLength(profile, backdating) : days * DAY;
  const notAfter = Math.min(notBefore + length - 1000, ca.notAfter.getTime());
  return { notBefore: new Date(notBefore), notAfter: new Date(notAfter) };
}

/** @param backdating seconds @returns milliseconds */
function usualLength(profile: ValidityProfile, backdating: number): number {
  const { validity_days, validity_seconds, validity_spread_seconds = 0 } = profile;
  const seconds = validity_seconds ?? (validity_days * DAY) / 1000;
  // At most half of the remaining validity, so that a certificate is never issued expired.
  const spread = Math.min(validity_spread_seconds, Math.floor((seconds - backdating) / 2));
  return (seconds - randomInt(spread + 1)) * 1000;
}

export const expiry = ({ notBefore, notAfter }: Period): string =>
  `valid from ${notBefore.toISOString()} to ${notAfter.toISOString()}`;

/** Extensions that a profile adds: constant policies and values, and copies from the request. */

export type ExtensionProfile = Partial<Pick<ProfileConfig, 'policies' | 'extensions'>>;

export class ProfileExtensions {
  /** DER Extensions that are the same in every certificate. */
  readonly constant: readonly Buffer[];
  /** Additional extensions that a certificate may contain, by OID: whether each is critical. */
  readonly further: ReadonlyMap<string, boolean>;
  readonly #copied: ProfileConfig['extensions'];

  constructor({ policies = [], extensions = [] }: ExtensionProfile) {
    const fixed = extensions.flatMap(({ oid, critical, value }) =>
      value === undefined ? [] : [encodeExtension({ oid, critical, value: Buffer.from(value, 'hex') })],
    );
    const value = policies.length === 0 ? undefined : encodeCertificatePolicies(policies);
    this.constant =
      value === undefined
        ? fixed
        : [encodeExtension({ oid: OID.certificatePolicies, critical: false, value }), ...fixed];
    this.further = new Map(extensions.map(({ oid, critical }) => [oid, critical]));
    this.#copied = extensions.filter(({ from }) => from === 'csr');
  }

  /** DER of the copied extensions, critical as in the profile. */
  copied(requested: readonly Extension[]): Buffer[] {
    return this.#copied.flatMap(({ oid, critical }) => {
      const extension = findExtension(requested, oid);
      return extension === undefined ? [] : [encodeExtension({ oid, critical, value: extension.value })];
    });
  }
}

/** URLs for certificates of the CA with this label; undefined while publication is off. */
export function publicationUrls(
  { enabled, base_url }: { readonly enabled: boolean; readonly base_url?: string | undefined },
  label: string,
): PublicationUrls | undefined {
  if (!enabled || base_url === undefined) return undefined;
  const base = base_url.replace(/\/+$/, '');
  const name = encodeURIComponent(label);
  return {
    crl: [`${base}/crl/${name}.crl`],
    ocsp: [`${base}/ocsp/${name}`],
    caIssuers: [`${base}/ca/${name}.cer`],
  };
}

export interface TbsConstants {
  readonly signatureAlgorithm: Buffer;
  readonly issuer: Buffer;
  readonly extensions: readonly Buffer[];
}

interface TbsInput {
  /** 16 octets from {@link randomSerial}. */
  readonly serialNumber: Buffer;
  readonly notBefore: Date;
  readonly notAfter: Date;
  readonly subject: Name;
  readonly spki: Buffer;
  readonly subjectKeyIdentifier: Buffer;
  /** Empty: no keyUsage extension. */
  readonly keyUsage: readonly KeyUsage[];
  /** Empty: no subjectAltName extension. */
  readonly subjectAltNames: readonly GeneralName[];
  /** DER of additional Extensions. */
  readonly further?: readonly Buffer[];
}

const VERSION_3 = explicit(0, integer(2));

const SERIAL_OCTETS = 16;
/** Random octets are fetched for many serial numbers at once: the call costs more than a thousand octets. */
const SERIALS_AHEAD = 64;
let ahead = Buffer.alloc(0);
let at = 0;

/**
 * 16 octets from a CSPRNG with 01 as the two leading bits: positive, non-zero, of constant length, 126 random bits. RFC
 * 5280 §4.1.2.2 allows 20 octets; 64 random bits are the usual minimum.
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

/** URLs of revocation data and the CA certificate; empty lists omit the extension. */
export interface PublicationUrls extends AuthorityInfoAccess {
  readonly crl: readonly string[];
}

/** What makes a certificate that of a CA. */
export interface Authority {
  readonly pathLength: number;
  /** DER NameConstraints. */
  readonly nameConstraints: Buffer;
}

/**
 * @param purposes OIDs; empty: no extKeyUsage extension
 * @param authority undefined: end entities
 */
export function constantExtensions(
  authorityKeyIdentifier: Buffer,
  purposes: readonly string[],
  urls: PublicationUrls,
  authority?: Authority,
): Buffer[] {
  const plain = (id: string, value: Buffer): Buffer => sequence(oid(id), octetString(value));
  const critical = (id: string, value: Buffer): Buffer => encodeExtension({ oid: id, critical: true, value });
  const extensions = [
    critical(
      OID.basicConstraints,
      encodeBasicConstraints({ ca: authority !== undefined, pathLength: authority?.pathLength }),
    ),
    ...(authority === undefined ? [] : [critical(OID.nameConstraints, authority.nameConstraints)]),
    plain(OID.authorityKeyIdentifier, encodeAuthorityKeyIdentifier(authorityKeyIdentifier)),
  ];
  if (purposes.length > 0) extensions.push(plain(OID.extKeyUsage, encodeExtKeyUsage(purposes)));
  if (urls.crl.length > 0) extensions.push(plain(OID.cRLDistributionPoints, encodeCrlDistributionPoints(urls.crl)));
  if (urls.ocsp.length + urls.caIssuers.length > 0)
    extensions.push(plain(OID.authorityInfoAccess, encodeAuthorityInfoAccess(urls)));
  return extensions;
}

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
        // RFC 5280 §4.2.1.6: critical if the subject is empty.
        critical: input.subject.rdns.length === 0,
        value: encodeSubjectAltName(input.subjectAltNames),
      }),
    );
  return extensions;
}
