/** The working group's examples of ML-DSA, in `fixtures/ml-dsa`. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parsePemCertificates, type Certificate } from '../../src/pki/x509/certificate.ts';
import { ROOT } from './root.ts';

export const LEVELS = ['44', '65', '87'] as const;

export const exampleFile = (name: string): string => join(ROOT, 'fixtures', 'ml-dsa', name);

/** The DER of the one PEM block of a file. */
export function exampleDer(name: string): Buffer {
  const text = readFileSync(exampleFile(name), 'latin1');
  return Buffer.from(text.replace(/-----[^-]+-----/g, ''), 'base64');
}

/** The self-signed certificate of a level. */
export function exampleCertificate(level: string): Certificate {
  const [certificate] = parsePemCertificates(readFileSync(exampleFile(`ML-DSA-${level}.crt`), 'latin1'));
  if (certificate === undefined) throw new Error(`no certificate of ML-DSA-${level}`);
  return certificate;
}
