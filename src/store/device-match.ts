/**
 * Matches certificates to devices. One hash over all fields of `match` finds a device, so the cost does not depend on
 * the match or the number of devices. A certificate has one hash for each combination of fields that it could match.
 */
import { hash } from 'node:crypto';
import { OID } from '../pki/der/oids.ts';
import { InputError } from '../pki/input-error.ts';
import { type Certificate, fingerprintsOf } from '../pki/x509/certificate.ts';
import { formatGeneralName, type GeneralName, parseGeneralNameText } from '../pki/x509/general-name.ts';
import { attributeValues } from '../pki/x509/name.ts';
import { spkiHash } from '../pki/x509/public-key.ts';
import type { IssuedCertificate } from './certificate-store.ts';

/**
 * Identifies a device's foreign certificate. All given fields must match; `issuer_spki_sha256` or `fingerprint_sha256`
 * is always given.
 */
export interface DeviceMatch {
  /** Hex SHA-256 of the SubjectPublicKeyInfo of the issuer in the validated path. */
  readonly issuer_spki_sha256?: string;
  /** The subject's attribute. */
  readonly serial_number?: string;
  /** The subject's attribute. */
  readonly common_name?: string;
  /** One of its names, as in {@link CertificateRow}. */
  readonly san?: string;
  /** Hex, of the certificate or its ECDSA variant. */
  readonly fingerprint_sha256?: string;
}

export const MATCH_FIELDS = [
  'issuer_spki_sha256',
  'serial_number',
  'common_name',
  'san',
  'fingerprint_sha256',
] as const satisfies readonly (keyof DeviceMatch)[];

/** Maximum names of a certificate; further ones match no device. */
const MAX_NAMES = 64;

type Part = string | undefined;

const keyOf = (issuer: Part, serialNumber: Part, commonName: Part, san: Part): string =>
  hash('sha256', JSON.stringify([issuer ?? null, serialNumber ?? null, commonName ?? null, san ?? null]), 'base64url');

const fingerprintKey = (fingerprint: string): string => `sha256:${fingerprint}`;

export function deviceMatchKey(match: DeviceMatch): string {
  const { issuer_spki_sha256, serial_number, common_name, san, fingerprint_sha256 } = match;
  if (fingerprint_sha256 !== undefined) return fingerprintKey(fingerprint_sha256);
  return keyOf(issuer_spki_sha256, serial_number, common_name, san === undefined ? undefined : comparableSan(san));
}

/** The lookup keys of all matches that a certificate may satisfy; {@link fitsMatch} decides. */
export function certificateMatchKeys({ certificate, issuer }: IssuedCertificate): readonly string[] {
  const facts = factsOf(certificate);
  if (issuer === undefined) return facts.fingerprints.map(fingerprintKey);
  let keys = facts.keys.get(issuer);
  if (keys === undefined) facts.keys.set(issuer, (keys = matchKeys(facts, issuer)));
  return keys;
}

function matchKeys({ fingerprints, serialNumbers, commonNames, sans }: Facts, issuer: Certificate): readonly string[] {
  const keys = fingerprints.map(fingerprintKey);
  const issuerKey = spkiHash(issuer);
  for (const serialNumber of [undefined, ...serialNumbers])
    for (const commonName of [undefined, ...commonNames])
      for (const san of [undefined, ...sans]) keys.push(keyOf(issuerKey, serialNumber, commonName, san));
  return keys;
}

/**
 * Whether a certificate satisfies all fields of a match. A match without an issuer or a fingerprint matches nothing.
 */
export function fitsMatch(match: DeviceMatch, { certificate, issuer }: IssuedCertificate): boolean {
  const { fingerprints, serialNumbers, commonNames, sans } = factsOf(certificate);
  const { issuer_spki_sha256, fingerprint_sha256, serial_number, common_name, san } = match;
  if (issuer_spki_sha256 === undefined && fingerprint_sha256 === undefined) return false;
  return (
    (fingerprint_sha256 === undefined || fingerprints.includes(fingerprint_sha256)) &&
    (issuer_spki_sha256 === undefined || (issuer !== undefined && issuer_spki_sha256 === spkiHash(issuer))) &&
    (serial_number === undefined || serialNumbers.includes(serial_number)) &&
    (common_name === undefined || commonNames.includes(common_name)) &&
    (san === undefined || sans.includes(comparableSan(san)))
  );
}

interface Facts {
  readonly fingerprints: readonly string[];
  readonly serialNumbers: readonly string[];
  readonly commonNames: readonly string[];
  readonly sans: readonly string[];
  /** {@link certificateMatchKeys} by issuer. */
  readonly keys: WeakMap<Certificate, readonly string[]>;
}

const known = new WeakMap<Certificate, Facts>();

function factsOf(certificate: Certificate): Facts {
  let facts = known.get(certificate);
  if (facts === undefined) {
    const { subject, subjectAltNames } = certificate;
    const few = (values: readonly string[]): string[] => [...new Set(values)].slice(0, MAX_NAMES);
    facts = {
      fingerprints: fingerprintsOf(certificate),
      serialNumbers: few(attributeValues(subject, OID.serialNumber)).slice(0, 4),
      commonNames: few(attributeValues(subject, OID.commonName)).slice(0, 4),
      sans: few(subjectAltNames.map(comparable)),
      keys: new WeakMap(),
    };
    known.set(certificate, facts);
  }
  return facts;
}

const comparable = (name: GeneralName): string => comparableSan(formatGeneralName(name));

/** Whether a text has the form of names in records: `DNS:a`, `IP:192.0.2.1`, `upn:a@example.com`, `hardware_module:…`. */
export function isSan(text: string): boolean {
  const [kind, value] = parts(text);
  if (['DNS', 'email', 'URI'].includes(kind)) return /^[\x21-\x7e]+$/.test(value);
  return unlessInvalid(() => parseGeneralNameText(text)) !== undefined;
}

/** A canonical form: lowercase DNS names, normalized addresses. */
function comparableSan(text: string): string {
  const [kind, value] = parts(text);
  if (kind === 'DNS') return `DNS:${value.toLowerCase()}`;
  if (kind === 'email' || kind === 'URI') return text;
  const name = unlessInvalid(() => parseGeneralNameText(text));
  return name === undefined ? text : formatGeneralName(name);
}

function unlessInvalid<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof InputError) return undefined;
    throw error;
  }
}

function parts(text: string): [kind: string, value: string] {
  const colon = text.indexOf(':');
  return [text.slice(0, Math.max(0, colon)), text.slice(colon + 1)];
}
