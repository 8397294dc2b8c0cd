/** The anchors of administrators. No CA that issues to devices may be one: each of its devices would be an administrator. */
import { verifyCertificateSignature, type Certificate } from '../../pki/x509/certificate.ts';
import { formatName, namesEqual, parseDistinguishedName } from '../../pki/x509/name.ts';
import { namesMatch } from '../../pki/x509/name-matching.ts';
import { caCertificateFiles } from '../schema/ca.ts';
import type { Config } from '../schema.ts';
import { checkDistinguishedName } from '../schema/formats.ts';
import type { MaterialReader } from './reader.ts';

/** Problems with `admin.tls.trust_anchors`; files that cannot be read are problems of others. */
export async function checkAdminAnchors(reader: MaterialReader, { admin, ca }: Config): Promise<void> {
  if (admin.tls.mode === 'none') return;
  const anchors = await reader.knownCertificates(admin.tls.trust_anchors);
  const files = ca.flatMap(caCertificateFiles);
  const own = await Promise.all(files.map((file) => reader.knownCertificates(file)));
  for (const anchor of await ownAnchors(anchors, own.flat()))
    reader.problem('admin.tls.trust_anchors', ownAnchorMessage(anchor), 'a CA for administrators only');
  for (const [index, { issuer }] of admin.clients.entries()) {
    if (issuer === undefined || checkDistinguishedName(issuer) !== undefined) continue;
    const name = parseDistinguishedName(issuer);
    if (!anchors.some(({ subject }) => namesMatch(subject, name)))
      reader.warn(
        `admin.clients[${index}].issuer`,
        `"${issuer}" is not the subject of a certificate in admin.tls.trust_anchors, so that every CA below these anchors can take this name`,
        'add the certificate of this CA to the file',
      );
  }
}

/**
 * Those of the anchors that are a CA of this server, by name and key, or have signed one.
 *
 * @param own the CAs' certificates, with those above them and those whose certificates may be renewed
 */
export async function ownAnchors(
  anchors: readonly Certificate[],
  own: readonly Certificate[],
): Promise<readonly Certificate[]> {
  const found: Certificate[] = [];
  for (const anchor of anchors) if (await isOwn(anchor, own)) found.push(anchor);
  return found;
}

/** What is wrong with such an anchor. */
export function ownAnchorMessage({ subject }: Certificate): string {
  return `"${formatName(subject)}" is a CA of this server or above one, so that any device would be an administrator`;
}

async function isOwn(anchor: Certificate, own: readonly Certificate[]): Promise<boolean> {
  for (const certificate of own) {
    const same =
      namesEqual(anchor.subject, certificate.subject) && anchor.publicKey.spki.equals(certificate.publicKey.spki);
    if (same) return true;
    if (namesEqual(anchor.subject, certificate.issuer) && (await verifyCertificateSignature(certificate, anchor)))
      return true;
  }
  return false;
}
