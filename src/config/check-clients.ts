/** Who may enrol at a CA: `client_issuers` against its files and the trust anchors, `auth.methods` against what is switched on (contract §8.2, §8.3). */
import { formatName } from '../pki/x509/name.ts';
import type { Certificate } from '../pki/x509/certificate.ts';
import { ownAnchors, readable } from './check-admin-anchors.ts';
import type { FileCheck } from './file-check.ts';
import { clientIssuerFiles } from './schema/ca.ts';
import type { CaConfig, Config } from './schema.ts';

/** Problems with the files; warnings of CAs where nobody, or nobody under a trust anchor, can enrol. */
export async function checkClients(check: FileCheck, config: Config): Promise<void> {
  checkMethods(check, config);
  const { tls, ca } = config;
  const { mode, trust_anchors } = tls.client_auth;
  const anchors = mode === 'none' ? [] : await readable(trust_anchors);
  const ofServer = (await Promise.all(ca.map(certificatesOf))).flat();
  const ownOrAbove = await ownAnchors(anchors, ofServer);
  for (const [index, one] of ca.entries()) {
    const key = `ca[${index}].client_issuers`;
    const files = clientIssuerFiles(one);
    for (const file of files) await check.anchors(key, file);
    if (one.client_issuers.includes('any') || one.auth.methods?.includes('mtls') === false) continue;
    const named = (await Promise.all(files.map(readable))).flat();
    const own = one.client_issuers.includes('own') ? await certificatesOf(one) : [];
    const covered = await ownAnchors(anchors, [...named, ...own]);
    const left = anchors.filter(
      (anchor) =>
        !covered.includes(anchor) && !(one.client_issuers.includes('anchors') && !ownOrAbove.includes(anchor)),
    );
    for (const { subject } of left)
      check.warn(
        key,
        `leaves out the trust anchor "${formatName(subject)}": certificates under it do not authenticate at "${one.label}"`,
        'its file in the list, if they should',
      );
  }
}

function checkMethods(check: FileCheck, { tls, otp, gssapi, ca }: Config): void {
  const on = { mtls: tls.client_auth.mode !== 'none', otp: otp.enabled, gssapi: gssapi.enabled };
  for (const [index, { label, auth }] of ca.entries())
    if (auth.methods?.some((method) => on[method]) === false)
      check.warn(
        `ca[${index}].auth.methods`,
        `names no method that is switched on, so nobody can enrol at "${label}"`,
        'one that is, or nothing',
      );
}

async function certificatesOf({ certificate, chain, profile }: CaConfig): Promise<readonly Certificate[]> {
  return (await Promise.all([certificate, chain, profile.renewal_issuers].map(readable))).flat();
}
