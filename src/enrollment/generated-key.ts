/** What a CA gets to see of a key that the server generates for a client. */
import type { SealedKey } from '../ca/driver.ts';
import { failed } from '../errors.ts';
import { parseCsr, verifyCsr, type CsrContent, type VerifiedCsr } from '../pki/pkcs10/csr.ts';
import { buildCsr } from '../pki/pkcs10/csr-builder.ts';
import type { PublicKeyInfo } from '../pki/x509/public-key.ts';
import type { GeneratedKey, KeyGenerator } from './key-generation.ts';
import type { RequestBase } from './request.ts';

/** What is left of a key pair when its private key has gone. */
export interface KeyForCa {
  readonly publicKey: PublicKeyInfo;
  /** A request of the key's own, where the CA takes nothing else. */
  readonly proof: VerifiedCsr | undefined;
  /** The private key, encrypted for the CA's key archive, where there is one. */
  readonly sealed: SealedKey | undefined;
}

type Names = Pick<CsrContent, 'subject' | 'subjectAltNames'>;

/**
 * @param names what the certificate gets
 * @throws EstuaryError 500 `KEY_ARCHIVE_MISSING` where policy asks for an archive and the CA has none; 500 or 503 from the archive
 */
export async function prepareKeyForCa(
  { ca }: RequestBase,
  names: Names,
  { publicKey, pkcs8 }: GeneratedKey,
): Promise<KeyForCa> {
  const { keyArchive } = ca.driver;
  if (keyArchive === undefined && ca.profile.key_escrow === true)
    throw failed('KEY_ARCHIVE_MISSING', 'The key could not be archived, which this CA requires.');
  return {
    publicKey,
    proof: ca.driver.takesCsr === true ? await ownRequest(names, { publicKey, pkcs8 }) : undefined,
    sealed: await keyArchive?.seal(pkcs8),
  };
}

/**
 * The same for a key of this kind that is thrown away: for what can be checked of a certificate before its key exists.
 *
 * @throws EstuaryError 503 `KEY_GENERATION_BUSY`
 */
export async function sampleKeyForCa(
  { ca }: RequestBase,
  names: Names,
  keyType: string,
  generator: Pick<KeyGenerator, 'sample' | 'withKey'>,
): Promise<Pick<KeyForCa, 'publicKey' | 'proof'>> {
  if (ca.driver.takesCsr !== true) return { publicKey: await generator.sample(keyType), proof: undefined };
  return generator.withKey(keyType, async (key) => ({
    publicKey: key.publicKey,
    proof: await ownRequest(names, key),
  }));
}

async function ownRequest(names: Names, key: GeneratedKey): Promise<VerifiedCsr> {
  return verifyCsr(parseCsr(await buildCsr({ ...names, ...key })));
}
