/**
 * Size limits for certificates from outside. They are checked before parsing, so they bound the cost of parsing,
 * comparing and formatting.
 */
import { DerReader, Tag, children, contextConstructed, oid, parseDer, type DerElement } from '../der/der.ts';
import { OID } from '../der/oids.ts';

export const CERTIFICATE_BOUNDS = {
  /** Octets of the certificate; ML-DSA-87 needs 8 KiB without names. */
  certificate: 24 * 1024,
  /** Octets of the subject, and of the issuer; as for a CSR's subject. */
  name: 4096,
  attributes: 64,
  extensions: 64,
  subjectAltNames: 1000,
  /** Octets of any other extension that is parsed. */
  extension: 4096,
} as const;

const encodedOid = (dotted: string): string => oid(dotted).toString('latin1');

const SUBJECT_ALT_NAME = encodedOid(OID.subjectAltName);
const PARSED: ReadonlySet<string> = new Set(
  [OID.basicConstraints, OID.keyUsage, OID.extKeyUsage, OID.subjectKeyIdentifier, OID.authorityKeyIdentifier].map(
    encodedOid,
  ),
);

/**
 * Why a certificate exceeds {@link CERTIFICATE_BOUNDS}, or undefined.
 * @throws DerError if the outline of the certificate is malformed
 */
export function boundsProblem(der: Buffer): string | undefined {
  const bounds = CERTIFICATE_BOUNDS;
  if (der.length > bounds.certificate) return `it has ${der.length} octets, more than ${bounds.certificate}`;
  const tbs = DerReader.of(der, 'Certificate').enter(Tag.SEQUENCE, 'tbsCertificate');
  tbs.optional(contextConstructed(0), 'version');
  tbs.next(Tag.INTEGER, 'serialNumber');
  tbs.next(Tag.SEQUENCE, 'signature');
  const issuer = tbs.next(Tag.SEQUENCE, 'issuer');
  tbs.next(Tag.SEQUENCE, 'validity');
  const subject = tbs.next(Tag.SEQUENCE, 'subject');
  const problem = nameProblem('issuer', issuer) ?? nameProblem('subject', subject);
  if (problem !== undefined) return problem;
  tbs.next(Tag.SEQUENCE, 'subjectPublicKeyInfo');
  while (!tbs.done) {
    const element = tbs.next();
    if (element.tag === contextConstructed(3)) return extensionsProblem(element);
  }
  return undefined;
}

function nameProblem(which: string, name: DerElement): string | undefined {
  const { name: octets, attributes } = CERTIFICATE_BOUNDS;
  if (name.raw.length > octets) return `its ${which} has ${name.raw.length} octets, more than ${octets}`;
  const reader = new DerReader(name.value, which);
  for (let seen = 0; !reader.done;) {
    seen += children(reader.next().value, which).length;
    if (seen > attributes) return `its ${which} has more than ${attributes} attributes`;
  }
  return undefined;
}

function extensionsProblem(list: DerElement): string | undefined {
  const { extensions, subjectAltNames, extension: octets } = CERTIFICATE_BOUNDS;
  const reader = new DerReader(list.value, 'extensions').enter();
  for (let seen = 1; !reader.done; seen++) {
    if (seen > extensions) return `it has more than ${extensions} extensions`;
    const extension = reader.enter(Tag.SEQUENCE, 'extension');
    const type = extension.next(Tag.OID, 'extnID').raw.toString('latin1');
    extension.optional(Tag.BOOLEAN);
    const { value } = extension.next(Tag.OCTET_STRING, 'extnValue');
    if (PARSED.has(type) && value.length > octets)
      return `an extension has ${value.length} octets, more than ${octets}`;
    if (type === SUBJECT_ALT_NAME && names(value) > subjectAltNames)
      return `it has more than ${subjectAltNames} subject alternative names`;
  }
  return undefined;
}

const names = (value: Buffer): number =>
  children(parseDer(value, Tag.SEQUENCE, 'subjectAltName').value, 'subjectAltName').length;
