/** Client certificate trust of the listeners: trust anchors, and CRLs of foreign CAs. */
import { readdir, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { Tag } from '../../pki/der/der.ts';
import { parsePem } from '../../pki/der/pem.ts';
import { InputError } from '../../pki/input-error.ts';
import { type Certificate, verifyCertificateSignature } from '../../pki/x509/certificate.ts';
import { parseCertificateList } from '../../pki/x509/crl.ts';
import { namesMatch, formatName, namesEqual, parseDistinguishedName } from '../../pki/x509/name.ts';
import { labelsOf } from '../labels.ts';
import { countsAt, hasSharedSecret, allowsAnyName } from '../rules/names.ts';
import type { Config } from '../schema.ts';
import { caCertificateFiles, clientIssuerFiles } from '../schema/label.ts';
import { checkDistinguishedName } from '../schema/formats.ts';
import { errorCode } from '../secret.ts';
import type { NamedCrl, TrustMaterial } from './material.ts';
import { FileError, type MaterialReader, readBytes } from './reader.ts';

const ALLOWED = 'a CRL in PEM or DER, or a folder of such files';

/** The files of a `client_auth` table; in mode `none` only its CRLs are checked. */
interface TrustFiles {
  readonly mode: string;
  readonly trust_anchors?: string | undefined;
  readonly crl?: string | undefined;
}

/**
 * @param section such as `tls.client_auth`
 * @returns undefined if client certificates are not verified, or a missing file has been reported
 */
export async function loadTrust(
  reader: MaterialReader,
  section: string,
  { mode, trust_anchors: file, crl }: TrustFiles,
): Promise<TrustMaterial | undefined> {
  const verified = mode !== 'none' && file !== undefined;
  const anchors = verified ? await reader.anchors(`${section}.trust_anchors`, file) : undefined;
  const loaded = crl === undefined ? NO_CRLS : await loadCrls(reader, `${section}.crl`, crl);
  return anchors && { anchors, ...loaded };
}

type Crls = Pick<TrustMaterial, 'crls' | 'crlsIncomplete'>;
const NO_CRLS: Crls = { crls: undefined, crlsIncomplete: false };

/** Readable and in CRL form. Issuers are checked when the CRLs come into force. */
async function loadCrls(reader: MaterialReader, key: string, path: string): Promise<Crls> {
  const lists: NamedCrl[] = [];
  const from = reader.faults.length;
  for (const file of (await reader.reading(key, path, crlFiles)) ?? [])
    lists.push(...((await reader.reading(key, file, readCrls)) ?? []));
  const found = reader.faults.splice(from).map((fault) => ({ ...fault, effect: CRL_EFFECT }));
  reader.faults.push(...found);
  return { crls: lists, crlsIncomplete: found.length > 0 };
}

/** What a CRL that cannot be used affects. */
export const CRL_EFFECT =
  'the CRLs in force stay; after a start, certificates of trust anchors without a CRL are rejected';

/** Of the files in a folder. */
const CRL_NAME = /\.(?:crl|pem|der|r\d)$/i;

async function crlFiles(path: string): Promise<string[]> {
  try {
    if (!(await stat(path)).isDirectory()) return [path];
    const entries = await readdir(path, { withFileTypes: true });
    return entries
      .filter((entry) => !entry.isDirectory() && !entry.name.startsWith('.') && CRL_NAME.test(entry.name))
      .map(({ name }) => join(path, name))
      .sort();
  } catch (error) {
    throw new FileError(`cannot read ${path}: ${errorCode(error)}`, ALLOWED);
  }
}

/** One in DER, or any number in PEM. */
async function readCrls(file: string): Promise<NamedCrl[]> {
  const content = await readBytes(file, ALLOWED);
  try {
    // DER begins with the tag of a SEQUENCE, PEM text does not.
    const lists =
      content[0] === Tag.SEQUENCE
        ? [content]
        : parsePem(content.toString('latin1')).flatMap(({ label, der }) => (label === 'X509 CRL' ? [der] : []));
    if (lists.length === 0) throw new FileError(`${file} contains no CRL`, ALLOWED);
    return lists.map((der) => ({ name: basename(file), list: parseCertificateList(der) }));
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    throw new FileError(`${file} contains a damaged CRL: ${error.message}`, ALLOWED);
  }
}

/**
 * Problems of `admin.tls.trust_anchors`, which must not include a CA that issues to devices: every device would be an
 * administrator. Unreadable files are reported elsewhere.
 */
export async function checkAdminAnchors(reader: MaterialReader, { admin, ca }: Config): Promise<void> {
  if (admin.tls.mode === 'none') return;
  const anchors = await reader.knownCertificates(admin.tls.trust_anchors);
  const own = await certificatesOf(reader, ca.flatMap(caCertificateFiles));
  for (const anchor of await ownAnchors(anchors, own))
    reader.problem('admin.tls.trust_anchors', ownAnchorMessage(anchor), 'a CA for administrators only');
  for (const [index, { issuer }] of admin.clients.entries()) {
    if (issuer === undefined || checkDistinguishedName(issuer) !== undefined) continue;
    const name = parseDistinguishedName(issuer);
    if (!anchors.some(({ subject }) => namesMatch(subject, name)))
      reader.warn(
        `admin.clients[${index}].issuer`,
        `"${issuer}" is not the subject of a certificate in admin.tls.trust_anchors, so every CA below these anchors can use this name`,
        'add the certificate of this CA to the file',
      );
  }
}

/**
 * The anchors that are a CA of this server, by name and key, or have signed one.
 * @param own the CAs' certificates, those above them, and renewal_issuers
 */
export async function ownAnchors(
  anchors: readonly Certificate[],
  own: readonly Certificate[],
): Promise<readonly Certificate[]> {
  const found: Certificate[] = [];
  for (const anchor of anchors) if (await isOwn(anchor, own)) found.push(anchor);
  return found;
}

/** The problem of such an anchor. */
export function ownAnchorMessage({ subject }: Certificate): string {
  return `"${formatName(subject)}" is a CA of this server or above one, so every device would be an administrator`;
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

/**
 * Warns of CAs at which no client, no client under a trust anchor, or a client with any name can enroll: compares
 * `client_issuers` with its files and the trust anchors, and `auth.methods` with the enabled methods.
 */
export async function checkClients(reader: MaterialReader, config: Config): Promise<void> {
  checkMethods(reader, config);
  const { tls, ca } = config;
  const labels = labelsOf(config);
  const { mode, trust_anchors } = tls.client_auth;
  const anchors = mode === 'none' ? [] : await reader.knownCertificates(trust_anchors);
  const ofServer = await certificatesOf(reader, ca.flatMap(caCertificateFiles));
  const ownOrAbove = await ownAnchors(anchors, ofServer);
  for (const { key, table } of labels) {
    const { client_issuers: issuers, label } = table;
    if (!countsAt(table, 'mtls')) continue;
    const own = issuers.includes('own') ? caCertificateFiles(table) : [];
    const covered = await ownAnchors(anchors, await certificatesOf(reader, [...clientIssuerFiles(table), ...own]));
    const counts = (anchor: Certificate): boolean =>
      issuers.includes('any') ||
      covered.includes(anchor) ||
      (issuers.includes('anchors') && !ownOrAbove.includes(anchor));
    const left = anchors.filter((anchor) => !counts(anchor));
    for (const { subject } of left)
      reader.warn(
        `${key}.client_issuers`,
        `leaves out the trust anchor "${formatName(subject)}": certificates under it do not authenticate at "${label}"`,
        'add its file to the list if they should',
      );
    if (table.profile.mtls_subject !== 'auto' || !allowsAnyName(table)) continue;
    for (const { subject } of anchors.filter((anchor) => !left.includes(anchor) && !ownOrAbove.includes(anchor)))
      reader.warn(
        `${key}.profile`,
        `does not restrict the names for certificates under "${formatName(subject)}": each can ask for any name, including those of others`,
        'subject.template, and san.allowed = [] or patterns with a placeholder',
      );
  }
}

function checkMethods(reader: MaterialReader, config: Config): void {
  const { tls, otp, gssapi, auth: methods } = config;
  for (const { key, table } of labelsOf(config)) {
    const { label, auth } = table;
    const on = {
      mtls: tls.client_auth.mode !== 'none',
      otp: otp.enabled,
      gssapi: gssapi.enabled,
      ldap: methods.ldap !== undefined,
      jwt: methods.jwt !== undefined,
      cmc: hasSharedSecret(config, table),
    };
    if (auth.methods?.some((method) => on[method]) === false)
      reader.warn(
        `${key}.auth.methods`,
        `contains no enabled method, so nobody can enroll at "${label}"`,
        'an enabled method, or no key',
      );
  }
}

async function certificatesOf(
  reader: MaterialReader,
  files: readonly (string | undefined)[],
): Promise<readonly Certificate[]> {
  return (await Promise.all(files.map((file) => reader.knownCertificates(file)))).flat();
}
