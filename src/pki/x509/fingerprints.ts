/** The fingerprints under which one certificate can appear. */
import { hash } from 'node:crypto';

import { DerReader, Tag, bitString, integer, readBigInt, readOid, sequence, unlessMalformed } from '../der/der.ts';
import type { Certificate } from './certificate.ts';
import { ECDSA_ARC } from './signature-algorithms.ts';

/** The orders of the curves P-256, P-384 and P-521 (NIST SP 800-186 §3.2.1): no issuer has a key on another curve. */
const ORDERS: readonly bigint[] = [
  0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n,
  0xffffffffffffffffffffffffffffffffffffffffffffffffc7634d81f4372ddf581a0db248b0a77aecec196accc52973n,
  0x1fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffa51868783bf2f966b7fcc0148f709a5d03bb5c9b8899c47aebb6fb71e91386409n,
];

/**
 * Hex SHA-256 of a certificate and of its ECDSA twins. Anyone can change an ECDSA signature (r, s) to (r, n − s), which is
 * equally valid, so a configured fingerprint names the same certificate in either form.
 *
 * The order n depends on the issuer's key. The function tries each order instead: a form for the wrong order has no valid
 * signature, but it still contains the same tbsCertificate, so a match with it is harmless.
 */
export function fingerprintsOf(certificate: Certificate): readonly string[] {
  const twins = unlessMalformed(() => twinsOf(certificate), []);
  return [certificate.fingerprint, ...twins.map((der) => hash('sha256', der, 'hex'))];
}

function twinsOf({ tbs, signatureAlgorithm, signature }: Certificate): Buffer[] {
  const algorithm = DerReader.of(signatureAlgorithm, 'AlgorithmIdentifier').next(Tag.OID, 'algorithm');
  if (!readOid(algorithm).startsWith(ECDSA_ARC)) return [];
  const reader = DerReader.of(signature, 'ECDSA-Sig-Value');
  const r = reader.next(Tag.INTEGER, 'r').raw;
  const s = readBigInt(reader.next(Tag.INTEGER, 's'), 's');
  return ORDERS.filter((order) => s > 0n && s < order).map((order) =>
    sequence(tbs, signatureAlgorithm, bitString(sequence(r, integer(order - s)))),
  );
}
