/** Where the operations of an EST server are. */
import { ClientError } from '../client-error.ts';

/** @throws ClientError `REFUSED` for a URL that is none, or has no https */
export function estBase(url: string, label: string | undefined): URL {
  const base = URL.canParse(url) ? new URL(url) : undefined;
  if (base?.protocol !== 'https:')
    throw new ClientError('local', 'REFUSED', `"${url}" is no https URL, and EST needs one`);
  const path = base.pathname.replace(/\/+$/, '');
  const prefix = path.includes('/.well-known/est') ? path : `${path}/.well-known/est`;
  base.pathname = label === undefined ? prefix : `${prefix}/${encodeURIComponent(label)}`;
  base.search = '';
  base.hash = '';
  return base;
}
