/**
 * Reads, parses and checks the configured files: they exist and parse, keys match their certificates, CA certificates
 * lead to a root, and nothing needed has expired. Problems refer to configuration keys.
 */
import { createPublicKey, type KeyObject } from 'node:crypto';
import { resolve } from 'node:path';
import { driverOf } from '../../ca/drivers.ts';
import { failed } from '../../errors.ts';
import { OID } from '../../pki/der/oids.ts';
import type { Certificate } from '../../pki/x509/certificate.ts';
import { formatName } from '../../pki/x509/name.ts';
import { parsePublicKey } from '../../pki/x509/public-key.ts';
import { defaultSignatureAlgorithm } from '../../pki/x509/signature-algorithms.ts';
import {
  type Fault,
  FilesError,
  findings,
  isOfServer,
  keysWithLabels,
  type Problem,
  type Warning,
} from '../problem.ts';
import { labelsOf } from '../labels.ts';
import { parsePostgresUrl } from '../postgres-url.ts';
import type { Config } from '../schema.ts';
import type { CaTable } from '../schema/label.ts';
import { checkDeviceCaPath, loadOthers, loadService } from './ca.ts';
import type {
  CaMaterial,
  CmcMaterial,
  FileMemory,
  KeyPair,
  LabelMaterial,
  Material,
  ProxyMaterial,
  ServiceMaterial,
} from './material.ts';
import { FileError, MaterialReader, readBytes } from './reader.ts';
import { checkAdminAnchors, checkClients, loadTrust } from './trust.ts';

export interface LoadedMaterial {
  /** undefined if the server cannot work with it: the problems and faults say why. */
  readonly material: Material | undefined;
  readonly problems: readonly Problem[];
  readonly faults: readonly Fault[];
  readonly warnings: readonly Warning[];
}

/**
 * Reads every configured file.
 * @param before what an earlier reading gave; stays in force where a file cannot be used now
 * @param found secrets that cannot be read
 */
export async function loadMaterial(
  config: Config,
  now: number,
  before?: FileMemory,
  found: readonly Fault[] = [],
): Promise<LoadedMaterial> {
  const named = keysWithLabels(config);
  const reader = new MaterialReader(now, { named, before, faults: found });
  const { tls, admin } = config;
  const automatic = tls.automatic !== undefined;
  const pair =
    tls.certificate === undefined
      ? undefined
      : await loadServerCertificate(reader, 'tls', tls.certificate, tls.private_key);
  const { certificate, private_key: adminKey } = admin.tls;
  const adminPair =
    certificate === undefined || adminKey === undefined
      ? pair
      : await loadServerCertificate(reader, 'admin.tls', certificate, adminKey);
  const clientTrust = await loadTrust(reader, 'tls.client_auth', tls.client_auth);
  const adminTrust = await loadTrust(reader, 'admin.tls', admin.tls);
  await checkAdminAnchors(reader, config);
  await checkClients(reader, config);
  await checkSharedKeys(reader, config);
  await checkKeytab(reader, config);
  const { ldap, jwt } = config.auth;
  const material = {
    tls: pair,
    adminTls: adminPair,
    clientTrust,
    adminTrust,
    keyEncryption: await loadKeyEncryption(reader, config),
    cmc: await loadCmc(reader, config),
    checkpointKey: await loadCheckpointKey(reader, config),
    storeTls: await loadStoreTls(reader, config),
    proxies: await loadProxies(reader, config),
    directory: ldap && (await loadService(reader, ldap, 'auth.ldap')),
    tokenIssuer: jwt && (await loadService(reader, jwt, 'auth.jwt')),
  };
  const receivers = new Map<string, ServiceMaterial>();
  for (const [n, receiver] of config.notifications.entries())
    receivers.set(receiver.name, await loadService(reader, receiver, `notifications[${n}]`));
  const openidProvider = admin.oidc && (await loadService(reader, admin.oidc, 'admin.oidc'));
  await checkJwks(reader, config);
  const cas = await loadCas(reader, config);
  const { problems, faults, warnings, memory } = reader;
  const isUsable = !faults.some(isOfServer) && (automatic || (pair !== undefined && adminPair !== undefined));
  const complete = { ...material, receivers, openidProvider, ...cas, memory };
  return { material: isUsable ? complete : undefined, problems, faults, warnings };
}

