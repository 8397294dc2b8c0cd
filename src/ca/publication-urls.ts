/** Where relying parties find what the publication listener serves. */
import type { PublicationUrls } from './local/index.ts';
import type { Config } from '../config/schema.ts';

/** For certificates of the CA with this label; undefined while publication is off. */
export function publicationUrls(
  { enabled, base_url }: Pick<Config['publication'], 'enabled' | 'base_url'>,
  label: string,
): PublicationUrls | undefined {
  if (!enabled || base_url === undefined) return undefined;
  const base = base_url.replace(/\/+$/, '');
  const name = encodeURIComponent(label);
  return {
    crl: [`${base}/crl/${name}.crl`],
    ocsp: [`${base}/ocsp/${name}`],
    caIssuers: [`${base}/ca/${name}.cer`],
  };
}
