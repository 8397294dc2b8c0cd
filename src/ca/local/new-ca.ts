/** The first certificate of a new CA: a self-signed root, or a request to the CA above. */
import { bitString, explicit, integer, oid, sequence, setOf, time } from '../../pki/der/der.ts';
import {
  encodeBasicConstraints,
  encodeExtensions,
  encodeKeyUsage,
  encodeSubjectKeyIdentifier,
  type Extension,
} from '../../pki/x509/extensions.ts';
import type { Name } from '../../pki/x509/name.ts';
import { OID } from '../../pki/der/oids.ts';
import { subjectKeyIdentifier } from '../../pki/x509/public-key.ts';
import type { Signer } from '../driver.ts';
import { randomSerial } from './tbs.ts';

const DAY = 86_400_000;

/**
 * DER of a self-signed CA certificate (RFC 5280 §4).
 * @param now milliseconds since the epoch
 */
export async function selfSignedRoot(signer: Signer, subject: Name, days: number, now: number): Promise<Buffer> {
  const notBefore = Math.floor(now / 1000) * 1000;
  const tbs = sequence(
    explicit(0, integer(2)),
    integer(randomSerial()),
    signer.signatureAlgorithm,
    subject.der,
    // both ends belong to the period (RFC 5280 §4.1.2.5)
    sequence(time(new Date(notBefore)), time(new Date(notBefore + days * DAY - 1000))),
    subject.der,
    signer.spki,
    explicit(3, encodeExtensions(caExtensions(signer.spki))),
  );
  return signed(signer, tbs);
}

/** DER of a PKCS #10 request for a CA certificate (RFC 2986), which asks for what a CA needs. */
export async function subordinateRequest(signer: Signer, subject: Name): Promise<Buffer> {
  const extensionRequest = sequence(oid(OID.extensionRequest), setOf(encodeExtensions(caExtensions(signer.spki))));
  return signed(signer, sequence(integer(0), subject.der, signer.spki, explicit(0, extensionRequest)));
}

/** digitalSignature beside the signing of certificates and CRLs: a CA may answer OCSP with its own key. */
function caExtensions(spki: Buffer): Extension[] {
  return [
    {
      oid: OID.basicConstraints,
      critical: true,
      value: encodeBasicConstraints({ ca: true, pathLength: undefined }),
    },
    { oid: OID.keyUsage, critical: true, value: encodeKeyUsage(['digitalSignature', 'keyCertSign', 'cRLSign']) },
    {
      oid: OID.subjectKeyIdentifier,
      critical: false,
      value: encodeSubjectKeyIdentifier(subjectKeyIdentifier(spki)),
    },
  ];
}

async function signed(signer: Signer, content: Buffer): Promise<Buffer> {
  return sequence(content, signer.signatureAlgorithm, bitString(await signer.sign(content)));
}
