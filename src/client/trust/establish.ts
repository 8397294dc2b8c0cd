/**
 * Establishes trust in a server from the client's initial trust information (RFC 7030 §3.1, §4.1.1), and follows CA
 * rollovers (§4.1.3).
 */
import { join } from 'node:path';
import { getCACertificates } from 'node:tls';
import { formatName } from '../../pki/x509/name.ts';
import { parseCertificate, pemOf, type Certificate } from '../../pki/x509/certificate.ts';
import { ClientError } from '../client-error.ts';
import type { CertificateConfig, ServerConfig } from '../config/schema.ts';
import type { ClientContext, EstOperations } from '../context.ts';
import type { EstServerSettings } from '../http/est-server.ts';
import type { ClientIdentity, ServerTrust } from '../http/connection.ts';
import { type CertificateFolder, readCertificates, readPem } from '../keep/certificate-folder.ts';
import { type CaCertificates, firstAnchors, followAnchors, selfSigned } from './anchors.ts';
import { findPath, readFingerprint } from './path.ts';

export type TrustStore = Pick<CertificateFolder, 'given' | 'saveTrust' | 'trust'>;

export interface TrustTask {
  readonly config: Pick<CertificateConfig, 'name'>;
  readonly server: ServerConfig;
  readonly context: ClientContext;
  /** The trusted CAs. */
  readonly store: TrustStore;
}

/** Stores the trusted CAs for one operation. @param from initial content */
export function memoryTrust(from?: Pick<CertificateFolder, 'given' | 'trust'>): TrustStore {
  let [cas, given] = [from?.trust() ?? { anchors: [], intermediates: [] }, from?.given() ?? []];
  return { trust: () => cas, given: () => given, saveTrust: (...saved) => void ([cas, given] = saved) };
}

/**
 * Authenticates a server with the trusted CAs. Without anchors, it first fetches those with the given fingerprint, over
 * a connection that is used for nothing else.
 * @throws ClientError
 */
export async function establishTrust(
  settings: EstServerSettings,
  task: TrustTask,
  identity: ClientIdentity | undefined,
): Promise<EstOperations> {
  const { server: config, store, context } = task;
  const { anchors } = knownCas(task);
  if (anchors.length > 0 || config.system_trust_anchors)
    return context.server(settings, serverTrust(anchors, config), identity);
  const { found, fingerprint } = await bootstrap(settings, task);
  store.saveTrust(found, [fingerprint]);
  return context.server(settings, serverTrust(found.anchors, config), identity);
}

interface KnownCas extends CaCertificates {
  /** The certificates of `trust_anchors`. */
  readonly kept: readonly Certificate[];
  /** Fingerprints given by the user, including those of these certificates. */
  readonly given: readonly string[];
}

/**
 * The configured CAs and those derived from them. CAs derived from a CA that is no longer configured (a corrected
 * fingerprint, a removed anchor) do not count.
 */
function knownCas({ server: config, store, context }: TrustTask): KnownCas {
  const kept = givenAnchors(config, context);
  const configured = [readFingerprint(config.ca_fingerprint ?? '') ?? [], kept.map((ca) => ca.fingerprint)].flat(2);
  const given = configured.length > 0 ? configured : store.given();
  const isFromOthers = store.given().some((ca) => !given.includes(ca));
  const { anchors, intermediates } = isFromOthers ? { anchors: [], intermediates: [] } : store.trust();
  const all = [...anchors, ...kept.filter((ca) => !anchors.some(({ der }) => der.equals(ca.der)))];
  return { anchors: all, intermediates, kept, given };
}

/** The certificates of `trust_anchors`. @throws ClientError `FILES_UNUSABLE` */
function givenAnchors({ trust_anchors: file }: ServerConfig, { disk }: ClientContext): readonly Certificate[] {
  if (file === undefined) return [];
  const paths = disk.list(file).map((name) => join(file, name));
  const texts = (paths.length > 0 ? paths : [file]).map((path) => [path, readPem(disk, path)] as const);
  if (texts.every(([, text]) => text === undefined))
    throw new ClientError('local', 'FILES_UNUSABLE', `${file} does not exist (server.trust_anchors)`);
  const certificates = texts.flatMap(([path, text]) => readCertificates(text ?? '', path));
  if (certificates.length === 0)
    throw new ClientError('local', 'FILES_UNUSABLE', `${file} contains no certificate (server.trust_anchors)`);
  return certificates;
}

function serverTrust(anchors: readonly Certificate[], config: ServerConfig): ServerTrust {
  const explicit = anchors.map(({ der }) => der);
  const implicit = config.system_trust_anchors ? getCACertificates('system') : [];
  return { kind: 'anchors', explicit, implicit, acceptCmcRa: config.accept_cmc_ra };
}

