/** How a listener names the CAs whose certificates it hopes for, without OpenSSL judging by them. */
import { bitString, integer, oid, sequence, time } from '../pki/der/der.ts';
import { encodePem } from '../pki/der/pem.ts';
import { parsePemCertificates } from '../pki/x509/certificate.ts';

/** An X25519 key of zeros: no certificate can claim to be signed with it, so OpenSSL takes it for nobody's issuer. */
const NO_SIGNER = sequence(sequence(oid('1.3.101.110')), bitString(Buffer.alloc(32)));
const ED25519 = sequence(oid('1.3.101.112'));
const NO_SIGNATURE = bitString(Buffer.alloc(64));
const NEVER = sequence(time(new Date(0)), time(new Date(0)));

/**
 * Certificates that are nothing but the subjects of others. Node has one list, `ca`, for whom the handshake trusts and for
 * what stands in CertificateRequest (RFC 8446 §4.2.4, RFC 5246 §7.4.4), by which some clients choose their certificate.
 *
 * @param certificates PEM
 * @returns PEM, one for each distinct subject
 */
export function authorityNames(certificates: readonly string[]): string[] {
  const subjects = parsePemCertificates(certificates.join('\n')).map(({ subject }) => subject.der);
  const distinct = new Map(subjects.map((der) => [der.toString('hex'), der]));
  return [...distinct.values()].map((subject) => {
    const tbs = sequence(integer(1), ED25519, subject, NEVER, subject, NO_SIGNER);
    return encodePem('CERTIFICATE', sequence(tbs, ED25519, NO_SIGNATURE));
  });
}
