import { verifyCertificateSignature } from '../pki/certificate.ts';
import type { Certificate } from '../pki/certificate.ts';
import { DerError } from '../pki/der.ts';
import { formatName, namesEqual } from '../pki/name.ts';
import type { FileCheck } from './file-check.ts';
import { readCertificates } from './pem-files.ts';

/**
 * A CA's certificate and what stands above it: each a CA certificate in its validity, each signed by the next, the
 * last one self-signed (RFC 7030 §4.1.3: cacerts holds the root).
 *
 * @param ca the CA's key in the configuration, e.g. `ca[0]`
 */
export async function checkCaChain(check: FileCheck, ca: string, file: string, chainFile?: string): Promise<void> {
  const own = await check.reading(`${ca}.certificate`, file, readCertificates);
  const above =
    chainFile === undefined ? [] : await check.reading(`${ca}.chain`, chainFile, (path) => readCertificates(path));
  if (own === undefined || above === undefined) return;
  const [certificate] = own;
  // A chain that repeats the CA's own certificate is tolerated (contract §2).
  const path = [certificate, ...above.filter(({ fingerprint }) => fingerprint !== certificate.fingerprint)];
  for (const [index, one] of path.entries()) {
    const key = index === 0 ? `${ca}.certificate` : `${ca}.chain`;
    checkAuthority(check, key, one);
    if (index > 0) check.validity(key, one, `"${formatName(one.subject)}"`);
  }
  await checkLinks(check, `${ca}.chain`, path);
}

function checkAuthority(check: FileCheck, key: string, { isCa, keyUsage, subject }: Certificate): void {
  const name = `"${formatName(subject)}"`;
  if (!isCa) check.problem(key, `${name} is no CA certificate`, 'basicConstraints with cA');
  else if (keyUsage !== undefined && !keyUsage.includes('keyCertSign'))
    check.problem(key, `${name} may not sign certificates`, 'keyUsage keyCertSign');
}

async function checkLinks(check: FileCheck, key: string, path: readonly Certificate[]): Promise<void> {
  for (const [index, certificate] of path.entries()) {
    const issuer = path[index + 1];
    const subject = formatName(certificate.subject);
    if (issuer === undefined) {
      if (!(await isIssuedBy(certificate, certificate)))
        check.problem(
          key,
          `ends at "${subject}", which is not self-signed; "${formatName(certificate.issuer)}" is missing`,
          'the certificates above the CA, the self-signed root last',
        );
    } else if (!(await isIssuedBy(certificate, issuer)))
      check.problem(
        key,
        `"${subject}" is not signed by "${formatName(issuer.subject)}", which follows it`,
        'the certificates above the CA in order, root last',
      );
  }
}

async function isIssuedBy(certificate: Certificate, issuer: Certificate): Promise<boolean> {
  if (!namesEqual(certificate.issuer, issuer.subject)) return false;
  try {
    return await verifyCertificateSignature(certificate, issuer);
  } catch (error) {
    if (error instanceof DerError) return false;
    throw error;
  }
}
