/** Files of a key and its certificate in the formats that programs use. */
import { pemOf } from '../../pki/x509/certificate.ts';
import { keyFile, type VersionFile } from './disk.ts';
import type { Pkcs12Content } from './pkcs12.ts';

/** In addition to `pem`, which is always written. */
export const FORMATS = ['pem', 'combined', 'pkcs12'] as const;
export type Format = (typeof FORMATS)[number];

interface FormatOptions extends Pick<Pkcs12Content, 'password' | 'name'> {
  readonly formats: readonly Format[];
}

/**
 * The private key may be the URI of a key in a token, for PEM files only.
 * @throws ClientError if PKCS#12 is configured and cannot be created
 */
export async function filesOf(
  { certificate, chain, privateKey }: Omit<Pkcs12Content, keyof FormatOptions>,
  { formats, password, name }: FormatOptions,
): Promise<VersionFile[]> {
  const fullChain = pemOf([certificate, ...chain]);
  const files: VersionFile[] = [
    keyFile(privateKey),
    { name: 'cert.pem', content: pemOf([certificate]), secret: false },
    { name: 'chain.pem', content: pemOf(chain), secret: false },
    { name: 'fullchain.pem', content: fullChain, secret: false },
  ];
  if (formats.includes('combined'))
    files.push({ name: 'combined.pem', content: `${fullChain}${privateKey}`, secret: true });
  if (formats.includes('pkcs12')) {
    const { encodePkcs12 } = await import('./pkcs12.ts');
    const content = await encodePkcs12({ certificate, chain, privateKey, password, name });
    files.push({ name: 'bundle.p12', content, secret: true });
  }
  return files;
}
