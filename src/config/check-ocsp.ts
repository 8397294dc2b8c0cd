import { hasNoCheck, ocspDelegateProblems } from '../pki/x509/ocsp-delegate.ts';
import type { FileCheck } from './file-check.ts';
import { readCertificates } from './pem-files.ts';

/**
 * A delegated OCSP responder: certificate and key belong together, and relying parties will take it for the CA's.
 *
 * @param ca the CA's key in the configuration, e.g. `ca[0]`
 * @param caFile the CA's own certificate
 */
export async function checkOcspDelegate(
  check: FileCheck,
  ca: string,
  caFile: string,
  ocsp: { readonly certificate: string; readonly private_key: string },
): Promise<void> {
  const key = `${ca}.ocsp.certificate`;
  const effect = "the CA's own key answers OCSP";
  const certificate = await check.pair(key, ocsp.certificate, `${ca}.ocsp.private_key`, ocsp.private_key, effect);
  const [issuer] = (await check.reading(`${ca}.certificate`, caFile, readCertificates)) ?? [];
  if (certificate === undefined || issuer === undefined) return;
  for (const problem of await ocspDelegateProblems(certificate, issuer))
    check.problem(key, problem, 'a certificate for OCSP responders, issued by the CA');
  if (!hasNoCheck(certificate))
    check.warn(key, "relying parties may ask for the responder's own status", 'the extension id-pkix-ocsp-nocheck');
}