/**
 * Only the TLS material for the database: a command may run without access to other keys.
 * @param file of the configuration, for the error @throws ConfigError
 */
export async function readStoreTls(config: Config, file: string, now: number): Promise<ServiceMaterial | undefined> {
  const reader = new MaterialReader(now);
  const material = await loadStoreTls(reader, config);
  if (reader.faults.length > 0) throw new FilesError(file, findings(reader.faults, config));
  return material;
}

/** `[store.tls]`; anchors may be in the URL (`sslrootcert`). undefined: the URL's `sslmode` decides. */
async function loadStoreTls(reader: MaterialReader, { store }: Config): Promise<ServiceMaterial | undefined> {
  const { tls, url } = store;
  const { sslmode, sslrootcert: root } = (url && parsePostgresUrl(url.reveal().toString('utf8'))) ?? {};
  if (root === undefined || tls?.trust_anchors !== undefined)
    return tls && (await loadService(reader, tls, 'store.tls'));
  if (tls === undefined && sslmode === 'disable') return undefined;
  const { client } = await loadService(reader, tls ?? {}, 'store.tls');
  return { client, trustAnchors: root === 'system' ? undefined : await reader.anchors('store.url', resolve(root)) };
}

/**
 * The material of a configuration in force, which was checked before.
 * @param before as for {@link loadMaterial}
 * @throws EstuaryError 500 `MATERIAL_UNUSABLE` for an unreadable file; the detail has every fault
 */
export async function readMaterial(config: Config, before?: FileMemory): Promise<Material> {
  const { material, faults } = await loadMaterial(config, Date.now(), before);
  if (material !== undefined) return material;
  throw failed('MATERIAL_UNUSABLE', 'A file that the configuration names cannot be used.', {
    detail: findings(faults, config)
      .map(({ key, message }) => `${key}: ${message}`)
      .join('; '),
  });
}

/** For keys that do not sign certificates. */
const SIGNING_KEY = 'an RSA, EC, EdDSA or ML-DSA key';

/** A TLS server certificate with its key; clients would reject one without the serverAuth purpose. */
async function loadServerCertificate(
  reader: MaterialReader,
  section: string,
  file: string,
  key: string | undefined,
): Promise<KeyPair | undefined> {
  const effect = 'clients that check it do not connect';
  if (key === undefined) {
    // Missing keys are reported elsewhere.
    await reader.certificates(`${section}.certificate`, file);
    return undefined;
  }
  const pair = await reader.pair(`${section}.certificate`, file, `${section}.private_key`, key, effect);
  const purposes = pair?.certificates[0].extKeyUsage;
  if (purposes !== undefined && !purposes.includes(OID.serverAuth) && !purposes.includes(OID.anyExtendedKeyUsage))
    reader.warn(`${section}.certificate`, 'the certificate is not for TLS servers', 'extKeyUsage serverAuth');
  return pair;
}

async function loadProxies(reader: MaterialReader, { est }: Config): Promise<ProxyMaterial | undefined> {
  if (est.client_certificate_header === undefined) return undefined;
  const { proxy_certificates, intermediates: file } = est.client_certificate_header;
  const key = 'est.client_certificate_header';
  const certificates = await reader.certificates(`${key}.proxy_certificates`, proxy_certificates);
  const intermediates =
    file === undefined ? [] : await reader.anchors(`${key}.intermediates`, file, ({ isCa }) => isCa);
  for (const certificate of certificates ?? [])
    reader.validity(
      `${key}.proxy_certificates`,
      certificate,
      `the certificate of the proxy "${formatName(certificate.subject)}"`,
      'it cannot forward client certificates',
    );
  return certificates === undefined || intermediates === undefined ? undefined : { certificates, intermediates };
}

