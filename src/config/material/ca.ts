/** Loads the files of the `[[ca]]` tables. */
import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { arrangeChain, type CaChain } from '../../pki/x509/ca-chain.ts';
import type { Certificate } from '../../pki/x509/certificate.ts';
import { formatName } from '../../pki/x509/name.ts';
import { hasNoCheck, ocspDelegateProblems } from '../../pki/ocsp/ocsp.ts';
import { errorCode } from '../secret.ts';
import { FileError, type MaterialReader } from './reader.ts';
import { clientIssuerFiles } from '../schema/ca.ts';
import type {
  AcmeCaConfig,
  CaConfig,
  CommandCaConfig,
  DogtagCaConfig,
  EstCaConfig,
  FileCaConfig,
  Pkcs11CaConfig,
} from '../schema.ts';
import {
  caCertificates,
  type CaCertificates,
  type CaMaterial,
  type CommonCaMaterial,
  type KeyPair,
  type OwnCaMaterial,
  type ServiceMaterial,
} from './material.ts';

const DAY = 86_400_000;
const ALLOWED = 'the CA certificates above the CA, in order';

/**
 * The files of one table; undefined if any is missing, which has been reported.
 * @param key the CA's key in the configuration, such as `ca[0]`
 */
export async function loadCa(reader: MaterialReader, table: CaConfig, key: string): Promise<CaMaterial | undefined> {
  switch (table.driver) {
    case 'file':
      return loadFileCa(reader, table, key);
    case 'pkcs11':
      return loadPkcs11Ca(reader, table, key);
    case 'dogtag':
      return loadDogtagCa(reader, table, key);
    case 'est':
    case 'acme':
    case 'command':
      return loadUpstreamCa(reader, table, key);
  }
}

async function loadFileCa(reader: MaterialReader, table: FileCaConfig, key: string): Promise<CaMaterial | undefined> {
  const { certificate, file } = table;
  const pair = await reader.pair(`${key}.certificate`, certificate, `${key}.file.private_key`, file.private_key);
  const own = await loadOwnCa(reader, table, key);
  if (pair === undefined || own === undefined) return undefined;
  return { driver: 'file', table, privateKey: pair.privateKey, ...own };
}

async function loadPkcs11Ca(
  reader: MaterialReader,
  table: Pkcs11CaConfig,
  key: string,
): Promise<CaMaterial | undefined> {
  await reader.exists(`${key}.pkcs11.module`, table.pkcs11.module, 'the path of a PKCS#11 library');
  const own = await loadOwnCa(reader, table, key);
  return own === undefined ? undefined : { driver: 'pkcs11', table, ...own };
}

async function loadDogtagCa(
  reader: MaterialReader,
  table: DogtagCaConfig,
  key: string,
): Promise<CaMaterial | undefined> {
  const { trust_anchors, client_certificate, client_key } = table.dogtag;
  const trustAnchors = await reader.anchors(`${key}.dogtag.trust_anchors`, trust_anchors);
  const client = await reader.pair(
    `${key}.dogtag.client_certificate`,
    client_certificate,
    `${key}.dogtag.client_key`,
    client_key,
  );
  const { certificate } = table;
  const certificates = certificate === undefined ? undefined : await loadChain(reader, key, certificate, table.chain);
  const others = await loadOthers(reader, table, key);
  if (trustAnchors === undefined || client === undefined || others === undefined) return undefined;
  if (certificate !== undefined && certificates === undefined) return undefined;
  return { driver: 'dogtag', table, certificates, trustAnchors, client, ...others };
}

async function loadUpstreamCa(
  reader: MaterialReader,
  table: EstCaConfig | AcmeCaConfig | CommandCaConfig,
  key: string,
): Promise<CaMaterial | undefined> {
  const anchors = await reader.anchors(`${key}.upstream_trust_anchors`, table.upstream_trust_anchors);
  const chain = table.chain === undefined ? [] : await reader.certificates(`${key}.chain`, table.chain);
  const others = await loadOthers(reader, table, key);
  const files = table.driver === 'est' ? table.est : {};
  const tls = table.driver === 'est' ? table.est : table.driver === 'acme' ? table.acme : undefined;
  const service = await loadService(
    reader,
    { ...files, trust_anchors: tls?.tls_trust_anchors },
    `${key}.${table.driver}`,
  );
  const accountKey =
    table.driver === 'acme'
      ? await loadAccountKey(reader, `${key}.acme.account_key_file`, table.acme.account_key_file)
      : undefined;
  if (anchors === undefined || chain === undefined || others === undefined) return undefined;
  const common = { certificates: undefined, upstreamAnchors: anchors, chain, ...service, ...others };
  switch (table.driver) {
    case 'est':
      return { driver: 'est', table, ...common };
    case 'acme':
      return accountKey && { driver: 'acme', table, accountKey, ...common };
    case 'command':
      return { driver: 'command', table, ...common };
  }
}

