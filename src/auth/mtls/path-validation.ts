/**
 * Certification path validation (RFC 5280 §6.1): rules for each certificate and for the whole path; {@link
 * ./path-building.ts} finds paths.
 *
 * Rejects what it does not implement: policyConstraints (other policy processing is irrelevant, as every policy is
 * acceptable) and every critical extension that is not listed below.
 */
import { type Certificate, isAnchor } from '../../pki/x509/certificate.ts';
import { DerError } from '../../pki/der/der.ts';
import { findExtension } from '../../pki/x509/extensions.ts';
import { namesMatch } from '../../pki/x509/name.ts';
import { nameConstraintProblem, parseNameConstraints } from '../../pki/x509/name-constraints.ts';
import { OID } from '../../pki/der/oids.ts';
import { publicKeyProblem, type PublicKeyInfo } from '../../pki/x509/public-key.ts';

/** Critical extensions that are processed, or irrelevant if every policy is acceptable. */
const PROCESSED: ReadonlySet<string> = new Set([
  OID.basicConstraints,
  OID.keyUsage,
  OID.extKeyUsage,
  OID.subjectAltName,
  OID.nameConstraints,
  OID.subjectKeyIdentifier,
  OID.authorityKeyIdentifier,
  OID.cRLDistributionPoints,
  OID.certificatePolicies,
  OID.policyMappings,
  OID.inhibitAnyPolicy,
]);

/**
 * An unprocessed critical extension, if any (RFC 5280 §4.2). policyConstraints always counts, since §4.2.1.11 requires
 * it to be critical, and ignoring it would drop a CA's restriction.
 */
export function unprocessedCriticalExtension(certificate: Certificate): string | undefined {
  return certificate.extensions.find(
    ({ oid, critical }) => (critical && !PROCESSED.has(oid)) || oid === OID.policyConstraints,
  )?.oid;
}

/** Issuer and subject are the same name (RFC 5280 §6.1). */
export function isSelfIssued(certificate: Certificate): boolean {
  return namesMatch(certificate.issuer, certificate.subject);
}

/** Whether `at` is within notBefore … notAfter, inclusive (RFC 5280 §4.1.2.5). */
export function isValidAt(certificate: Certificate, at: number): boolean {
  // notAfter includes its whole second.
  return at >= certificate.notBefore.getTime() && at < certificate.notAfter.getTime() + 1000;
}

/** One of the purposes, or no restriction (RFC 5280 §4.2.1.12). */
export function allowsPurpose({ extKeyUsage }: Certificate, purposes: readonly string[]): boolean {
  return (
    extKeyUsage === undefined ||
    extKeyUsage.includes(OID.anyExtendedKeyUsage) ||
    purposes.some((purpose) => extKeyUsage.includes(purpose))
  );
}

/** Why the key cannot be trusted: too weak, or of unknown strength. */
export function keyProblem(key: PublicKeyInfo): string | undefined {
  // Foreign certificates, including roots, use the exponent 3, which is safe with strict verification.
  const problem = publicKeyProblem(key, 3n);
  return problem && `the public key ${problem.reason}`;
}

interface IssuerRole {
  /** The certificate is a trust anchor: legacy version 1 roots are accepted. */
  readonly anchor: boolean;
  /** Certificates between it and the end entity that are not self-issued (counted by pathLenConstraint). */
  readonly below: number;
}

/** Why a certificate may not issue at its position in a path, or undefined. Ignores time, names and signatures. */
export function issuerProblem(certificate: Certificate, { anchor, below }: IssuerRole): string | undefined {
  if (!(anchor ? isAnchor(certificate) : certificate.isCa)) return 'is not a CA certificate';
  if (certificate.keyUsage !== undefined && !certificate.keyUsage.includes('keyCertSign'))
    return 'has a keyUsage without keyCertSign';
  if (certificate.pathLength !== undefined && below > certificate.pathLength)
    return 'has more CA certificates below it than its pathLenConstraint allows';
  if (!allowsPurpose(certificate, [OID.clientAuth])) return 'has an extKeyUsage without clientAuth';
  const critical = unprocessedCriticalExtension(certificate);
  if (critical !== undefined) return `has a critical extension ${critical} that is not supported`;
  return keyProblem(certificate.publicKey);
}

/**
 * Why the path violates name constraints (RFC 5280 §6.1.3 b–c, §6.1.4 g), or undefined. Includes those of the trust
 * anchor.
 * @param path end entity first, trust anchor last
 * @param ofIssuer the path begins with a CA certificate instead of an end entity
 */
export function pathNamesProblem(path: readonly Certificate[], ofIssuer = false): string | undefined {
  for (const [below, issuer] of path.slice(1).entries()) {
    const extension = findExtension(issuer.extensions, OID.nameConstraints);
    if (extension === undefined) continue;
    try {
      const constraints = parseNameConstraints(extension.value);
      for (const [position, certificate] of path.slice(0, below + 1).entries()) {
        const endEntity = position === 0 && !ofIssuer;
        if (!endEntity && isSelfIssued(certificate)) continue;
        const problem = nameConstraintProblem(constraints, certificate.subject, certificate.subjectAltNames, endEntity);
        if (problem !== undefined) return problem;
      }
    } catch (error) {
      if (error instanceof DerError) return error.message;
      throw error;
    }
  }
  return undefined;
}