/** RFC 7030 §4.1.1: only /cacerts uses this connection, and no password is sent on it. */
async function bootstrap(
  settings: EstServerSettings,
  { server: config, context }: TrustTask,
): Promise<{ readonly found: CaCertificates; readonly fingerprint: string }> {
  if (config.ca_fingerprint === undefined && context.ask === undefined)
    throw new ClientError(
      'local',
      'CA_UNTRUSTED',
      'no CA is trusted yet. Set server.ca_fingerprint (--ca-fingerprint) or server.trust_anchors (--ca)',
    );
  const server = context.server(settings, { kind: 'provisional' }, undefined);
  try {
    const listed = await server.caCertificates();
    const text = config.ca_fingerprint ?? (await askForFingerprint(listed, settings.base, context));
    const fingerprint = readFingerprint(text) ?? '';
    return { found: await firstAnchors(listed, fingerprint, context.now()), fingerprint };
  } finally {
    server.close();
  }
}

/** The user enters the expected fingerprint; a mere yes would be too easy. */
async function askForFingerprint(listed: readonly Certificate[], base: URL, { ask }: ClientContext): Promise<string> {
  const lines = listed.map((ca) => `  ${formatName(ca.subject)}\n    SHA-256 ${ca.fingerprint}`);
  const question = `${base.host} is not trusted yet. It lists these CAs:\n${lines.join('\n')}\nType the fingerprint that you got for its CA: `;
  const answer = readFingerprint((await ask?.(question, { secret: false })) ?? '');
  if (answer === undefined)
    throw new ClientError('untrusted', 'CA_UNTRUSTED', 'the input is not a SHA-256 or SHA-512 fingerprint in hex');
  return answer;
}

/**
 * Reads the server's CAs and updates trust.
 * @param own the current certificate, whose CA is kept until it is replaced
 * @throws ClientError
 */
export async function refreshTrust(
  server: EstOperations,
  task: TrustTask,
  identity: ClientIdentity | undefined,
  own?: Certificate,
): Promise<CaCertificates> {
  const { server: config, store, context } = task;
  const { name } = task.config;
  const listed = await server.caCertificates();
  const { kept, given, ...known } = knownCas(task);
  // If the system's anchors authenticate the server, its first response becomes the Explicit TA database.
  const anchors = known.anchors.length > 0 ? known.anchors : (await selfSigned(listed)).filter(({ isCa }) => isCa);
  const current: CaCertificates = { anchors, intermediates: known.intermediates };
  const shown = server.serverCertificate;
  const needed = [
    ...(shown === undefined || config.system_trust_anchors ? [] : [parseCertificate(shown)]),
    ...(own === undefined ? [] : [own]),
  ];
  const followed = await followAnchors(current, listed, context.now(), { kept, needed });
  for (const ca of followed.refused)
    context.log('warning', name, `${describeCa(ca)} is listed, but not trusted: nothing links it to a trusted CA`);
  const { certificates } = followed;
  if (sameCas(certificates, store.trust()) && sameTexts(given, store.given())) return certificates;
  for (const ca of followed.added) context.log('info', name, `trusts the new CA ${describeCa(ca)}`);
  for (const ca of followed.dropped) context.log('info', name, `no longer trusts ${describeCa(ca)}`);
  store.saveTrust(certificates, given);
  server.use(serverTrust(certificates.anchors, config), identity);
  return certificates;
}

/** Completes a client certificate that came without its chain, which the server may need to find its path. */
export async function presentChain(
  server: EstOperations,
  { server: config, context }: TrustTask,
  identity: ClientIdentity,
  { anchors, intermediates }: CaCertificates,
): Promise<void> {
  const [own, ...more] = readCertificates(identity.certificate, 'the client certificate');
  const path = own && more.length === 0 ? await findPath(own, anchors, intermediates, context.now()) : undefined;
  const chain = path?.slice(1).filter((ca) => !anchors.includes(ca)) ?? [];
  if (chain.length === 0) return;
  const certificate = `${identity.certificate.trimEnd()}\n${pemOf(chain)}`;
  server.use(serverTrust(anchors, config), { ...identity, certificate });
}

const describeCa = ({ subject, fingerprint }: Certificate): string => `${formatName(subject)} (SHA-256 ${fingerprint})`;

function sameCas(a: CaCertificates, b: CaCertificates): boolean {
  const texts = (list: readonly Certificate[]): string[] => list.map(({ fingerprint }) => fingerprint);
  return sameTexts(texts(a.anchors), texts(b.anchors)) && sameTexts(texts(a.intermediates), texts(b.intermediates));
}

const sameTexts = (a: readonly string[], b: readonly string[]): boolean =>
  JSON.stringify(a.toSorted()) === JSON.stringify(b.toSorted());
