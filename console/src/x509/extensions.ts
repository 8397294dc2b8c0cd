/** Describes extensions. */
import { hex, oid, readAll, within, type Element } from './der.ts';
import { generalName } from './names.ts';

export interface Extension {
  readonly name: string;
  readonly isCritical: boolean;
  readonly lines: readonly string[];
}

const KEY_USAGES = [
  'digital signature',
  'content commitment',
  'key encipherment',
  'data encipherment',
  'key agreement',
  'certificate signing',
  'CRL signing',
  'encipher only',
  'decipher only',
];

const PURPOSES: Readonly<Record<string, string | undefined>> = {
  '1.3.6.1.5.5.7.3.1': 'TLS server',
  '1.3.6.1.5.5.7.3.2': 'TLS client',
  '1.3.6.1.5.5.7.3.3': 'code signing',
  '1.3.6.1.5.5.7.3.4': 'e-mail',
  '1.3.6.1.5.5.7.3.8': 'time stamping',
  '1.3.6.1.5.5.7.3.9': 'OCSP signing',
  '1.3.6.1.5.5.7.3.28': 'CMC registration authority',
  '2.5.29.37.0': 'any purpose',
};

const ACCESS: Readonly<Record<string, string | undefined>> = {
  '1.3.6.1.5.5.7.48.1': 'OCSP',
  '1.3.6.1.5.5.7.48.2': 'CA certificate',
};

type Reader = (value: Element) => string[];

const names: Reader = (value) => within(value).map(generalName);

const keyUsage: Reader = ({ content }) =>
  KEY_USAGES.filter((_, bit) => ((content[1 + (bit >> 3)] ?? 0) & (0x80 >> (bit & 7))) !== 0);

const basicConstraints: Reader = (value) => {
  const [isCa, path] = within(value);
  if (isCa?.tag !== 1 || isCa.content[0] === 0) return ['not a CA'];
  return ['CA', ...(path === undefined ? [] : [`at most ${Number(`0x${hex(path.content)}`)} CAs below it`])];
};

const authorityKey: Reader = (value) =>
  within(value).flatMap((part) => ((part.tag & 0x1f) === 0 ? [hex(part.content)] : []));

const crlPoints: Reader = (value) =>
  within(value).flatMap((point) => within(within(point)[0]).flatMap((name) => within(name).map(generalName)));

const authorityAccess: Reader = (value) =>
  within(value).flatMap((access) => {
    const [method, place] = within(access);
    if (method === undefined || place === undefined) return [];
    return [`${ACCESS[oid(method)] ?? oid(method)}: ${generalName(place)}`];
  });

const policies: Reader = (value) =>
  within(value).flatMap((policy) => {
    const [id] = within(policy);
    return id === undefined ? [] : [oid(id)];
  });

const KNOWN: Readonly<Record<string, readonly [name: string, read: Reader] | undefined>> = {
  '2.5.29.14': ['Subject key identifier', ({ content }) => [hex(content)]],
  '2.5.29.15': ['Key usage', keyUsage],
  '2.5.29.17': ['Subject alternative names', names],
  '2.5.29.18': ['Issuer alternative names', names],
  '2.5.29.19': ['Basic constraints', basicConstraints],
  '2.5.29.31': ['CRL', crlPoints],
  '2.5.29.32': ['Policies', policies],
  '2.5.29.35': ['Authority key identifier', authorityKey],
  '2.5.29.37': ['Extended key usage', (value) => within(value).map((id) => PURPOSES[oid(id)] ?? oid(id))],
  '1.3.6.1.5.5.7.1.1': ['Authority information access', authorityAccess],
  '1.3.6.1.5.5.7.48.1.5': ['OCSP no check', () => ['clients do not check its status']],
  '1.3.6.1.5.5.7.1.24': ['TLS features', () => ['a stapled OCSP response (must staple)']],
};

/** @param extension an Extension of RFC 5280 §4.1.2.9 */
export function readExtension(extension: Element): Extension {
  const parts = within(extension);
  const [id] = parts;
  const value = parts.at(-1);
  if (id === undefined || value === undefined) throw new RangeError('extension');
  const type = oid(id);
  const [name, read] = KNOWN[type] ?? [type, undefined];
  return { name, isCritical: parts[1]?.tag === 1 && parts[1].content[0] !== 0, lines: linesOf(value, read) };
}

function linesOf(value: Element, read: Reader | undefined): string[] {
  try {
    const [inner] = readAll(value.content);
    if (inner !== undefined && read !== undefined) return read(inner);
  } catch {
    // Unreadable content is shown as hex.
  }
  return [hex(value.content)];
}
