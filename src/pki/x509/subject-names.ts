/** Values of a subject that software takes for a host name, an address or a mailbox, and subjects that look the same. */
import { isIP } from 'node:net';
import { OID } from '../der/oids.ts';
import { ipAddress, type GeneralName } from './general-name.ts';
import { isCharacterString, type AttributeTypeAndValue, type Name } from './name.ts';

/** Full stops of other scripts (UTS #46 §2.3) and characters that look like one (UTS #39), as NFKC leaves them. */
const FULL_STOPS = /[\u06d4\u0701\u0702\u3002\ua4f8\ua60e\u{10a50}\u{1d16d}]/gu;

/** The text as people and lenient software read it: NFKC, without outer white space, with one kind of full stop. */
const normalized = (text: string): string => text.normalize('NFKC').trim().replace(FULL_STOPS, '.');

/** What host names consist of, in any script. */
const HOST_NAME = /^[\p{L}\p{M}\p{N}\-_.*]*$/u;

/** What an attribute of a subject would be as a subjectAltName; undefined for a value that is not read as one. */
export function asAltName({ type, text }: AttributeTypeAndValue): GeneralName | undefined {
  if (type === OID.emailAddress) return { kind: 'email', value: text };
  if (type !== OID.commonName) return undefined;
  const whole = normalized(text);
  const value = whole.replace(/^[.\s]+|[.\s]+$/g, '');
  const address = value.replace(/%.*$/, '');
  if (isIP(address) !== 0) return ipAddress(address);
  return /[.*]/.test(whole) && HOST_NAME.test(value) ? { kind: 'dns', value } : undefined;
}

/** The names of a subject that are read as subjectAltNames. */
export const altNamesInSubject = (subject: Name): GeneralName[] =>
  subject.rdns.flat().flatMap((attribute) => asAltName(attribute) ?? []);

/** A CA's name is compared with at each request: its key is made once. */
const keys = new WeakMap<Name, string>();

/** A text that is equal for subjects that look the same: without regard to case, width, white space and string types. */
function lookalikeKey(name: Name): string {
  let key = keys.get(name);
  if (key === undefined) {
    key = JSON.stringify(name.rdns.map((rdn) => rdn.map(comparable).sort()));
    keys.set(name, key);
  }
  return key;
}

const comparable = ({ type, tag, text }: AttributeTypeAndValue): string =>
  isCharacterString(tag) ? `${type}=${normalized(text).replace(/\s+/g, ' ').toLowerCase()}` : `${type}${text}`;

/** Whether people, or software that compares names less strictly than we do, take one subject for the other. */
export const looksLike = (a: Name, b: Name): boolean => lookalikeKey(a) === lookalikeKey(b);
