/** Certificate revocation lists v2 (RFC 5280 §5), to be signed. */
import { CRL_REASONS, type CrlReason } from './crl-reasons.ts';
import { Tag, explicit, generalizedTime, integer, sequence, time, tlv } from '../der/der.ts';
import { encodeAuthorityKeyIdentifier, encodeExtension, encodeExtensions, type Extension } from './extensions.ts';
import { OID } from '../der/oids.ts';

export interface CrlEntry {
  /** Lower-case hex. */
  readonly serialNumber: string;
  readonly revocationDate: Date;
  readonly reason: CrlReason;
  readonly invalidityDate: Date | undefined;
}

export interface CrlInput {
  /** DER AlgorithmIdentifier of the signature to come. */
  readonly signatureAlgorithm: Buffer;
  /** DER Name: the CA's subject, byte for byte. */
  readonly issuer: Buffer;
  readonly thisUpdate: Date;
  readonly nextUpdate: Date;
  readonly authorityKeyIdentifier: Buffer;
  /** Higher than that of every list before (RFC 5280 §5.2.3). */
  readonly number: number;
  /** DER of {@link encodeCrlEntry}, any number of entries in each buffer. */
  readonly entries: readonly Buffer[];
}

/** ENUMERATED CRLReason. */
export const encodeCrlReason = (reason: CrlReason): Buffer => tlv(Tag.ENUMERATED, Uint8Array.of(CRL_REASONS[reason]));

/** DER of one element of revokedCertificates. The reason `unspecified` is left out, as RFC 5280 §5.3.1 wants it. */
export function encodeCrlEntry({ serialNumber, revocationDate, reason, invalidityDate }: CrlEntry): Buffer {
  const extensions: Extension[] = [];
  if (reason !== 'unspecified')
    extensions.push({ oid: OID.cRLReason, critical: false, value: encodeCrlReason(reason) });
  if (invalidityDate !== undefined)
    extensions.push({ oid: OID.invalidityDate, critical: false, value: generalizedTime(invalidityDate) });
  const serial = integer(Buffer.from(serialNumber, 'hex'));
  return extensions.length === 0
    ? sequence(serial, time(revocationDate))
    : sequence(serial, time(revocationDate), encodeExtensions(extensions));
}

/** DER TBSCertList. Without entries the list of them is absent (RFC 5280 §5.1.2.6). */
export function buildTbsCertList(input: CrlInput): Buffer {
  const extensions = sequence(
    encodeExtension({
      oid: OID.authorityKeyIdentifier,
      critical: false,
      value: encodeAuthorityKeyIdentifier(input.authorityKeyIdentifier),
    }),
    encodeExtension({ oid: OID.cRLNumber, critical: false, value: integer(input.number) }),
  );
  return sequence(
    integer(1),
    input.signatureAlgorithm,
    input.issuer,
    time(input.thisUpdate),
    time(input.nextUpdate),
    ...(input.entries.some(({ length }) => length > 0) ? [sequence(...input.entries)] : []),
    explicit(0, extensions),
  );
}