/** The method reads it again when the issuer has new keys. */
async function checkJwks(reader: MaterialReader, { auth }: Config): Promise<void> {
  const file = auth.jwt?.jwks_file;
  if (file === undefined) return;
  await reader.look('auth.jwt.jwks_file', file, async (path) => {
    const problem = jwksProblem((await readBytes(path, 'a JWKS (RFC 7517)')).toString('utf8'));
    if (problem !== undefined) throw new FileError(`${path}: ${problem}`, 'a JWKS (RFC 7517) with public keys');
  });
}

function jwksProblem(text: string): string | undefined {
  try {
    const parsed: unknown = JSON.parse(text.replace(/^\ufeff/, ''));
    const keys: unknown = typeof parsed === 'object' && parsed !== null ? Reflect.get(parsed, 'keys') : undefined;
    if (!Array.isArray(keys) || keys.length === 0) return 'it contains no list "keys" with keys';
    const isSecret = (key: unknown): boolean => typeof key === 'object' && key !== null && ('d' in key || 'k' in key);
    return keys.some(isSecret) ? 'a key in it is secret' : undefined;
  } catch {
    return 'it is not JSON';
  }
}

/** Reports problems early; the library reads the keytab later. */
async function checkKeytab(reader: MaterialReader, { gssapi }: Config): Promise<void> {
  if (!gssapi.enabled || gssapi.keytab === undefined) return;
  await reader.look('gssapi.keytab', gssapi.keytab, async (file) => {
    const bytes = await readBytes(file, 'a keytab');
    // MIT's file format, version 1 or 2.
    if (!['0501', '0502'].includes(bytes.toString('hex', 0, 2)))
      throw new FileError(`${file} is not a keytab`, 'a keytab');
    const [, realm] = gssapi.service_principal?.split('@') ?? [];
    const realms = realmsOf(bytes);
    if (realm !== undefined && realms.size > 0 && !realms.has(realm))
      reader.problem(
        'gssapi.service_principal',
        `is of the realm ${realm}, but ${file} has keys of ${[...realms].join(', ')}`,
        'the realm of the keytab, with the same case',
      );
  });
  await reader.permissions('gssapi.keytab', gssapi.keytab);
}

/** The realms of a keytab's principals (version 2: integers are big-endian). */
function realmsOf(keytab: Buffer): ReadonlySet<string> {
  const realms = new Set<string>();
  for (let at = 2; keytab[1] === 2 && at + 8 <= keytab.length;) {
    const size = keytab.readInt32BE(at);
    // A negative size is that of a deleted entry.
    if (size > 0) realms.add(keytab.toString('utf8', at + 8, at + 8 + keytab.readUInt16BE(at + 6)));
    if (size === 0) break;
    at += 4 + Math.abs(size);
  }
  return realms;
}

async function loadKeyEncryption(reader: MaterialReader, { serverkeygen }: Config): Promise<Map<string, Certificate>> {
  const certificates = new Map<string, Certificate>();
  for (const [index, { id, certificate }] of serverkeygen.keys.entries()) {
    if (certificate === undefined) continue;
    const key = `serverkeygen.keys[${index}].certificate`;
    const [leaf] = (await reader.certificates(key, certificate)) ?? [];
    if (leaf === undefined) continue;
    reader.validity(key, leaf, 'the certificate', 'no key is encrypted for it');
    const { keyType } = leaf.publicKey;
    if (!keyType.startsWith('rsa:') && !keyType.startsWith('ec:'))
      reader.fault(key, `has a key of type ${keyType}, which cannot encrypt`, 'an RSA or EC certificate');
    certificates.set(id.toLowerCase(), leaf);
  }
  return certificates;
}

async function loadCheckpointKey(reader: MaterialReader, { audit }: Config): Promise<KeyObject | undefined> {
  const { checkpoint_key: file } = audit;
  if (file === undefined) return undefined;
  const key = await reader.privateKey('audit.checkpoint_key', file);
  if (key === undefined) return undefined;
  const { keyType } = parsePublicKey(createPublicKey(key).export({ format: 'der', type: 'spki' }));
  if (defaultSignatureAlgorithm(keyType) === undefined)
    reader.fault('audit.checkpoint_key', `is a key of type ${keyType}, which is not supported here`, SIGNING_KEY);
  return key;
}

