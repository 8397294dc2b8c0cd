/** Files of a key and its certificate in the formats that programs use. */
import { pemOf, type Certificate } from '../../pki/x509/certificate.ts';
import { keyFile, type VersionFile } from './disk.ts';

/** In addition to `pem`, which is always written. */
export const FORMATS = ['pem', 'combined', 'pkcs12'] as const;
export type Format = (typeof FORMATS)[number];

interface Issued {
  readonly certificate: Certificate;
  /** From the issuer to the last one below the anchor. */
  readonly chain: readonly Certificate[];
  /** PKCS#8 PEM; or the URI of a key in a token, for PEM files only. */
  readonly privateKey: string;
}

interface FormatOptions {
  readonly formats: readonly Format[];
  /** Of the PKCS#12 file. */
  readonly password: string;
  /** Friendly name of the PKCS#12 entry. */
  readonly name: string;
}

/** @throws ClientError if PKCS#12 is configured and cannot be created */
export async function filesOf(
  { certificate, chain, privateKey }: Issued,
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
    files.push({
      name: 'bundle.p12',
      content: await encodePkcs12({ certificate, chain, privateKey, password, name }),
      secret: true,
    });
  }
  return files;
}