/** The ACME account key, which the first start creates. */
async function loadAccountKey(reader: MaterialReader, key: string, file: string): Promise<KeyObject | undefined> {
  if (!existsSync(file)) {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const pem = privateKey.export({ format: 'pem', type: 'pkcs8' });
    const written = await reader.reading(key, file, async () => {
      await writeFile(file, pem, { flag: 'wx', mode: 0o600 }).catch((error: unknown) => {
        // Another process has just created it.
        if (errorCode(error) === 'EEXIST') return;
        throw new FileError(
          `cannot create ${file}: ${errorCode(error)}`,
          'the path of a file that the server may create',
        );
      });
      return true;
    });
    if (written === undefined) return undefined;
  }
  const accountKey = await reader.privateKey(key, file);
  if (accountKey === undefined || accountKey.asymmetricKeyDetails?.namedCurve === 'prime256v1') return accountKey;
  reader.problem(key, `${file} is not an EC P-256 key`, 'the key of an ACME account');
  return undefined;
}

/** Files that every kind of CA may have. */
interface OtherFiles {
  readonly profile: Pick<CaConfig['profile'], 'renewal_issuers'>;
  readonly client_issuers: readonly string[];
  readonly authorization?: ServiceFiles | undefined;
}

interface ServiceFiles {
  readonly trust_anchors?: string | undefined;
  readonly client_certificate?: string | undefined;
  readonly client_key?: string | undefined;
}

export interface OwnCaFiles extends OtherFiles {
  readonly certificate: string;
  readonly chain?: string | undefined;
  readonly ocsp?: { readonly certificate: string; readonly private_key: string } | undefined;
}

/** The material of a local CA, whatever holds its key; undefined if a file is missing, which has been reported. */
export async function loadOwnCa(
  reader: MaterialReader,
  table: OwnCaFiles,
  key: string,
): Promise<OwnCaMaterial | undefined> {
  const { certificate, chain, ocsp: files } = table;
  const ocsp = files === undefined ? undefined : await loadOcspDelegate(reader, key, certificate, files);
  const certificates = await loadChain(reader, key, certificate, chain);
  const others = await loadOthers(reader, table, key);
  if (certificates === undefined || others === undefined) return undefined;
  return files !== undefined && ocsp === undefined ? undefined : { certificates, ocsp, ...others };
}

/** Loads renewal_issuers, client_issuers and the credentials of the authorization service. */
export async function loadOthers(
  reader: MaterialReader,
  { profile, client_issuers, authorization: service }: OtherFiles,
  key: string,
): Promise<CommonCaMaterial | undefined> {
  const { renewal_issuers: file } = profile;
  const renewalIssuers = file === undefined ? [] : await reader.anchors(`${key}.profile.renewal_issuers`, file);
  const clientIssuers: Certificate[] = [];
  for (const issuers of clientIssuerFiles({ client_issuers }))
    clientIssuers.push(...((await reader.anchors(`${key}.client_issuers`, issuers)) ?? []));
  const authorization = service && (await loadService(reader, service, `${key}.authorization`));
  return renewalIssuers === undefined ? undefined : { renewalIssuers, clientIssuers, authorization };
}

export async function loadService(
  reader: MaterialReader,
  { trust_anchors, client_certificate, client_key }: ServiceFiles,
  key: string,
): Promise<ServiceMaterial> {
  const trustAnchors =
    trust_anchors === undefined ? undefined : await reader.anchors(`${key}.trust_anchors`, trust_anchors);
  const client =
    client_certificate === undefined || client_key === undefined
      ? undefined
      : await reader.pair(`${key}.client_certificate`, client_certificate, `${key}.client_key`, client_key);
  return { trustAnchors, client };
}

