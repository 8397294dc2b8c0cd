/** URLs of EST operations and proxies. */
import { ClientError } from '../client-error.ts';

/** @throws ClientError `REFUSED` unless it is a valid https URL */
export function estBase(url: string, label: string | undefined): URL {
  const base = URL.canParse(url) ? new URL(url) : undefined;
  if (base?.protocol !== 'https:')
    throw new ClientError('local', 'REFUSED', `"${url}" is not an https URL, which EST requires`);
  const path = base.pathname.replace(/\/+$/, '');
  const prefix = path.includes('/.well-known/est') ? path : `${path}/.well-known/est`;
  base.pathname = label === undefined ? prefix : `${prefix}/${segment(label)}`;
  base.search = '';
  base.hash = '';
  return base;
}

/** Why a label is not a valid path segment (RFC 3986 §3.3), or undefined. */
export const labelProblem = (label: string): string | undefined =>
  /^\.{0,2}$|[/\p{Cc}]/u.test(label) ? `"${label}" is not a valid label` : undefined;

const segment = (label: string): string =>
  encodeURIComponent(label).replace(/%(?:3A|40|24|26|2B|2C|3B|3D)/g, (encoded) => decodeURIComponent(encoded));