async function loadCmc(reader: MaterialReader, { cmc }: Config): Promise<CmcMaterial> {
  const { certificate, private_key: privateKey } = cmc;
  const responder =
    certificate === undefined || privateKey === undefined
      ? undefined
      : await loadResponder(reader, certificate, privateKey);
  const raCertificates: Certificate[] = [];
  for (const [index, file] of cmc.ra_certificates.entries()) {
    const key = `cmc.ra_certificates[${index}]`;
    const certificates = (await reader.certificates(key, file)) ?? [];
    for (const certificate of certificates) {
      const who = `the certificate of "${formatName(certificate.subject)}"`;
      reader.validity(key, certificate, who, 'it is not accepted as an RA');
    }
    raCertificates.push(...certificates);
  }
  return { responder, raCertificates };
}

/** The certificate that signs PKI responses: it may sign, and has the purpose of RFC 6402 §2.10. */
async function loadResponder(reader: MaterialReader, file: string, keyFile: string): Promise<KeyPair | undefined> {
  const key = 'cmc.certificate';
  const pair = await reader.pair(key, file, 'cmc.private_key', keyFile, 'clients reject the PKI responses');
  if (pair === undefined) return undefined;
  const { keyUsage, extKeyUsage, publicKey } = pair.certificates[0];
  if (keyUsage !== undefined && !keyUsage.includes('digitalSignature') && !keyUsage.includes('nonRepudiation'))
    reader.fault(key, 'the certificate may not sign', 'keyUsage digitalSignature, or none');
  if (defaultSignatureAlgorithm(publicKey.keyType) === undefined)
    reader.fault(key, `has a key of type ${publicKey.keyType}, which cannot sign responses`, SIGNING_KEY);
  if (extKeyUsage !== undefined && !extKeyUsage.includes(OID.cmcCA) && !extKeyUsage.includes(OID.anyExtendedKeyUsage))
    reader.warn(key, 'the certificate is not for CMC certification authorities', 'extKeyUsage cmcCA');
  return pair;
}

async function loadCas(reader: MaterialReader, config: Config): Promise<Pick<Material, 'cas' | 'labels'>> {
  const cas: CaMaterial[] = [];
  const labels = new Map<string, LabelMaterial[]>();
  for (const { key, table, of } of labelsOf(config)) {
    const loaded = of === undefined ? await driverOf(table).load(reader, table, key) : undefined;
    const issuer = loaded ?? cas.find((ca) => ca.table.label === of?.label);
    if (issuer?.certificates !== undefined) checkDeviceCaPath(reader, table, issuer.certificates, key);
    const others = of && (await loadOthers(reader, table, key));
    const fault = reader.faults.find(
      (problem) => problem.key.startsWith(`${key}.`) && problem.isKept !== true && problem.isTime !== true,
    );
    const state = fault === undefined ? {} : { fault: `${fault.key.slice(key.length + 1)}: ${fault.message}` };
    if (of === undefined) cas.push({ ...(loaded ?? { table, ...NOTHING }), ...state });
    else if (others !== undefined)
      labels.set(of.label, [...(labels.get(of.label) ?? []), { table, ...others, ...state }]);
  }
  return { cas, labels };
}

/** Of a CA whose files cannot be read. */
const NOTHING = {
  certificates: undefined,
  expiring: {},
  renewalIssuers: [],
  clientIssuers: [],
  authorization: undefined,
} as const;

/** Detects separate `[[ca]]` tables with the same key, where further labels are meant (docs/guides/names.md). */
async function checkSharedKeys(reader: MaterialReader, { ca }: Config): Promise<void> {
  const seen = new Map<string, string>();
  for (const [index, table] of ca.entries()) {
    const { label, certificate }: CaTable = table;
    const isLocal = driverOf(table).remote === undefined;
    const [own] = isLocal ? await reader.knownCertificates(certificate) : [];
    if (own === undefined) continue;
    const key = own.spki.toString('base64');
    const first = seen.get(key);
    if (first === undefined) seen.set(key, label);
    else
      reader.warn(
        `ca[${index}].certificate`,
        `has the same key as "${first}": each CA accepts the other's certificates as its own, without their serial numbers and revocations`,
        `a [[label]] of "${first}"`,
      );
  }
}
