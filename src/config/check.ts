/**
 * What the configuration points at: files exist and parse, keys belong to their certificates, CA certificates are CA
 * certificates and lead to a root, nothing that is needed has expired. The keys of problems are the configuration's.
 */
import { OID } from '../pki/der/oids.ts';
import { defaultSignatureAlgorithm } from '../pki/x509/signature-algorithms.ts';
import { checkAdminAnchors } from './check-admin-anchors.ts';
import { checkCaChain } from './check-chain.ts';
import { checkClients } from './check-clients.ts';
import { checkCrls } from './check-crls.ts';
import { checkOcspDelegate } from './check-ocsp.ts';
import { FileCheck } from './file-check.ts';
import { FileError, readBytes, readCertificates } from './pem-files.ts';
import type { Problem, Warning } from './problem.ts';
import type { CaConfig, Config } from './schema.ts';

export interface FileChecks {
  readonly problems: readonly Problem[];
  readonly warnings: readonly Warning[];
}

/**
 * Checks every file that the configuration names.
 *
 * @param now milliseconds since the epoch
 */
export async function checkFiles(config: Config, now: number): Promise<FileChecks> {
  const check = new FileCheck(now, config.profile === 'niap');
  await checkTls(check, config);
  await checkAdminAnchors(check, config);
  await checkClients(check, config);
  await checkGssapi(check, config);
  await checkServerKeyGen(check, config);
  await checkCmc(check, config);
  for (const [index, ca] of config.ca.entries()) await checkCa(check, ca, `ca[${index}]`);
  return check;
}

async function checkTls(check: FileCheck, { tls, admin }: Config): Promise<void> {
  await checkServerCertificate(check, 'tls', tls.certificate, tls.private_key);
  if (admin.tls.certificate !== undefined && admin.tls.private_key !== undefined)
    await checkServerCertificate(check, 'admin.tls', admin.tls.certificate, admin.tls.private_key);
  const { mode, trust_anchors, crl } = tls.client_auth;
  if (mode !== 'none') await check.anchors('tls.client_auth.trust_anchors', trust_anchors);
  if (crl !== undefined) await checkCrls(check, 'tls.client_auth.crl', crl);
  if (admin.tls.mode !== 'none') await check.anchors('admin.tls.trust_anchors', admin.tls.trust_anchors);
  if (admin.tls.crl !== undefined) await checkCrls(check, 'admin.tls.crl', admin.tls.crl);
}

/** A TLS server certificate with its key; one that names other purposes only would be refused by clients. */
async function checkServerCertificate(check: FileCheck, section: string, file: string, key: string): Promise<void> {
  const effect = 'clients that look at it refuse to connect';
  const certificate = await check.pair(`${section}.certificate`, file, `${section}.private_key`, key, effect);
  const purposes = certificate?.extKeyUsage;
  if (purposes === undefined || purposes.includes(OID.serverAuth) || purposes.includes(OID.anyExtendedKeyUsage)) return;
  check.warn(`${section}.certificate`, 'the certificate is not for TLS servers', 'extKeyUsage serverAuth');
}

/** The first bytes of a keytab: MIT's file format, version 1 or 2. */
const KEYTAB_VERSIONS = ['0501', '0502'];

async function checkGssapi(check: FileCheck, { gssapi }: Config): Promise<void> {
  if (!gssapi.enabled || gssapi.keytab === undefined) return;
  await check.reading('gssapi.keytab', gssapi.keytab, async (file) => {
    const bytes = await readBytes(file, 'a keytab');
    if (!KEYTAB_VERSIONS.includes(bytes.subarray(0, 2).toString('hex')))
      throw new FileError(`${file} is no keytab`, 'a keytab');
  });
  await check.permissions('gssapi.keytab', gssapi.keytab);
}

async function checkServerKeyGen(check: FileCheck, { serverkeygen }: Config): Promise<void> {
  for (const [index, { certificate }] of serverkeygen.keys.entries()) {
    if (certificate === undefined) continue;
    const key = `serverkeygen.keys[${index}].certificate`;
    const [leaf] = (await check.reading(key, certificate, readCertificates)) ?? [];
    if (leaf === undefined) continue;
    check.validity(key, leaf, 'the certificate');
    const { keyType } = leaf.publicKey;
    if (!keyType.startsWith('rsa:') && !keyType.startsWith('ec:'))
      check.problem(key, `has a key of type ${keyType}, which encrypts nothing`, 'an RSA or EC certificate');
  }
}

async function checkCmc(check: FileCheck, { cmc }: Config): Promise<void> {
  if (cmc.certificate !== undefined && cmc.private_key !== undefined)
    await checkResponder(check, cmc.certificate, cmc.private_key);
  for (const [index, file] of cmc.ra_certificates.entries()) {
    const key = `cmc.ra_certificates[${index}]`;
    for (const certificate of (await check.reading(key, file, readCertificates)) ?? [])
      check.validity(key, certificate, 'a certificate');
  }
}

/** The certificate that signs PKI responses: its key may sign, and RFC 6402 §2.10 has a purpose for it. */
async function checkResponder(check: FileCheck, file: string, keyFile: string): Promise<void> {
  const key = 'cmc.certificate';
  const certificate = await check.pair(key, file, 'cmc.private_key', keyFile);
  if (certificate === undefined) return;
  const { keyUsage, extKeyUsage, publicKey } = certificate;
  if (keyUsage !== undefined && !keyUsage.includes('digitalSignature') && !keyUsage.includes('nonRepudiation'))
    check.problem(key, 'the certificate may not sign', 'keyUsage digitalSignature, or none');
  if (defaultSignatureAlgorithm(publicKey.keyType) === undefined)
    check.problem(key, `has a key of type ${publicKey.keyType}, which signs no responses`, 'an RSA, EC or Ed25519 key');
  if (extKeyUsage !== undefined && !extKeyUsage.includes(OID.cmcCA) && !extKeyUsage.includes(OID.anyExtendedKeyUsage))
    check.warn(key, 'the certificate is not for CMC certification authorities', 'extKeyUsage cmcCA');
}

async function checkCa(check: FileCheck, ca: CaConfig, key: string): Promise<void> {
  if (ca.driver === 'file')
    await check.pair(`${key}.certificate`, ca.certificate, `${key}.file.private_key`, ca.file.private_key);
  if (ca.driver === 'pkcs11')
    await check.exists(`${key}.pkcs11.module`, ca.pkcs11.module, 'the path of a PKCS#11 library');
  if (ca.driver === 'dogtag') {
    const { trust_anchors, client_certificate, client_key } = ca.dogtag;
    await check.anchors(`${key}.dogtag.trust_anchors`, trust_anchors);
    await check.pair(`${key}.dogtag.client_certificate`, client_certificate, `${key}.dogtag.client_key`, client_key);
  }
  if (ca.authorization !== undefined) {
    const { trust_anchors, client_certificate, client_key } = ca.authorization;
    await check.anchors(`${key}.authorization.trust_anchors`, trust_anchors);
    if (client_certificate !== undefined && client_key !== undefined)
      await check.pair(
        `${key}.authorization.client_certificate`,
        client_certificate,
        `${key}.authorization.client_key`,
        client_key,
      );
  }
  if (ca.driver !== 'dogtag' && ca.ocsp !== undefined) await checkOcspDelegate(check, key, ca.certificate, ca.ocsp);
  if (ca.certificate !== undefined) await checkCaChain(check, key, ca.certificate, ca.chain);
  await check.anchors(`${key}.profile.renewal_issuers`, ca.profile.renewal_issuers);
}