/**
 * A CA's certificate and those above it: each a valid CA certificate, signed by the next, up to a root (RFC 7030
 * §4.1.3: cacerts includes it). A root's own signature proves nothing and is not verified. Rollover certificates must
 * be linked to these; an expired one is only a warning, since rollovers end.
 */
async function loadChain(
  reader: MaterialReader,
  ca: string,
  file: string,
  chainFile: string | undefined,
): Promise<CaCertificates | undefined> {
  const own = await reader.certificates(`${ca}.certificate`, file);
  const chain = chainFile === undefined ? [] : await reader.certificates(`${ca}.chain`, chainFile);
  if (own === undefined || chain === undefined) return undefined;
  const [certificate, ...further] = own;
  const arranged = await arrangeChain(certificate, [...further, ...chain]);
  const key = chain.length === 0 ? `${ca}.certificate` : `${ca}.chain`;
  for (const problem of arranged.problems) reader.problem(key, problem, ALLOWED);
  for (const issuer of arranged.path.slice(1)) checkIssuerValidity(reader, `${ca}.chain`, issuer, certificate);
  for (const { subject, notAfter } of arranged.rollover)
    if (notAfter.getTime() < reader.now)
      reader.warn(
        `${ca}.chain`,
        `"${formatName(subject)}", a rollover certificate, expired on ${notAfter.toISOString()}`,
        'remove the expired certificate',
      );
  if (arranged.rootMissing) reportMissingRoot(reader, `${ca}.chain`, arranged, chainFile);
  return caCertificates(arranged);
}

/** With `certificate_authority`, the path lengths of the CA and of those above it must allow CAs below. */
export function checkDeviceCaPath(
  reader: MaterialReader,
  { profile: { certificate_authority: table } }: CaConfig,
  { certificate, issuers }: CaCertificates,
  ca: string,
): void {
  if (table === undefined) return;
  for (const [above, { subject, pathLength = Infinity }] of [certificate, ...issuers].entries()) {
    const needed = table.path_length + 1 + above;
    if (pathLength < needed)
      reader.problem(
        `${ca}.profile.certificate_authority.path_length`,
        `is ${table.path_length}, and "${formatName(subject)}" has the path length ${pathLength}`,
        `a CA with the path length ${needed} or more, such as from "estuary ca init --path-length ${needed}"`,
      );
  }
}

function reportMissingRoot(
  reader: MaterialReader,
  key: string,
  { path }: CaChain,
  chainFile: string | undefined,
): void {
  const last = path.at(-1) ?? path[0];
  reader.problem(
    key,
    `${chainFile === undefined ? 'is missing' : 'has no root'}: it must contain "${formatName(last.issuer)}", which issued "${formatName(last.subject)}"`,
    `${ALLOWED}, the self-signed root last`,
  );
}

/** Certificates below an expired issuer are invalid. */
function checkIssuerValidity(reader: MaterialReader, key: string, issuer: Certificate, certificate: Certificate): void {
  const who = `"${formatName(issuer.subject)}"`;
  reader.validity(key, issuer, who);
  if (issuer.notAfter.getTime() + DAY < certificate.notAfter.getTime())
    reader.warn(
      key,
      `${who} expires on ${issuer.notAfter.toISOString()}, before the CA below it`,
      'issuers that outlive what they issue',
    );
}

/** A delegated OCSP responder: the certificate matches the key, and relying parties will accept it for the CA. */
async function loadOcspDelegate(
  reader: MaterialReader,
  ca: string,
  caFile: string,
  ocsp: { readonly certificate: string; readonly private_key: string },
): Promise<KeyPair | undefined> {
  const key = `${ca}.ocsp.certificate`;
  const effect = 'the CA key signs OCSP responses';
  const pair = await reader.pair(key, ocsp.certificate, `${ca}.ocsp.private_key`, ocsp.private_key, effect);
  const [issuer] = await reader.knownCertificates(caFile);
  const certificate = pair?.certificates[0] ?? (await reader.knownCertificates(ocsp.certificate))[0];
  if (certificate === undefined || issuer === undefined) return pair;
  for (const problem of await ocspDelegateProblems(certificate, issuer))
    reader.problem(key, problem, 'a certificate for OCSP responders, issued by the CA');
  if (!hasNoCheck(certificate))
    reader.warn(
      key,
      'relying parties may request the status of the responder',
      'add the extension id-pkix-ocsp-nocheck',
    );
  return pair;
}
