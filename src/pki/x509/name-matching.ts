/** Names as path validation compares them: RFC 5280 §7.1 with case and white space folded, as OpenSSL does. */
import type { AttributeTypeAndValue, Name } from './name.ts';

/**
 * One text for each RDN, equal for RDNs that match: string types are ignored, ASCII letters folded, inner white space
 * collapsed and outer removed; the attributes of one RDN are a set.
 */
export function foldedRdns(name: Name): string[] {
  return name.rdns.map((rdn) => rdn.map(foldedAttribute).sort().join('\u0001'));
}

/** The same for a whole name: a key for maps. */
export function foldedName(name: Name): string {
  return foldedRdns(name).join('\u0002');
}

function foldedAttribute({ type, text }: AttributeTypeAndValue): string {
  const folded = text
    .replace(/[A-Z]+/g, (letters) => letters.toLowerCase())
    .replace(/[\t\n\v\f\r ]+/g, ' ')
    .replace(/^ | $/g, '');
  return `${type}=${folded}`;
}
