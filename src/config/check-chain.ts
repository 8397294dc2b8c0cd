import { arrangeChain } from '../pki/x509/ca-chain.ts';
import type { Certificate } from '../pki/x509/certificate.ts';
import { formatName } from '../pki/x509/name.ts';
import type { FileCheck } from './file-check.ts';
import { readCertificates } from './pem-files.ts';

const DAY = 86_400_000;
const ALLOWED = 'the CA certificates above the CA, in order';

/**
 * A CA's certificate and what stands above it: each a CA certificate in its validity, each signed by the next, up to
 * a root (RFC 7030 §4.1.3: cacerts holds it). The root's own signature proves nothing and is not looked at. The
 * certificates of a rollover have to be linked to these; one that has expired is a warning: rollovers come to their end.
 *
 * @param ca the CA's key in the configuration, e.g. `ca[0]`
 */
export async function checkCaChain(check: FileCheck, ca: string, file: string, chainFile?: string): Promise<void> {
  const own = await check.reading(`${ca}.certificate`, file, readCertificates);
  const chain = chainFile === undefined ? [] : await check.reading(`${ca}.chain`, chainFile, readCertificates);
  if (own === undefined || chain === undefined) return;
  const [certificate, ...further] = own;
  const { path, rollover, rootMissing, problems } = await arrangeChain(certificate, [...further, ...chain]);
  const key = chain.length === 0 ? `${ca}.certificate` : `${ca}.chain`;
  for (const problem of problems) check.problem(key, problem, ALLOWED);
  for (const issuer of path.slice(1)) checkIssuerValidity(check, `${ca}.chain`, issuer, certificate);
  for (const { subject, notAfter } of rollover)
    if (notAfter.getTime() < check.now)
      check.warn(
        `${ca}.chain`,
        `"${formatName(subject)}", a certificate of a rollover, expired on ${notAfter.toISOString()}`,
        'without what has expired',
      );
  const last = path.at(-1) ?? certificate;
  if (rootMissing)
    check.problem(
      `${ca}.chain`,
      `${chainFile === undefined ? 'is missing' : 'has no root'}: "${formatName(last.issuer)}", which issued "${formatName(last.subject)}", is not there`,
      `${ALLOWED}, the self-signed root last`,
    );
}

/** Nothing below an issuer is valid without it. */
function checkIssuerValidity(check: FileCheck, key: string, issuer: Certificate, certificate: Certificate): void {
  const who = `"${formatName(issuer.subject)}"`;
  check.validity(key, issuer, who);
  if (issuer.notAfter.getTime() + DAY < certificate.notAfter.getTime())
    check.warn(
      key,
      `${who} ends on ${issuer.notAfter.toISOString()}, before the CA below it`,
      'issuers that outlive what they issue',
    );
}
