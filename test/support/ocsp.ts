/** OCSP requests for tests (RFC 6960 §4.1), built apart from the parser under test. */
import { createHash } from 'node:crypto';
import { explicit, integer, octetString, oid, sequence } from '../../src/pki/der/der.ts';
import { OID } from '../../src/pki/der/oids.ts';
import type { Certificate } from '../../src/pki/x509/certificate.ts';
import { encodeExtensions } from '../../src/pki/x509/extensions.ts';
import { subjectKeyIdentifier } from '../../src/pki/x509/public-key.ts';

/**
 * A DER OCSPRequest about certificates of this CA.
 * @param serials lower-case hex
 */
export function ocspRequest(
  { certificate }: { readonly certificate: Pick<Certificate, 'subject' | 'spki'> },
  serials: readonly string[],
  nonce?: Buffer,
): Buffer {
  const { subject, spki } = certificate;
  const issuer = [createHash('sha1').update(subject.der).digest(), subjectKeyIdentifier(spki)].map((hash) =>
    octetString(hash),
  );
  const requests = serials.map((serial) =>
    sequence(sequence(sequence(oid(OID.sha1)), ...issuer, integer(Buffer.from(serial, 'hex')))),
  );
  const extension = (value: Buffer) => [{ oid: OID.ocspNonce, critical: false, value: octetString(value) }];
  const extensions = nonce === undefined ? [] : [explicit(2, encodeExtensions(extension(nonce)))];
  return sequence(sequence(sequence(...requests), ...extensions));
}
