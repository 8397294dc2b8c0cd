/** Names as path validation compares them: RFC 5280 §7.1 with case and white space folded, as OpenSSL does. */
import { type Certificate, verifyCertificateSignature } from './certificate.ts';
import { type AttributeTypeAndValue, isCharacterString, type Name } from './name.ts';

/**
 * One text for each RDN, equal for RDNs that match: string types are ignored, ASCII letters folded, inner white space
 * collapsed and outer removed; the attributes of one RDN are a set. Nothing that stands in a value can pass for a separator.
 */
export function foldedRdns(name: Name): string[] {
  return name.rdns.map((rdn) => JSON.stringify(rdn.map(foldedAttribute).sort()));
}

/** A CA's name is compared with at each request: it is folded once. */
const folded = new WeakMap<Name, string>();

/** The same for a whole name: a key for maps. */
export function foldedName(name: Name): string {
  let text = folded.get(name);
  if (text === undefined) {
    text = JSON.stringify(foldedRdns(name));
    folded.set(name, text);
  }
  return text;
}

/** Whether two names match so: what path validation, and everybody who follows RFC 5280 §7.1, takes for one name. */
export function namesMatch(a: Name, b: Name): boolean {
  return a.der.equals(b.der) || foldedName(a) === foldedName(b);
}

/** Printable ASCII in words of one space between: there is nothing to collapse, and ASCII letters alone have a lower case. */
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

/** Whether a certificate has a CA's name for its issuer (RFC 5280 §7.1), and the CA's signature; the cheap look comes first. */
export async function isIssuedBy(certificate: Certificate, issuer: Certificate): Promise<boolean> {
  return namesMatch(certificate.issuer, issuer.subject) && (await verifyCertificateSignature(certificate, issuer));
}
