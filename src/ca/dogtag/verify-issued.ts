/** Compares what a remote CA issued with the request: another requester's certificate is never delivered. */
import { type Certificate, isIssuedBy } from '../../pki/x509/certificate.ts';
import { formatGeneralName, sameGeneralNames, type GeneralName } from '../../pki/x509/general-name.ts';
import { namesMatch, formatName, namesEqual } from '../../pki/x509/name.ts';
import { oidByName, oidName } from '../../pki/der/oids.ts';
import type { KeyUsage } from '../../pki/x509/extensions.ts';
import type { IssuanceRequest } from '../driver.ts';
import { keyUsageFor } from '../local/key-usage.ts';
import { isKey } from '../remote/issued.ts';

/** Requirements of `[ca.profile]` in addition to names and keys. */
export interface AskedProfile {
  /** Empty: any usage for end entities. */
  readonly key_usage: readonly KeyUsage[];
  /** Names or OIDs; empty: any purpose. */
  readonly extended_key_usage: readonly string[];
  readonly max_validity_days: number;
}

const DAY = 86_400_000;
/** A CA may count days by a calendar with daylight saving time. */
const CALENDAR_SLACK = 3_600_000;

/** Why the certificate is not the requested one or not from this CA; undefined if it is. */
export async function issuedProblem(
  certificate: Certificate,
  wanted: Pick<IssuanceRequest, 'spki' | 'subject' | 'subjectAltNames'>,
  asked: AskedProfile,
  issuer: Certificate,
): Promise<string | undefined> {
  if (!isKey(certificate, wanted.spki)) return 'it certifies another public key';
  if (!namesEqual(certificate.subject, wanted.subject))
    return `its subject is "${formatName(certificate.subject)}", not "${formatName(wanted.subject)}"`;
  if (!sameGeneralNames(certificate.subjectAltNames, wanted.subjectAltNames))
    return `its subjectAltName is ${list(certificate.subjectAltNames)}, not ${list(wanted.subjectAltNames)}`;
  if (certificate.isCa) return 'it is a CA certificate';
  if (!namesMatch(certificate.issuer, issuer.subject)) return `"${formatName(certificate.issuer)}" issued it`;
  if (!(await isIssuedBy(certificate, issuer))) return 'this CA did not sign it';
  return (
    keyUsageProblem(certificate, asked) ?? purposeProblem(certificate, asked) ?? validityProblem(certificate, asked)
  );
}

/** Exactly the requested usages that this key type can have; never those of a CA. */
function keyUsageProblem({ keyUsage, publicKey }: Certificate, { key_usage }: AskedProfile): string | undefined {
  const issued = keyUsage ?? [];
  const asked = (usage: KeyUsage): boolean =>
    key_usage.length === 0 ? usage !== 'keyCertSign' && usage !== 'cRLSign' : key_usage.includes(usage);
  const absent = keyUsage === undefined && key_usage.length > 0;
  if (!absent && issued.every(asked) && keyUsageFor(publicKey, key_usage).every((usage) => issued.includes(usage)))
    return undefined;
  const wanted = key_usage.length === 0 ? "an end entity's" : `[${key_usage.join(', ')}]`;
  return `its keyUsage is ${keyUsage === undefined ? 'absent' : `[${issued.join(', ')}]`}, not ${wanted} (ca.profile.key_usage)`;
}

/** Exactly the requested purposes; without the extension a certificate is valid for all purposes. */
function purposeProblem({ extKeyUsage }: Certificate, { extended_key_usage }: AskedProfile): string | undefined {
  if (extended_key_usage.length === 0) return undefined;
  const asked = new Set(extended_key_usage.map((purpose) => oidByName(purpose) ?? purpose));
  if (
    extKeyUsage !== undefined &&
    asked.size === new Set(extKeyUsage).size &&
    extKeyUsage.every((purpose) => asked.has(purpose))
  )
    return undefined;
  const issued = extKeyUsage === undefined ? 'absent' : `[${extKeyUsage.map(oidName).join(', ')}]`;
  return `its extKeyUsage is ${issued}, not [${extended_key_usage.join(', ')}] (ca.profile.extended_key_usage)`;
}

function validityProblem(
  { notBefore, notAfter }: Certificate,
  { max_validity_days }: AskedProfile,
): string | undefined {
  const validity = notAfter.getTime() - notBefore.getTime();
  if (validity > 0 && validity <= max_validity_days * DAY + CALENDAR_SLACK) return undefined;
  return `it is valid from ${notBefore.toISOString()} to ${notAfter.toISOString()}, beyond ca.profile.max_validity_days (${max_validity_days})`;
}

const list = (names: readonly GeneralName[]): string => `[${names.map(formatGeneralName).join(', ')}]`;
