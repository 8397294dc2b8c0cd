/** Creates local CAs from their configuration. */
import type { KeyObject } from 'node:crypto';
import type { FileCaMaterial, KeyPair, OwnCaMaterial } from '../../config/material/material.ts';
import { describe, failed, type EstuaryError } from '../../errors.ts';
import type { OcspDelegate, Signer } from '../driver.ts';
import { FileSigner, ocspDelegate } from './signing.ts';
import { LocalCa, type IssuanceProfile } from './local-ca.ts';
import type { PublicationUrls } from './tbs.ts';

export { LocalCa } from './local-ca.ts';
export { FileSigner } from './signing.ts';
export type { PublicationUrls } from './tbs.ts';

/** The settings that every local CA uses from its `[[ca]]` table. */
export interface LocalCaConfig {
  readonly label: string;
  readonly profile: IssuanceProfile;
}

export interface LocalCaContext {
  readonly publication?: PublicationUrls | undefined;
  readonly now: () => number;
}

interface SignerStart {
  readonly start?: () => Promise<void>;
}

/** A CA with any signer. @throws EstuaryError 500 `CA_UNUSABLE` that names the label, the key and the problem */
export function createLocalCa(
  { label, profile }: LocalCaConfig,
  { certificates, ocsp }: Pick<OwnCaMaterial, 'certificates' | 'ocsp'>,
  signer: Signer,
  context: LocalCaContext & SignerStart,
): LocalCa {
  const delegate = ocsp === undefined ? undefined : createDelegate(label, ocsp);
  try {
    return new LocalCa({ ...certificates, ...context, signer, delegate, profile });
  } catch (error) {
    throw problem(label, 'private_key', describe(error));
  }
}

/**
 * A CA with its key in a file (`driver = "file"`).
 * @throws EstuaryError 500 `CA_UNUSABLE` that names the label, the key and the problem
 */
export function createFileCa(
  config: LocalCaConfig,
  material: Pick<FileCaMaterial, 'certificates' | 'ocsp' | 'privateKey'>,
  { publication, now }: LocalCaContext,
): LocalCa {
  const signer = fileSigner(config.label, 'file.private_key', material.privateKey);
  return createLocalCa(config, material, signer, { publication, now });
}

function createDelegate(label: string, { certificates: [certificate], privateKey }: KeyPair): OcspDelegate {
  const signer = fileSigner(label, 'ocsp.private_key', privateKey);
  try {
    return ocspDelegate(certificate, signer);
  } catch (error) {
    throw problem(label, 'ocsp.private_key', describe(error));
  }
}

function fileSigner(label: string, key: string, privateKey: KeyObject): FileSigner {
  try {
    return new FileSigner(privateKey);
  } catch (error) {
    throw problem(label, key, describe(error));
  }
}

const problem = (label: string, key: string, reason: string): EstuaryError =>
  failed('CA_UNUSABLE', `ca "${label}": ${key}: ${reason}`);
