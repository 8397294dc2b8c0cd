/** Name comparison for path validation: RFC 5280 §7.1 with case and white space folded, as in OpenSSL. */
import { type Certificate, verifyCertificateSignature } from './certificate.ts';
import { type AttributeTypeAndValue, isCharacterString, type Name } from './name.ts';

/**
 * One text per RDN, equal for RDNs that match. Ignores string types and ASCII case, collapses inner white space, trims
 * outer white space, and treats the attributes of an RDN as a set. Separators are unambiguous.
 */
export function foldedRdns(name: Name): string[] {
  return name.rdns.map((rdn) => JSON.stringify(rdn.map(foldedAttribute).sort()));
}

/** A CA's name is compared in each request, so its folded form is cached. */
const folded = new WeakMap<Name, string>();

/** The folded form of a whole name, as a map key. */
export function foldedName(name: Name): string {
  let text = folded.get(name);
  if (text === undefined) {
    text = JSON.stringify(foldedRdns(name));
    folded.set(name, text);
  }
  return text;
}

/** Whether two names match per RFC 5280 §7.1, as in path validation. */
export function namesMatch(a: Name, b: Name): boolean {
  return a.der.equals(b.der) || foldedName(a) === foldedName(b);
}

/** Printable ASCII words with single spaces: nothing to collapse, and only ASCII letters to fold. */
const PLAIN = /^[!-~]+(?: [!-~]+)*$/;

function foldedAttribute({ type, tag, text }: AttributeTypeAndValue): string {
  if (!isCharacterString(tag)) return `${type}${text}`;
  if (PLAIN.test(text)) return `${type}=${text.toLowerCase()}`;
  const value = text
    .replace(/[A-Z]+/g, (letters) => letters.toLowerCase())
    .replace(/[\t\n\v\f\r ]+/g, ' ')
    .replace(/^ | $/g, '');
  return `${type}=${value}`;
}

/** Whether the CA issued the certificate: compares the names (RFC 5280 §7.1), then verifies the signature. */
export async function isIssuedBy(certificate: Certificate, issuer: Certificate): Promise<boolean> {
  return namesMatch(certificate.issuer, issuer.subject) && (await verifyCertificateSignature(certificate, issuer));
}
