/** Creates a CA certificate (self-signed or signed by another CA), or a request for one. */
import { explicit, integer, oid, sequence, setOf, time } from '../../pki/der/der.ts';
import { OID } from '../../pki/der/oids.ts';
import type { Certificate } from '../../pki/x509/certificate.ts';
import {
  encodeAuthorityKeyIdentifier,
  encodeBasicConstraints,
  encodeExtensions,
  encodeKeyUsage,
  encodeSubjectKeyIdentifier,
  type Extension,
} from '../../pki/x509/extensions.ts';
import type { Name } from '../../pki/x509/name.ts';
import { parsePublicKey, subjectKeyIdentifier } from '../../pki/x509/public-key.ts';
import type { Signer } from '../driver.ts';
import { CA_KEY_USAGE } from './key-usage.ts';
import { VerifiedSigner } from './signing.ts';
import { randomSerial } from './tbs.ts';

const DAY = 86_400_000;

export interface NewCa {
  readonly subject: Name;
  readonly spki: Buffer;
  readonly days: number;
  readonly now: number;
  /** Maximum CAs below it; undefined: unlimited. */
  readonly pathLength?: number | undefined;
  readonly nameConstraints?: Buffer | undefined;
}

/** DER of a self-signed CA certificate (RFC 5280 §4). */
export const selfSignedRoot = (signer: Signer, subject: Name, days: number, now: number): Promise<Buffer> =>
  caCertificate(signer, undefined, { subject, spki: signer.spki, days, now });

/**
 * DER of a CA certificate (RFC 5280 §4). It expires with the issuer at the latest.
 * @param signer the issuer's key
 * @param issuer undefined: self-signed
 */
export async function caCertificate(signer: Signer, issuer: Certificate | undefined, ca: NewCa): Promise<Buffer> {
  const notBefore = Math.floor(ca.now / 1000) * 1000;
  // notBefore and notAfter are inclusive (RFC 5280 §4.1.2.5).
  const notAfter = Math.min(notBefore + ca.days * DAY - 1000, issuer?.notAfter.getTime() ?? Infinity);
  const extensions = caExtensions(ca);
  if (issuer?.subjectKeyIdentifier !== undefined)
    extensions.push(plain(OID.authorityKeyIdentifier, encodeAuthorityKeyIdentifier(issuer.subjectKeyIdentifier)));
  const tbs = sequence(
    explicit(0, integer(2)),
    integer(randomSerial()),
    signer.signatureAlgorithm,
    (issuer?.subject ?? ca.subject).der,
    sequence(time(new Date(notBefore)), time(new Date(notAfter))),
    ca.subject.der,
    ca.spki,
    explicit(3, encodeExtensions(extensions)),
  );
  return signed(signer, tbs);
}

/** DER of a PKCS #10 request for a CA certificate (RFC 2986), with CA extensions. */
export async function subordinateRequest(signer: Signer, subject: Name): Promise<Buffer> {
  const extensions = caExtensions(signer);
  const extensionRequest = sequence(oid(OID.extensionRequest), setOf(encodeExtensions(extensions)));
  return signed(signer, sequence(integer(0), subject.der, signer.spki, explicit(0, extensionRequest)));
}

const plain = (type: string, value: Buffer): Extension => ({ oid: type, critical: false, value });
const critical = (type: string, value: Buffer): Extension => ({ oid: type, critical: true, value });

type ExtensionInput = Pick<NewCa, 'spki' | 'pathLength' | 'nameConstraints'>;

function caExtensions({ spki, pathLength, nameConstraints }: ExtensionInput): Extension[] {
  return [
    critical(OID.basicConstraints, encodeBasicConstraints({ ca: true, pathLength })),
    critical(OID.keyUsage, encodeKeyUsage(CA_KEY_USAGE)),
    plain(OID.subjectKeyIdentifier, encodeSubjectKeyIdentifier(subjectKeyIdentifier(spki))),
    ...(nameConstraints === undefined ? [] : [critical(OID.nameConstraints, nameConstraints)]),
  ];
}

const signed = (signer: Signer, content: Buffer): Promise<Buffer> =>
  new VerifiedSigner(signer, parsePublicKey(signer.spki)).sign(content, 'the CA certificate');
