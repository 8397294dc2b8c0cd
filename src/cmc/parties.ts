/** The parties that `[cmc]` names: who signs PKI responses, who is a registration authority, who shares a secret. */
import { createPrivateKey } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { Ca } from '../ca/router.ts';
import type { Config } from '../config/schema.ts';
import { describe, failed } from '../errors.ts';
import { parsePemCertificates, type Certificate } from '../pki/x509/certificate.ts';
import { issuerAndSerialNumber, keySigner, type CmsSigner } from '../pki/cms/signed-data.ts';

export interface Responder {
  readonly signer: CmsSigner;
  /** DER of what a client needs to verify its signatures, beside the CA's chain. */
  readonly certificates: readonly Buffer[];
}

export interface CmcParties {
  /** `cmc.certificate`; undefined: each CA signs for itself. */
  readonly responder: Responder | undefined;
  /** `cmc.ra_certificates`. */
  readonly raCertificates: readonly Certificate[];
  /** `cmc.shared_secrets` by identification. */
  readonly secrets: ReadonlyMap<string, Buffer>;
}

/** @throws a file error, InputError, or EstuaryError 500 `CMC_SIGNER_UNUSABLE` where a file holds no certificate, or a key that cannot sign */
export async function loadCmcParties({ cmc }: Pick<Config, 'cmc'>): Promise<CmcParties> {
  const authorities = await Promise.all(cmc.ra_certificates.map((file) => readFile(file, 'latin1')));
  return {
    responder: await loadResponder(cmc),
    raCertificates: authorities.flatMap((text) => parsePemCertificates(text)),
    secrets: new Map(cmc.shared_secrets.map(({ identification, secret }) => [identification, secret.reveal()])),
  };
}

async function loadResponder({
  certificate: file,
  private_key: keyFile,
}: Config['cmc']): Promise<Responder | undefined> {
  if (file === undefined || keyFile === undefined) return undefined;
  const certificates = parsePemCertificates(await readFile(file, 'latin1'));
  const [certificate] = certificates;
  if (certificate === undefined) throw failed('CMC_SIGNER_UNUSABLE', `cmc.certificate: ${file} holds no certificate`);
  const key = await readFile(keyFile);
  return { signer: signerOf(key, certificate), certificates: certificates.map(({ der }) => der) };
}

function signerOf(pem: Buffer, certificate: Certificate): CmsSigner {
  try {
    return keySigner(createPrivateKey(pem), certificate.publicKey, issuerAndSerialNumber(certificate));
  } catch (error) {
    throw failed('CMC_SIGNER_UNUSABLE', `cmc.private_key: ${describe(error)}`);
  }
}

/** The configured responder, or else the CA itself; undefined: nothing here can sign for this CA. */
export function responderFor({ responder }: CmcParties, { driver }: Ca): Responder | undefined {
  if (responder !== undefined) return responder;
  const { cmsSigner: signer, cmsCertificates: certificates = [] } = driver;
  return signer === undefined ? undefined : { signer, certificates };
}
