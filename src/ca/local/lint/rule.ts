import type { Certificate, TbsFields } from '../../../pki/x509/certificate.ts';
import { findExtension } from '../../../pki/x509/extensions.ts';
import type { PublicKeyInfo } from '../../../pki/x509/public-key.ts';

/** A TBSCertificate as it would be signed, parsed again from its bytes, and what it is held against. */
export interface LintSubject {
  readonly tbs: TbsFields;
  readonly publicKey: PublicKeyInfo;
  readonly issuer: Certificate;
  /** DER AlgorithmIdentifier that the finished certificate carries outside of the signed part. */
  readonly signatureAlgorithm: Buffer;
  readonly maxValidityDays: number;
  /** The profile's own extensions by OID: whether each is critical. */
  readonly further?: ReadonlyMap<string, boolean>;
}

/** One requirement on a certificate. */
export interface LintRule {
  readonly name: string;
  /** Where it is from. */
  readonly source: string;
  /** Whose fault a finding is: what the client asked for (400), or this CA's doing or set-up (500). */
  readonly blames: 'request' | 'ca';
  /** What is wrong, or undefined. May throw DerError on content that does not parse. */
  check(subject: LintSubject): string | undefined;
}

/** The parsed value of an extension of the certificate, or undefined where it is absent. */
export function extensionValue<T>(subject: LintSubject, oid: string, parse: (value: Buffer) => T): T | undefined {
  const extension = findExtension(subject.tbs.extensions, oid);
  return extension && parse(extension.value);
}
