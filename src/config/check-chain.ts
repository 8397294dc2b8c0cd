import { chainProblems, issuersOf } from '../ca/local/chain.ts';
import { formatName, namesEqual } from '../pki/name.ts';
import type { FileCheck } from './file-check.ts';
import { readCertificates } from './pem-files.ts';

/**
 * A CA's certificate and what stands above it: each a CA certificate in its validity, each signed by the next, up to
 * a root (RFC 7030 §4.1.3: cacerts holds it). The root's own signature proves nothing and is not looked at.
 *
 * @param ca the CA's key in the configuration, e.g. `ca[0]`
 */
export async function checkCaChain(check: FileCheck, ca: string, file: string, chainFile?: string): Promise<void> {
  const own = await check.reading(`${ca}.certificate`, file, readCertificates);
  const chain = chainFile === undefined ? [] : await check.reading(`${ca}.chain`, chainFile, readCertificates);
  if (own === undefined || chain === undefined) return;
  const [certificate] = own;
  const issuers = issuersOf(certificate, chain);
  for (const problem of await chainProblems([certificate, ...issuers]))
    check.problem(
      issuers.length === 0 ? `${ca}.certificate` : `${ca}.chain`,
      problem,
      'the CA certificates above the CA, in order',
    );
  for (const issuer of issuers) check.validity(`${ca}.chain`, issuer, `"${formatName(issuer.subject)}"`);
  const last = issuers.at(-1) ?? certificate;
  if (!namesEqual(last.issuer, last.subject))
    check.problem(
      `${ca}.chain`,
      `${chainFile === undefined ? 'is missing' : 'has no root'}: "${formatName(last.issuer)}", which issued "${formatName(last.subject)}", is not there`,
      'the CA certificates above the CA, in order, the self-signed root last',
    );
}
