/** Who may enrol at a CA: `client_issuers` against its files and the trust anchors, `auth.methods` against what is switched on. */
import { formatName } from '../../pki/x509/name.ts';
import type { Certificate } from '../../pki/x509/certificate.ts';
import { countsAt, hasSharedSecret, leavesNamesFree } from '../rules/names.ts';
import { clientIssuerFiles } from '../schema/ca.ts';
import { caCertificateFiles } from '../schema/ca.ts';
import type { CaConfig, Config } from '../schema.ts';
import { labelsOf } from '../labels.ts';
import { ownAnchors } from './admin-anchors.ts';
import type { MaterialReader } from './reader.ts';

/** Warnings of CAs where nobody, or nobody under a trust anchor, can enrol, or somebody for any name. */
export async function checkClients(reader: MaterialReader, config: Config): Promise<void> {
  checkMethods(reader, config);
  const { tls, ca } = config;
  const labels = labelsOf(config);
  const { mode, trust_anchors } = tls.client_auth;
  const anchors = mode === 'none' ? [] : await reader.knownCertificates(trust_anchors);
  const ofServer = (await Promise.all(ca.map((one) => certificatesOf(reader, one)))).flat();
  const ownOrAbove = await ownAnchors(anchors, ofServer);
  for (const { key: table, table: one } of labels) {
    const key = `${table}.client_issuers`;
    const files = clientIssuerFiles(one);
    if (!countsAt(one, 'mtls')) continue;
    const any = one.client_issuers.includes('any');
    const named = (await Promise.all(files.map((file) => reader.knownCertificates(file)))).flat();
    const own = one.client_issuers.includes('own') ? await certificatesOf(reader, one) : [];
    const covered = await ownAnchors(anchors, [...named, ...own]);
    const left = anchors.filter(
      (anchor) =>
        !any && !covered.includes(anchor) && !(one.client_issuers.includes('anchors') && !ownOrAbove.includes(anchor)),
    );
    for (const { subject } of left)
      reader.warn(
        key,
        `leaves out the trust anchor "${formatName(subject)}": certificates under it do not authenticate at "${one.label}"`,
        'its file in the list, if they should',
      );
    if (one.profile.mtls_subject !== 'auto' || !leavesNamesFree(one)) continue;
    for (const { subject } of anchors.filter((anchor) => !left.includes(anchor) && !ownOrAbove.includes(anchor)))
      reader.warn(
        `${table}.profile`,
        `leaves the names of certificates under "${formatName(subject)}" free: each may ask for any name, another's too`,
        'subject.template, and san.allowed = [] or patterns with a placeholder',
      );
  }
}

function checkMethods(reader: MaterialReader, config: Config): void {
  const { tls, otp, gssapi } = config;
  for (const { key, table } of labelsOf(config)) {
    const { label, auth } = table;
    const on = {
      mtls: tls.client_auth.mode !== 'none',
      otp: otp.enabled,
      gssapi: gssapi.enabled,
      cmc: hasSharedSecret(config, table),
    };
    if (auth.methods?.some((method) => on[method]) === false)
      reader.warn(
        `${key}.auth.methods`,
        `names no method that is switched on, so nobody can enroll at "${label}"`,
        'one that is, or nothing',
      );
  }
}

async function certificatesOf(reader: MaterialReader, ca: CaConfig): Promise<readonly Certificate[]> {
  return (await Promise.all(caCertificateFiles(ca).map((file) => reader.knownCertificates(file)))).flat();
}
