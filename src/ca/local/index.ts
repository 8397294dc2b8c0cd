/** Makes CAs of our own from their configuration. */
import { readFile } from 'node:fs/promises';

import { describe, failed, type EstuaryError } from '../../errors.ts';
import { parsePemCertificates, type Certificate } from '../../pki/x509/certificate.ts';
import type { OcspDelegate, Signer } from '../driver.ts';
import { arrangeChain } from '../../pki/x509/ca-chain.ts';
import { FileSigner } from './file-signer.ts';
import { LocalCa, type IssuanceProfile } from './local-ca.ts';
import { ocspDelegateProblems } from '../../pki/x509/ocsp-delegate.ts';
import { ocspDelegate } from './ocsp-delegate.ts';
import type { PublicationUrls } from './tbs.ts';

export { LocalCa } from './local-ca.ts';
export { FileSigner } from './file-signer.ts';
export type { PublicationUrls } from './tbs.ts';

/** What a local CA takes of its `[[ca]]` table, whatever holds its key. */
export interface LocalCaConfig {
  readonly label: string;
  /** Path of the PEM file with the CA's own certificate. */
  readonly certificate: string;
  /** Path of the PEM file with the certificates above it. */
  readonly chain?: string | undefined;
  /** Paths of the PEM files of a delegated OCSP responder. */
  readonly ocsp?: { readonly certificate: string; readonly private_key: string } | undefined;
  readonly profile: IssuanceProfile;
}

export interface LocalCaContext {
  readonly publication?: PublicationUrls | undefined;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

/** What starts the signer, where it has to be started. */
interface SignerStart {
  readonly start?: () => Promise<void>;
}

/** A CA's own certificate and what cacerts has beside it, read from their files. */
export interface CaCertificates {
  readonly certificate: Certificate;
  /** Those above it, root last. */
  readonly issuers: readonly Certificate[];
  /** Those of rollovers. */
  readonly rollover: readonly Certificate[];
}

/**
 * Reads and checks the certificates of a `[[ca]]` table.
 * @throws EstuaryError 500 `CA_UNUSABLE` that names the label, the key and what is wrong
 */
export async function loadCaCertificates(
  config: Pick<LocalCaConfig, 'label' | 'certificate' | 'chain'>,
): Promise<CaCertificates> {
  const own = await readCertificates(config.label, 'certificate', config.certificate);
  const [certificate, ...further] = own;
  if (certificate === undefined) throw problem(config.label, 'certificate', 'holds no certificate');
  const chain = config.chain === undefined ? [] : await readCertificates(config.label, 'chain', config.chain);
  const { path, rollover, problems } = await arrangeChain(certificate, [...further, ...chain]);
  const [first] = problems;
  if (first !== undefined) throw problem(config.label, chain.length === 0 ? 'certificate' : 'chain', first);
  return { certificate, issuers: path.slice(1), rollover };
}

/**
 * A CA over any signer.
 * @throws EstuaryError 500 `CA_UNUSABLE` that names the label, the key and what is wrong
 */
export async function createLocalCa(
  config: LocalCaConfig,
  signer: Signer,
  { publication, now, start }: LocalCaContext & SignerStart,
): Promise<LocalCa> {
  const certificates = await loadCaCertificates(config);
  const delegate = await loadDelegate(config, certificates.certificate);
  try {
    return new LocalCa({ ...certificates, publication, now, start, signer, delegate, profile: config.profile });
  } catch (error) {
    throw problem(config.label, 'private_key', describe(error));
  }
}

/**
 * A CA whose key is in a file (`driver = "file"`).
 * @throws EstuaryError 500 `CA_UNUSABLE` that names the label, the key and what is wrong
 */
export async function createFileCa(
  config: LocalCaConfig & { readonly file: { readonly private_key: string } },
  context: LocalCaContext,
): Promise<LocalCa> {
  const signer = await fileSigner(config.label, 'file.private_key', config.file.private_key);
  return createLocalCa(config, signer, context);
}

async function loadDelegate(
  { label, ocsp }: Pick<LocalCaConfig, 'label' | 'ocsp'>,
  ca: Certificate,
): Promise<OcspDelegate | undefined> {
  if (ocsp === undefined) return undefined;
  const [certificate] = await readCertificates(label, 'ocsp.certificate', ocsp.certificate);
  if (certificate === undefined) throw problem(label, 'ocsp.certificate', 'holds no certificate');
  const [first] = await ocspDelegateProblems(certificate, ca);
  if (first !== undefined) throw problem(label, 'ocsp.certificate', first);
  const signer = await fileSigner(label, 'ocsp.private_key', ocsp.private_key);
  try {
    return ocspDelegate(certificate, signer);
  } catch (error) {
    throw problem(label, 'ocsp.private_key', describe(error));
  }
}

async function fileSigner(label: string, key: string, path: string): Promise<FileSigner> {
  const pem = await read(label, key, path);
  try {
    return new FileSigner(pem);
  } catch (error) {
    throw problem(label, key, describe(error));
  }
}

async function readCertificates(label: string, key: string, path: string): Promise<Certificate[]> {
  const pem = await read(label, key, path);
  try {
    return parsePemCertificates(pem);
  } catch (error) {
    throw problem(label, key, describe(error));
  }
}

async function read(label: string, key: string, path: string): Promise<string> {
  try {
    return await readFile(path, 'latin1');
  } catch (error) {
    throw problem(label, key, describe(error));
  }
}

const problem = (label: string, key: string, reason: string): EstuaryError =>
  failed('CA_UNUSABLE', `ca "${label}": ${key}: ${reason}`);
