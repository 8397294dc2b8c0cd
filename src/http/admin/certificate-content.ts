import { hash } from 'node:crypto';
import { type Static, Type } from '@fastify/type-provider-typebox';
import { parseDer, readAlgorithm } from '../../pki/der/der.ts';
import { oidName } from '../../pki/der/oids.ts';
import { readableCertificates } from '../../pki/x509/certificate.ts';
import { extensionText } from '../../pki/x509/extension-text.ts';
import { formatName } from '../../pki/x509/name.ts';
import { formatTimestamp } from '../../timestamp.ts';
import { Bool, Text, Texts, Timestamp, titled } from './schemas.ts';

export const CertificateContent = titled('CertificateContent', 'What a certificate contains.', {
  serial: Text('Lower-case hex.'),
  subject: Text('RFC 4514.'),
  issuer: Text('RFC 4514.'),
  not_after: Timestamp(),
  key_type: Text('`ec:P-256`, `rsa:2048`, `ed25519`, …'),
  spki_sha256: Text('SHA-256 of the SubjectPublicKeyInfo, hex.'),
  signature_algorithm: Text('`ecdsaWithSHA256`, …'),
  extensions: Type.Array(
    Type.Object({
      name: Text('Its name in RFC 5280, or its OID.'),
      critical: Bool('As encoded.'),
      values: Texts('For people; hex if unknown.'),
    }),
  ),
});

/** The certificates that can be read. */
export function certificateContents(ders: readonly Buffer[]): Static<typeof CertificateContent>[] {
  return readableCertificates(ders).map((certificate) => {
    const { serialNumber, subject, issuer, notAfter, publicKey, spki, signatureAlgorithm, extensions } = certificate;
    return {
      serial: serialNumber,
      subject: formatName(subject),
      issuer: formatName(issuer),
      not_after: formatTimestamp(notAfter.getTime()),
      key_type: publicKey.keyType,
      spki_sha256: hash('sha256', spki, 'hex'),
      signature_algorithm: oidName(readAlgorithm(parseDer(signatureAlgorithm)).oid),
      extensions: extensions.map((extension) => ({
        name: oidName(extension.oid),
        critical: extension.critical,
        values: extensionText(extension),
      })),
    };
  });
}
