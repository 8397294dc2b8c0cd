import { oid, sequence, setOf, Tag, tlv } from '../der/der.ts';
import { parseName, type AttributeTypeAndValue, type Name } from './name.ts';

/** String types that RFC 5280 §4.1.2.4 keeps for names of old; new ones are UTF8String. */
const OUTDATED: ReadonlySet<number> = new Set([Tag.TELETEX_STRING, Tag.BMP_STRING, Tag.UNIVERSAL_STRING]);

const isOutdated = ({ tag }: AttributeTypeAndValue): boolean => OUTDATED.has(tag);

/** A name as a new certificate has it: the same, with UTF8String in place of outdated string types. */
export function issuedName(name: Name): Name {
  if (!name.rdns.some((rdn) => rdn.some(isOutdated))) return name;
  const encode = (attribute: AttributeTypeAndValue): Buffer =>
    sequence(
      oid(attribute.type),
      isOutdated(attribute) ? tlv(Tag.UTF8_STRING, Buffer.from(attribute.text, 'utf8')) : attribute.value,
    );
  return parseName(sequence(...name.rdns.map((rdn) => setOf(...rdn.map(encode)))));
}
