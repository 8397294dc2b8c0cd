/** Loads the files of `[[ca]]` tables that drivers share. */
import { arrangeChain, type CaChain } from '../../pki/x509/ca-chain.ts';
import type { Certificate } from '../../pki/x509/certificate.ts';
import { formatName } from '../../pki/x509/name.ts';
import { hasNoCheck, ocspDelegateProblems } from '../../pki/ocsp/ocsp.ts';
import { type CaTable, clientIssuerFiles } from '../schema/label.ts';
import type { Secret } from '../secret.ts';
import { isKeyOf, type MaterialReader, readPrivateKey, untimely } from './reader.ts';
import {
  caCertificates,
  type CaCertificates,
  type CaIdentity,
  type CommonCaMaterial,
  firstOf,
  type KeyPair,
  type OwnCaMaterial,
  type ServiceMaterial,
} from './material.ts';

const DAY = 86_400_000;
const ALLOWED = 'the CA certificates above the CA, in order';

/** Files that every kind of CA may have. */
interface OtherFiles {
  readonly profile: Pick<CaTable['profile'], 'renewal_issuers'>;
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
  /** A key in a file. */
  readonly file?: { readonly private_key: string; readonly password?: Secret | undefined } | undefined;
}

type LoadedOwnCa = OwnCaMaterial & Pick<CaIdentity, 'privateKey'>;

/**
 * The material of a local CA, whatever holds its key. What cannot be used is absent, and reported.
 * @returns undefined without a certificate
 */
export async function loadOwnCa(
  reader: MaterialReader,
  table: OwnCaFiles,
  key: string,
): Promise<LoadedOwnCa | undefined> {
  const { certificate, ocsp: files } = table;
  const identity = await reader.kept(
    `${key}.certificate`,
    certificate,
    ({ cas }) => cas,
    () => loadIdentity(reader, table, key),
    ({ certificates: before }) => untimely(before.certificate, reader.now) === undefined,
  );
  if (table.file !== undefined) await reader.permissions(`${key}.file.private_key`, table.file.private_key);
  const others = await loadOthers(reader, table, key);
  const ocsp = identity && files && (await loadOcspDelegate(reader, key, identity.certificates.certificate, files));
  return identity && { ...identity, ocsp, expiring: { ocsp: firstOf(ocsp) }, ...others };
}

const ENCRYPTED = 'an encrypted key, as "openssl pkcs8 -topk8" makes it, or neither password_file nor password_env';

/** The certificate, its chain and its key, which a reload replaces together. */
async function loadIdentity(
  reader: MaterialReader,
  { certificate: file, chain, file: keyFile }: OwnCaFiles,
  key: string,
): Promise<CaIdentity | undefined> {
  const certificates = await loadChain(reader, key, file, chain);
  const place = `${key}.file.private_key`;
  const onUnused = (): void => {
    reader.warn(place, `${keyFile?.private_key ?? ''} is not encrypted, so its password is not used`, ENCRYPTED);
  };
  const privateKey =
    keyFile &&
    (await reader.reading(place, keyFile.private_key, (path) => readPrivateKey(path, { ...keyFile, onUnused })));
  if (certificates === undefined) return undefined;
  reader.caValidity(`${key}.certificate`, certificates.certificate, 'the certificate');
  if (privateKey === undefined || isKeyOf(privateKey, certificates.certificate)) return { certificates, privateKey };
  reader.notKeyOf(place, `${key}.certificate`, certificates.certificate);
  return { certificates, privateKey: undefined };
}

/** Loads renewal_issuers, client_issuers and the credentials of the authorization service. */
export async function loadOthers(
  reader: MaterialReader,
  { profile, client_issuers, authorization: service }: OtherFiles,
  key: string,
): Promise<CommonCaMaterial> {
  const { renewal_issuers: file } = profile;
  const renewalIssuers = file === undefined ? [] : await reader.anchors(`${key}.profile.renewal_issuers`, file);
  const clientIssuers: Certificate[] = [];
  for (const issuers of clientIssuerFiles({ client_issuers }))
    clientIssuers.push(...((await reader.anchors(`${key}.client_issuers`, issuers)) ?? []));
  const authorization = service && (await loadService(reader, service, `${key}.authorization`));
  return { renewalIssuers: renewalIssuers ?? [], clientIssuers, authorization };
}

export async function loadService(
  reader: MaterialReader,
  { trust_anchors, client_certificate, client_key }: ServiceFiles,
  key: string,
): Promise<ServiceMaterial> {
  const trustAnchors =
    trust_anchors === undefined ? undefined : await reader.anchors(`${key}.trust_anchors`, trust_anchors);
  if (client_certificate === undefined || client_key === undefined) return { trustAnchors, client: undefined };
  const [place, keyPlace] = [`${key}.client_certificate`, `${key}.client_key`];
  const effect = 'the service may not accept it';
  return { trustAnchors, client: await reader.pair(place, client_certificate, keyPlace, client_key, effect) };
}

/**
 * A CA's certificate and those above it: each a valid CA certificate, signed by the next, up to a root (RFC 7030
 * §4.1.3: cacerts includes it). A root's own signature proves nothing and is not verified. Rollover certificates must
 * be linked to these; an expired one is only a warning, since rollovers end.
 */
export async function loadChain(
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
  const key = chain.length === 0 || !certificate.isCa ? `${ca}.certificate` : `${ca}.chain`;
  for (const problem of arranged.problems) reader.fault(key, problem, ALLOWED);
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
  { profile: { certificate_authority: table } }: Pick<CaTable, 'profile'>,
  { certificate, issuers }: CaCertificates,
  ca: string,
): void {
  if (table === undefined) return;
  for (const [above, { subject, pathLength = Infinity }] of [certificate, ...issuers].entries()) {
    const needed = table.path_length + 1 + above;
    if (pathLength < needed)
      reader.fault(
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
  reader.fault(
    key,
    `${chainFile === undefined ? 'is missing' : 'has no root'}: it must contain "${formatName(last.issuer)}", which issued "${formatName(last.subject)}"`,
    `${ALLOWED}, the self-signed root last`,
  );
}

/** Certificates below an expired issuer are invalid. */
function checkIssuerValidity(reader: MaterialReader, key: string, issuer: Certificate, certificate: Certificate): void {
  const who = `"${formatName(issuer.subject)}"`;
  reader.caValidity(key, issuer, who);
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
  issuer: Certificate,
  ocsp: NonNullable<OwnCaFiles['ocsp']>,
): Promise<KeyPair | undefined> {
  const key = `${ca}.ocsp.certificate`;
  const effect = 'the CA key signs OCSP responses';
  const pair = await reader.kept(
    `${ca}.ocsp`,
    ocsp.certificate,
    ({ pairs }) => pairs,
    async () => {
      const read = await reader.pair(key, ocsp.certificate, `${ca}.ocsp.private_key`, ocsp.private_key, effect);
      for (const problem of read === undefined ? [] : await ocspDelegateProblems(read.certificates[0], issuer))
        reader.fault(key, problem, 'a certificate for OCSP responders, issued by the CA');
      return read;
    },
  );
  if (pair !== undefined && !hasNoCheck(pair.certificates[0]))
    reader.warn(
      key,
      'relying parties may request the status of the responder',
      'add the extension id-pkix-ocsp-nocheck',
    );
  return pair;
}
