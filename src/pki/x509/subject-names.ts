/** Subject values that software reads as a host name, an address or a mailbox, and subjects that look the same. */
import { isIP } from 'node:net';
import { OID } from '../der/oids.ts';
import { ipAddress, type GeneralName } from './general-name.ts';
import { isCharacterString, perName, type AttributeTypeAndValue, type Name } from './name.ts';

/** Full stops of other scripts (UTS #46 §2.3) and lookalikes (UTS #39), after NFKC. */
const FULL_STOPS = /[\u06d4\u0701\u0702\u3002\ua4f8\ua60e\u{10a50}\u{1d16d}]/gu;

/** The text as people and lenient software read it: NFKC, trimmed, with one kind of full stop. */
const normalized = (text: string): string => text.normalize('NFKC').trim().replace(FULL_STOPS, '.');

/** Characters of host names in any script. */
const HOST_NAME = /^[\p{L}\p{M}\p{N}\-_.*]*$/u;

/** The subjectAltName equivalent of a subject attribute; undefined for a value that is not read as one. */
export function asAltName({ type, text }: AttributeTypeAndValue): GeneralName | undefined {
  if (type === OID.emailAddress) return { kind: 'email', value: text };
  if (type !== OID.commonName) return undefined;
  const whole = normalized(text);
  const value = whole.replace(/^[.\s]+|[.\s]+$/g, '');
  const address = value.replace(/%.*$/, '');
  if (isIP(address) !== 0) return ipAddress(address);
  return /[.*]/.test(whole) && HOST_NAME.test(value) ? { kind: 'dns', value } : undefined;
}

/** The values of a subject that software reads as subjectAltNames. */
export const altNamesInSubject = (subject: Name): GeneralName[] =>
  subject.rdns.flat().flatMap((attribute) => asAltName(attribute) ?? []);

/** A key that is equal for subjects that look the same: ignores case, width, white space and string types. */
const lookalikeKey = perName(({ rdns }) => JSON.stringify(rdns.map((rdn) => rdn.map(comparable).sort())));

const comparable = ({ type, tag, text }: AttributeTypeAndValue): string =>
  isCharacterString(tag) ? `${type}=${normalized(text).replace(/\s+/g, ' ').toLowerCase()}` : `${type}${text}`;

/** Whether people or lenient software would confuse the subjects. */
export const looksLike = (a: Name, b: Name): boolean => lookalikeKey(a) === lookalikeKey(b);
