/** certificatePolicies (RFC 5280 §4.2.1.4) with the CPS URI as the only qualifier. */
import { children, DerError, DerReader, parseDer, readOid, readString, Tag, oid, sequence, tlv } from '../der/der.ts';
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
      cps === undefined ? sequence(oid(dotted)) : sequence(oid(dotted), sequence(cpsQualifier(cps))),
    ),
  );
}

function cpsQualifier(uri: string): Buffer {
  return sequence(oid(OID.cpsQualifier), tlv(Tag.IA5_STRING, Buffer.from(uri, 'ascii')));
}

/** Ignores qualifiers other than the CPS. @throws DerError */
export function parseCertificatePolicies(value: Buffer): CertificatePolicy[] {
  const policies = children(parseDer(value, Tag.SEQUENCE, 'CertificatePolicies').value, 'PolicyInformation');
  if (policies.length === 0) throw new DerError('CertificatePolicies: empty');
  return policies.map(({ tag, value: content }) => {
    if (tag !== Tag.SEQUENCE) throw new DerError('PolicyInformation: unexpected tag');
    const reader = new DerReader(content, 'PolicyInformation');
    const identifier = readOid(reader.next(Tag.OID, 'policyIdentifier'), 'policyIdentifier');
    const qualifiers = reader.optional(Tag.SEQUENCE, 'policyQualifiers');
    reader.end();
    const cps = qualifiers && children(qualifiers.value, 'PolicyQualifierInfo').map(readCps).find(Boolean);
    return { oid: identifier, cps };
  });
}

function readCps({ raw }: { readonly raw: Buffer }): string | undefined {
  const reader = DerReader.of(raw, 'PolicyQualifierInfo');
  const type = readOid(reader.next(Tag.OID, 'policyQualifierId'), 'policyQualifierId');
  const qualifier = reader.next(undefined, 'qualifier');
  reader.end();
  return type === OID.cpsQualifier && qualifier.tag === Tag.IA5_STRING ? readString(qualifier, 'cPSuri') : undefined;
}
