/** certificatePolicies (RFC 5280 §4.2.1.4) with the CPS URI as the only qualifier. */
import {
  children,
  DerError,
  ia5String,
  oid,
  parseDer,
  readFields,
  readString,
  sequence,
  Tag,
  type DerElement,
} from '../der/der.ts';
import { OID } from '../der/oids.ts';

export interface CertificatePolicy {
  readonly oid: string;
  /** URI of the certification practice statement. */
  readonly cps?: string | undefined;
}

/** @param policies at least one; `cps` is ASCII */
export function encodeCertificatePolicies(policies: readonly CertificatePolicy[]): Buffer {
  return sequence(
    ...policies.map(({ oid: dotted, cps }) =>
      cps === undefined
        ? sequence(oid(dotted))
        : sequence(oid(dotted), sequence(sequence(oid(OID.cpsQualifier), ia5String(cps)))),
    ),
  );
}

/** Ignores qualifiers other than the CPS. @throws DerError */
export function parseCertificatePolicies(value: Buffer): CertificatePolicy[] {
  const policies = children(parseDer(value, Tag.SEQUENCE, 'CertificatePolicies').value, 'PolicyInformation');
  if (policies.length === 0) throw new DerError('CertificatePolicies: empty');
  return policies.map((policy) =>
    readFields(policy, 'PolicyInformation', (fields) => {
      const identifier = fields.oid('policyIdentifier');
      const qualifiers = fields.optional(Tag.SEQUENCE, 'policyQualifiers');
      const cps = qualifiers && children(qualifiers.value, 'PolicyQualifierInfo').map(readCps).find(Boolean);
      return { oid: identifier, cps };
    }),
  );
}

function readCps(element: DerElement): string | undefined {
  return readFields(element, 'PolicyQualifierInfo', (fields) => {
    const isCps = fields.oid('policyQualifierId') === OID.cpsQualifier;
    const qualifier = fields.next(undefined, 'qualifier');
    return isCps && qualifier.tag === Tag.IA5_STRING ? readString(qualifier, 'cPSuri') : undefined;
  });
}
